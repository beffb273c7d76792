"""Batches that are damaged, or lie: an error with the place, and never fewer records."""

from __future__ import annotations

import pickle
from collections.abc import Iterator

import pyarrow as pa
import pytest

from headrace.connect.errors import TaskFailedError
from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import AbortedTransaction, batch_headers, next_offset
from record_batches import COMPRESSIONS, PLACE, Row, batch, read, sealed

WRITTEN = [
    Row(500, 1_700_000_000_000, b"k", b"v" * 70, [("h", b"1"), ("h", None)]),
    Row(501, 1_700_000_000_007, None, b"", []),
    Row(505, 1_699_999_999_000, b"", None, [("", b"")]),
    Row(506, 1_700_000_300_000, b"key" * 30, b"value", []),
]
UNCHECKED = Decoding(with_headers=True, check_crcs=False, max_batch_bytes=1 << 20)


def flipped(data: bytes) -> Iterator[bytes]:
    """*data* with one bit, or all bits of a byte, the other way round."""
    for at in range(len(data)):
        for mask in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            damaged = bytearray(data)
            damaged[at] ^= mask
            yield bytes(damaged)


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_flipped_bit_loses_no_record(compression: int) -> None:
    """It is an error, or means a batch that has not come whole yet, or a base offset, which no checksum covers."""
    data = batch(WRITTEN, compression=compression)

    for damaged in flipped(data):
        try:
            if next_offset(batch_headers(damaged, PLACE), 0) == 0:
                continue
            found = read(damaged)
        except CorruptBatchError:
            continue
        shift = found[0].offset - WRITTEN[0].offset
        assert [row._replace(offset=row.offset + shift) for row in WRITTEN] == found


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_without_checksums_a_flipped_bit_does_no_harm(compression: int) -> None:
    """It is an error, or well-formed rows, as many as the batch claims; none where it claims to be a marker, or is cut off."""
    data = batch(WRITTEN, compression=compression)

    for damaged in flipped(data):
        try:
            found = read(damaged, how=UNCHECKED)
        except CorruptBatchError:
            continue
        claimed = [one for one in batch_headers(damaged, PLACE) if not one.is_control]
        assert len(found) == sum(one.record_count for one in claimed)


LIES = {
    "more records than there are": {"count": 5},
    "fewer records than there are": {"count": 3},
    "more records than offsets": {"count": 8},
    "a negative count": {"count": -1},
    "a last offset before its records": {"last_delta": 5},
    "a negative last offset": {"last_delta": -1},
}


@pytest.mark.parametrize("lie", LIES.values(), ids=LIES)
def test_a_header_that_lies_is_refused(lie: dict[str, int]) -> None:
    """Also with a checksum that fits, which a producer may have made."""
    with pytest.raises(CorruptBatchError, match="at offset 500 of partition orders-3") as refused:
        read(batch(WRITTEN, fields=lie))

    assert (PLACE, 500) == (refused.value.place, refused.value.offset)
    assert isinstance(refused.value, TaskFailedError)
    assert (PLACE, 500) == (pickle.loads(pickle.dumps(refused.value)).place, refused.value.offset)


def with_records(octets: bytes, count: int) -> bytes:
    """A batch that claims *count* records, with *octets* where they ought to be."""
    made = bytearray(batch([Row(500 + number, 0, None, None) for number in range(count)]))
    made[61:] = octets
    return sealed(made)


# length, attributes, timestamp delta, offset delta, key length, value length, header count
RECORDS = {
    "shorter than any record": bytes([10, 0, 0, 0, 1, 1]),
    "a negative length": bytes([11, 0, 0, 0, 1, 1, 0]),
    "a length beyond the batch": bytes([14, 0, 0, 0, 1, 1, 0]),
    "a length that does not end": bytes([12, 0, 0, 0, 1, 1, 0, 255]),
    "a length of 2 GiB": bytes([254, 255, 255, 255, 15, 0, 0, 0, 1, 1, 0]),
    "a key beyond the record": bytes([12, 0, 0, 0, 4, 1, 0]),
    "a key of 2 GiB": bytes([20, 0, 0, 0, 254, 255, 255, 255, 15, 1, 0]),
    "a key of less than null": bytes([12, 0, 0, 0, 3, 1, 0]),
    "a value beyond the record": bytes([12, 0, 0, 0, 1, 2, 0]),
    "a value of less than null": bytes([12, 0, 0, 0, 1, 5, 0]),
    "an offset before the batch": bytes([12, 0, 0, 1, 1, 1, 0]),
    "an offset after the batch": bytes([12, 0, 0, 2, 1, 1, 0]),
    "an offset of six bytes": bytes([22, 0, 0, 128, 128, 128, 128, 128, 0, 1, 1, 0]),
    "a timestamp of eleven bytes": bytes([32, 0, *[128] * 10, 0, 0, 1, 1, 0]),
    "bytes after the headers": bytes([14, 0, 0, 0, 1, 1, 0, 0]),
    "no header count": bytes([12, 0, 0, 0, 1, 2, 65]),
    "a negative header count": bytes([12, 0, 0, 0, 1, 1, 1]),
    "more headers than bytes": bytes([12, 0, 0, 0, 1, 1, 2]),
    "a header without a key": bytes([16, 0, 0, 0, 1, 1, 2, 1, 1]),
    "a header beyond the record": bytes([16, 0, 0, 0, 1, 1, 2, 0, 2]),
    "a header shorter than the rest": bytes([18, 0, 0, 0, 1, 1, 2, 0, 0, 0]),
    "a header after a long key": bytes([18, 0, 0, 0, 1, 1, 2, 4, 65, 65]),
}


