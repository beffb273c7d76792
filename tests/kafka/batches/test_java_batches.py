"""Batches and messages that Kafka's own Java classes have written, read."""

from __future__ import annotations

from typing import Final

import pytest

from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import batch_headers, next_offset
from java_batches import JAVA, java_rows
from record_batches import LZ4, PLACE, Row, read

OLD: Final = [name for name in JAVA if name[0] in "01"]
UNCHECKED: Final = Decoding(with_headers=True, check_crcs=False, max_batch_bytes=1 << 20)


@pytest.mark.parametrize("name", JAVA)
def test_what_java_has_written_is_read(name: str) -> None:
    """Snappy in frames; messages of format 0 in lz4 frames with the wrong checksum that Java gives them."""
    data = JAVA[name]

    assert java_rows(name) == read(data)
    assert java_rows(name)[1:2] == read(data, start=71, end=72)
    assert 73 == next_offset(batch_headers(data, PLACE), 70)
    assert java_rows(name) == read(data, how=UNCHECKED)


def test_old_messages_are_handed_out_together() -> None:
    """They come one by one, without a batch around them."""
    data = JAVA["1 none CreateTime"]
    headers = batch_headers(data, PLACE)

    (columns,) = decoded(data, headers, place=PLACE, start=71)

    assert [71, 72] == columns["offset"].to_pylist()


@pytest.mark.parametrize("name", OLD)
def test_headers_of_old_messages_are_null(name: str) -> None:
    """The columns are those that were asked for."""
    assert [row._replace(headers=[]) for row in java_rows(name)] == read(JAVA[name], how=Decoding())


def test_formats_may_follow_each_other() -> None:
    """As in a log whose topic went from one to the next."""
    data, expected = b"", list[Row]()
    for number, name in enumerate(
        ["0 lz4 NoTimestampType", "1 none CreateTime", "2 zstd CreateTime"]
    ):
        moved = bytearray(JAVA[name])
        for header in batch_headers(JAVA[name], PLACE):
            moved[header.position + 6] = number
        data += bytes(moved)
        if number:
            expected += [row._replace(offset=row.offset + number * 256) for row in java_rows(name)]
    # Offsets within a wrapper of format 0 are absolute, and so are not moved with it.
    assert java_rows("0 lz4 NoTimestampType") + expected == read(data)


@pytest.mark.parametrize("name", OLD)
def test_a_flipped_bit_in_a_message_loses_nothing(name: str) -> None:
    """Offset and length are in no checksum: it may be moved, or seem cut off, and then is fetched again."""
    data = JAVA[name]
    for at in range(len(data)):
        damaged = bytearray(data)
        damaged[at] ^= 1 << at % 8
        for how in (Decoding(with_headers=True), UNCHECKED):
            try:
                headers = batch_headers(bytes(damaged), PLACE)
                found = read(bytes(damaged), how=how)
            except CorruptBatchError:
                continue
            if how.check_crcs and headers and headers[-1].end == len(data):
                assert [row[1:] for row in java_rows(name)] == [row[1:] for row in found]


@pytest.mark.parametrize("kept", [1, 20, 60])
def test_a_wrapper_that_holds_a_part_of_a_message_is_refused(kept: int) -> None:
    """The broker cuts off answers, but not what is in a wrapper."""
    import cramjam
    from kafka.record.legacy_records import LegacyRecordBatchBuilder

    whole = JAVA["1 none CreateTime"]
    builder = LegacyRecordBatchBuilder(magic=1, compression_type=0, batch_size=1 << 20)
    value = bytes(cramjam.lz4.compress(whole[:-kept]))
    builder.append(0, timestamp=5, key=None, value=value)
    wrapper = bytearray(builder.build())
    wrapper[17] |= LZ4

    with pytest.raises(CorruptBatchError, match="at offset 0 of partition orders-3"):
        read(bytes(wrapper), how=UNCHECKED)
