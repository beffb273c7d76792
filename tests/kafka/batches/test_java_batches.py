"""Batches and messages that Kafka's own Java classes have written: all formats, all compressions, both kinds of time.

``java_batches.json`` is the output of ``MemoryRecords.builder`` of Kafka 4.3.1 (base offset 70, append time 1600000099999)
by format, compression and timestamp type.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import batch_headers, next_offset
from record_batches import LZ4, PLACE, Row, read

JAVA: Final[dict[str, bytes]] = {
    name: bytes.fromhex(text)
    for name, text in json.loads(
        Path(__file__).with_name("java_batches.json").read_text(encoding="utf-8")
    ).items()
}
OLD: Final = [name for name in JAVA if name[0] in "01"]
APPENDED: Final = 1_600_000_099_999
LONG: Final = b"value value value value value value"
UNCHECKED: Final = Decoding(with_headers=True, check_crcs=False, max_batch_bytes=1 << 20)


def rows_of(name: str) -> list[Row]:
    """The three records, with the times that this format and kind of time has for them."""
    records = [
        (1_600_000_000_000, b"key", LONG),
        (1_600_000_000_005, None, b""),
        (1_600_000_000_001, b"", None),
    ]
    times = {"NoTimestampType": (-1, -1), "CreateTime": (None, 0), "LogAppendTime": (APPENDED, 1)}
    time, kind = times[name.split()[2]]
    return [
        Row(70 + index, own if time is None else time, key, value, [], kind)
        for index, (own, key, value) in enumerate(records)
    ]


@pytest.mark.parametrize("name", JAVA)
def test_what_java_has_written_is_read(name: str) -> None:
    """Snappy in frames; messages of format 0 in lz4 frames with the wrong checksum that Java gives them."""
    data = JAVA[name]

    assert rows_of(name) == read(data)
    assert rows_of(name)[1:2] == read(data, start=71, end=72)
    assert 73 == next_offset(batch_headers(data, PLACE), 70)
    assert rows_of(name) == read(data, how=UNCHECKED)


def test_old_messages_are_handed_out_together() -> None:
    """They come one by one, without a batch around them."""
    data = JAVA["1 none CreateTime"]
    headers = batch_headers(data, PLACE)

    (columns,) = decoded(data, headers, place=PLACE, start=71)

    assert [71, 72] == columns["offset"].to_pylist()


@pytest.mark.parametrize("name", OLD)
def test_headers_of_old_messages_are_null(name: str) -> None:
    """The columns are those that were asked for."""
    assert [row._replace(headers=[]) for row in rows_of(name)] == read(JAVA[name], how=Decoding())


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
            expected += [row._replace(offset=row.offset + number * 256) for row in rows_of(name)]
    # Offsets within a wrapper of format 0 are absolute, and so are not moved with it.
    assert rows_of("0 lz4 NoTimestampType") + expected == read(data)


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
                assert [row[1:] for row in rows_of(name)] == [row[1:] for row in found]


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