@pytest.mark.parametrize("octets", RECORDS.values(), ids=RECORDS)
def test_a_record_that_lies_is_refused(octets: bytes) -> None:
    """Alone, and after many that are right."""
    right = [bytes([14, 0, 0, 2 * number, 1, 1, 2, 0, 1]) for number in range(40)]
    right = [bytes([16]) + one[1:] for one in right]

    with pytest.raises(CorruptBatchError, match="at offset 500 of partition orders-3"):
        read(with_records(octets, 1))
    with pytest.raises(CorruptBatchError, match="at offset 500 of partition orders-3"):
        read(with_records(b"".join(right) + octets, 41))


def test_offsets_that_do_not_increase_are_refused() -> None:
    """Within a batch, and from one batch to the next."""
    same = bytes([12, 0, 0, 0, 1, 1, 0])
    with pytest.raises(CorruptBatchError, match="do not increase"):
        read(with_records(same + same, 2))
    with pytest.raises(CorruptBatchError, match="follows a batch that ends at offset 506"):
        read(batch(WRITTEN) + batch(WRITTEN))


def test_offsets_that_do_not_increase_are_refused_wherever_they_are() -> None:
    """Also where the columns of a large batch are made in several parts."""
    count = 20_000
    deltas = [
        (2 * number & 127 | 128, 2 * number >> 7 & 127 | 128, 2 * number >> 14)
        for number in range(count)
    ]
    deltas[count // 2] = deltas[count // 2 - 1]
    records = b"".join(bytes([16, 0, 0, *delta, 1, 1, 0]) for delta in deltas)

    with pytest.raises(CorruptBatchError, match="do not increase"):
        read(with_records(records, count))


@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_a_batch_that_decompresses_to_more_than_is_allowed_is_refused(compression: int) -> None:
    """The error names the setting."""
    data = batch([Row(500, 0, b"k", bytes(100_000))], compression=compression)
    allowed, small = (
        Decoding(max_batch_bytes=size, group_bytes=1000) for size in (200_000, 50_000)
    )

    assert 1 == len(read(data, how=allowed))
    with pytest.raises(CorruptBatchError, match=r"500 .*more than 50000 bytes.*max\.record\.batch"):
        read(data, how=small)


def add_offsets(found: list[int], batches: Iterator[pa.RecordBatch]) -> None:
    """Keep what comes before an error."""
    for columns in batches:
        found += columns["offset"].to_pylist()


@pytest.mark.parametrize("how", [Decoding(), UNCHECKED, Decoding(group_bytes=64)])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_is_before_a_corrupt_batch_is_read(compression: int, how: Decoding) -> None:
    """And a reader that starts after it reads on: who follows the advice in the message loses nothing else."""
    lying = batch([Row(at, 0, b"k", b"v") for at in (507, 508)], fields={"last_delta": 0})
    lying = lying[:57] + b"\x00\x00\x00\x01" + lying[61:]
    after = batch([Row(510, 5, b"k", b"v")])
    headers = batch_headers(batch(WRITTEN, compression=compression) + lying + after, PLACE)
    data = batch(WRITTEN, compression=compression) + lying + after
    found: list[int] = []

    with pytest.raises(CorruptBatchError, match="at offset 507"):
        add_offsets(found, decoded(data, headers, place=PLACE, start=501, how=how))

    assert [501, 505, 506] == found
    assert [Row(510, 5, b"k", b"v", [])] == read(after, start=509)


def test_a_checksum_counts_before_anything_is_believed() -> None:
    """A batch that seems empty, a marker, or one of an aborted transaction may be none of them."""
    data = batch(WRITTEN, producer_id=7, transactional=True)
    for at, mask in ((60, 4), (22, 0x20), (50, 7 ^ 9)):
        damaged = bytearray(data)
        damaged[at] ^= mask

        with pytest.raises(CorruptBatchError, match="its checksum is"):
            read(bytes(damaged), aborted=[AbortedTransaction(9, 0)])
        assert [] == read(bytes(damaged), aborted=[AbortedTransaction(9, 0)], how=UNCHECKED)


def test_offsets_of_more_than_63_bits_are_refused() -> None:
    """Java has no such numbers."""
    made = batch(WRITTEN, fields={"base_offset": 2**63 - 3})

    with pytest.raises(CorruptBatchError, match="more than 63 bits"):
        batch_headers(made, PLACE)


@pytest.mark.parametrize(("at", "value"), [(16, 3), (16, 255), (0, 128), (8, 255)])
def test_a_prefix_that_cannot_be_one_is_refused(at: int, value: int) -> None:
    """An unknown format, a negative offset, a negative length."""
    damaged = bytearray(batch(WRITTEN))
    damaged[at] = value

    with pytest.raises(CorruptBatchError, match="of partition orders-3 is corrupt"):
        batch_headers(bytes(damaged), PLACE)
