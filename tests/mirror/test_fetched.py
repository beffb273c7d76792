"""What a fetch has brought, handed on unopened and decoded."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.encoded import EncodedBatches
from headrace.kafka.batches.decoding import Decoding
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import AbortedTransaction, batch_headers, next_offset
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import FetchedRecords
from headrace.mirror.fetched import Copied, encoded_batches, last_epoch, source_batches
from headrace.mirror.positions import Flow, Position
from record_batches import COMPRESSIONS, PLACE, Row, batch, read, rows

HOW = Decoding(with_headers=True)
ID = UUID(int=7)
COPIED = Copied(
    source=Flow("A", "B").partition(PLACE),
    remote=TopicPartition("A.orders", 3),
    position=Position(0, "cluster-1", ID),
)
ABORT = struct.pack(">hh", 0, 0)
COMMIT = struct.pack(">hh", 0, 1)


def of_epoch(data: bytes, epoch: int) -> bytes:
    """The batch as a leader of that epoch has appended it."""
    return data[:12] + struct.pack(">i", epoch) + data[16:]


def row(offset: int, value: bytes = b"x") -> Row:
    """A record at that offset."""
    return Row(offset, 1_700_000_000_000 + offset, None, value)


def marker(offset: int, producer_id: int, kind: bytes) -> bytes:
    """The end of a transaction."""
    return batch(
        [Row(offset, 0, kind, b"\0" * 6)],
        producer_id=producer_id,
        transactional=True,
        attributes=0x20,
    )


def answer(
    data: bytes, *, start: int = 0, aborted: Sequence[AbortedTransaction] = ()
) -> FetchedRecords:
    """A fetch's answer of these batches."""
    headers = batch_headers(data, PLACE)
    return FetchedRecords(
        place=PLACE,
        fetch_offset=start,
        data=memoryview(data),
        headers=headers,
        next_offset=next_offset(headers, start),
        aborted=tuple(aborted),
        high_watermark=1 << 50,
        last_stable_offset=1 << 50,
    )


def passed_on(found: Sequence[EncodedBatches]) -> list[Row]:
    """The records that a sender would make of *found*."""
    return [
        each
        for piece in found
        for data in piece.data
        for each in read(bytes(data), start=piece.start)
    ]


def decoded_rows(fetched: FetchedRecords) -> list[Row]:
    """The records of the decoded batches; each with its own offset and place."""
    found = list[Row]()
    for one in source_batches(fetched, COPIED, HOW):
        assert ("A.orders", 3, COPIED.source) == (one.topic, one.partition, one.source_partition)
        assert one.keys is not None
        assert isinstance(one.timestamps, pa.Array)
        for number in range(len(one)):
            offset = Position.of(one.offset_at(number) or {})
            headers = one.headers[number] if one.headers else ()
            found.append(
                Row(
                    offset=offset.next - 1,
                    timestamp=one.timestamps[number].as_py(),
                    key=one.keys[number].as_py(),
                    value=one.values[number].as_py(),
                    headers=[(each.key, each.value) for each in headers],
                )
            )
    return found


@pytest.mark.parametrize(
    "lies",
    [
        {"attributes": 0x20},
        {"fields": {"count": 0}},
    ],
    ids=["a marker", "empty"],
)
def test_a_damaged_batch_is_not_taken_for_one_without_records(lies: dict[str, Any]):
    """What it says of itself counts only with its checksum; what is before it is handed on."""
    spoilt = bytearray(batch([row(3), row(4)], **lies))
    spoilt[-1] ^= 1
    found, data = list[EncodedBatches](), batch([row(1)]) + bytes(spoilt) + batch([row(5)])

    with pytest.raises(CorruptBatchError, match=r"at offset 3 of partition .* its checksum is"):
        found.extend(encoded_batches(answer(data), COPIED))

    assert [1] == [each.offset for each in passed_on(found)]
    assert [2] == [each.next_offset for each in found]


@given(
    written=rows(),
    cut=st.integers(0, 40),
    compression=st.sampled_from(COMPRESSIONS),
    data=st.data(),
)
def test_both_forms_hold_the_records_from_the_position_on(
    written: list[Row], cut: int, compression: int, data: st.DataObject
):
    """As the broker has sent them, whatever is before the position in their first batch."""
    cut %= len(written)
    parts = [each for each in (written[:cut], written[cut:]) if each]
    octets = b"".join(batch(each, compression=compression) for each in parts)
    start = data.draw(st.sampled_from([each.offset for each in parts[0]]))
    fetched = answer(octets, start=start)
    expected = [each for each in written if each.offset >= start]

    found = list(encoded_batches(fetched, COPIED))

    assert expected == passed_on(found)
    assert expected == [each._replace(timestamp_type=0) for each in decoded_rows(fetched)]
    assert written[-1].offset + 1 == found[-1].next_offset
    last = Position(written[-1].offset + 1, "cluster-1", ID, 0)
    assert last == Position.of(found[-1].offset)


def test_aborted_batches_and_markers_are_left_out_and_passed():
    """The position is behind the marker."""
    aborted = batch([row(0)], producer_id=1, transactional=True)
    committed = batch([row(1, b"kept")], producer_id=2, transactional=True)
    ends = marker(2, 1, ABORT) + marker(3, 2, COMMIT)
    fetched = answer(aborted + committed + ends, aborted=[AbortedTransaction(1, 0)])

    (found,) = encoded_batches(fetched, COPIED)

    assert [b"kept"] == [each.value for each in passed_on([found])]
    assert 4 == found.next_offset
    assert 3 == found.offset["offset"]
    assert [b"kept"] == [each.value for each in decoded_rows(fetched)]


def test_markers_alone_move_the_position():
    """There is nothing to send."""
    (found,) = encoded_batches(answer(marker(5, 1, COMMIT), start=5), COPIED)

    assert [] == list(found.data)
    assert (5, 6, 5) == (found.start, found.next_offset, found.offset["offset"])


def test_a_piece_has_the_epoch_in_which_its_batches_were_appended():
    """The position says the last one, so that a log that was cut can be told from the one that was read."""
    octets = b"".join(
        of_epoch(batch([row(offset)]), epoch) for offset, epoch in ((0, 3), (1, 3), (2, 5))
    )
    fetched = answer(octets)

    found = [
        (each.start, each.next_offset, each.offset) for each in encoded_batches(fetched, COPIED)
    ]

    assert [
        (0, 2, Position(2, "cluster-1", ID, 3).offset),
        (2, 3, Position(3, "cluster-1", ID, 5).offset),
    ] == found
    assert 5 == last_epoch(fetched.headers)
