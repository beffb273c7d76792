"""Avro files: what becomes of each type, and reading that goes on behind every record."""

from __future__ import annotations

import datetime as dt
import decimal
import gzip
import io
from collections.abc import Sequence
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.schema import arrow_type
from headrace.formats.avro.format import AvroFormat
from headrace.formats.blocks import Span
from headrace.formats.format import ObjectInput, ReadLimits
from headrace.formats.streams import Compression
from headrace.testing.format_suite import check_resume, reader_of, records_of
from project.sampling import drawn
from sources.avro_files import CODECS, avro_file, block, datum, header

AVRO = AvroFormat()
DAY = dt.date(2024, 2, 29)
NOON = dt.datetime(2024, 2, 29, 12, 30, 1, 5000, tzinfo=dt.UTC)
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": "x", "type": "int"}]}
ENUM = {"type": "enum", "name": "Letter", "symbols": ["A", "B", "C"]}
ENTRY = {
    "type": "record",
    "name": "MapEntry",
    "namespace": "io.confluent.connect.avro",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
}
FIXED = {"type": "fixed", "name": "Three", "size": 3}


def values(content: bytes, **more: object) -> list[object]:
    """The values of a file's records."""
    return [each.value for each in records_of(reader_of(AVRO, content, **more))]


@pytest.mark.parametrize(
    ("schema", "given_values", "expected"),
    [
        ("boolean", [True, False], [True, False]),
        ("int", [0, -1, 2**31 - 1, -(2**31)], None),
        ("long", [0, 2**63 - 1, -(2**63)], None),
        ("float", [1.5, -0.25], None),
        ("double", [1e300, -0.1], None),
        ("bytes", [b"", b"\xff\0"], None),
        ("string", ["", "täxt \U0001f40d"], None),
        (["null", "string"], [None, "a", None], None),
        (["string", "null"], ["a", None], None),
        (["string"], ["a", "b"], None),
        (ENUM, ["C", "A"], ["C", "A"]),
        (["null", ENUM], ["C", None], None),
        (FIXED, [b"abc"], None),
        ({"type": "array", "items": "int"}, [[], [1, 2, 3]], None),
        ({"type": "array", "items": ["null", "string"]}, [["a", None], []], None),
        ({"type": "map", "values": "long"}, [{"a": 1, "b": 2}, {}], [[("a", 1), ("b", 2)], []]),
        (["null", {"type": "map", "values": INNER}], [None, {"a": {"x": 1}}], [None, [("a", {"x": 1})]]),
        ({"type": "array", "items": ENTRY}, [[{"key": 1, "value": "a"}]], [[(1, "a")]]),
        (INNER, [{"x": 1}], None),
        (["null", INNER], [None, {"x": 1}], None),
        ({"type": "record", "name": "Empty", "fields": []}, [{}, {}, {}], None),
        (
            ["int", "string", "null", INNER],
            [1, "a", None, {"x": 3}],
            [
                {"int": 1, "string": None, "Inner": None},
                {"int": None, "string": "a", "Inner": None},
                None,
                {"int": None, "string": None, "Inner": {"x": 3}},
            ],
        ),
        (MONEY, [decimal.Decimal("1.25"), decimal.Decimal("-0.01"), decimal.Decimal(0)], None),
        (["null", {**FIXED, "logicalType": "decimal", "scale": 1, "precision": 6}], [decimal.Decimal("-9.5"), None], None),
        ({"type": "int", "logicalType": "date"}, [DAY], None),
        ({"type": "int", "logicalType": "time-millis"}, [NOON.time()], None),
        (["null", {"type": "long", "logicalType": "timestamp-millis"}], [NOON, None], None),
        ({"type": "long", "logicalType": "timestamp-micros"}, [NOON], [1709209801005000]),
    ],
    ids=str,
)  # fmt: skip
def test_values_of_each_type(schema: object, given_values: list[Any], expected: list[Any] | None):
    """They come as they were written, in a column of the type that belongs to the schema."""
    content = avro_file(schema, given_values)
    chunk = reader_of(AVRO, content).next_chunk()
    assert chunk is not None
    chunk.values.validate(full=True)
    reader = reader_of(AVRO, content)
    assert reader.value_schema is not None

    assert (expected or given_values) == values(content)
    assert arrow_type(reader.value_schema) == chunk.values.type
    assert len(given_values) == check_resume(AVRO, content)


RECORD = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "one", "type": ["int", "string", INNER]},
        {"name": "tags", "type": {"type": "array", "items": ["null", "Inner"]}},
        {"name": "money", "type": MONEY},
        {"name": "letter", "type": ENUM},
    ],
}
ROW = some.fixed_dictionaries(
    {
        "id": some.integers(-(2**63), 2**63 - 1),
        "name": some.none() | some.text(max_size=4),
        "one": some.integers(-9, 9)
        | some.text(max_size=2)
        | some.fixed_dictionaries({"x": some.just(7)}),
        "tags": some.lists(
            some.none() | some.fixed_dictionaries({"x": some.integers(-9, 9)}), max_size=3
        ),
        "money": some.integers(-(10**6), 10**6).map(
            lambda cents: decimal.Decimal(cents).scaleb(-2)
        ),
        "letter": some.sampled_from(["A", "B", "C"]),
    }
)


@settings(max_examples=drawn(60), deadline=None)
@given(
    rows=some.lists(ROW, max_size=12),
    codec=some.sampled_from(sorted(CODECS)),
    per_block=some.integers(1, 5),
)
def test_reading_goes_on_behind_every_record(rows: list[Any], codec: str, per_block: int):
    """In every codec, with blocks of any size: by block and skip, and by a count alone."""
    content = avro_file(RECORD, rows, codec=codec, per_block=per_block)

    assert len(rows) == check_resume(AVRO, content, rows=(1, 3, 1000))
    found = [each.value for each in records_of(reader_of(AVRO, content))]
    assert [each["id"] for each in rows] == [each["id"] for each in found if isinstance(each, dict)]


@settings(max_examples=30, deadline=None)
@given(rows=some.lists(ROW, max_size=300), codec=some.sampled_from(["null", "deflate", "snappy"]))
def test_files_of_another_writer_are_read(rows: list[Any], codec: str):
    """Fastavro's own files give what fastavro's own reader finds in them."""
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema(RECORD), rows, codec=codec, sync_interval=500)
    out.seek(0)
    expected = [(each["id"], each["name"], each["money"]) for each in fastavro.reader(out)]  # pyright: ignore[reportArgumentType, reportCallIssue, reportIndexIssue]

    found = values(out.getvalue())

    assert expected == [
        (each["id"], each["name"], each["money"]) for each in found if isinstance(each, dict)
    ]


def test_an_anchor_is_where_a_block_begins():
    """Behind a block's last record that is the next block, so that nothing is read twice."""
    content = avro_file("int", [1, 2, 3, 4, 5], per_block=2)
    first = len(header("int"))
    size = len(block(datum("int", 1) * 2, 2))

    places = [(each.place.anchor, each.place.skip) for each in records_of(reader_of(AVRO, content))]

    second, third = first + size, first + 2 * size
    assert [(first, 1), (second, 0), (second, 1), (third, 0), (len(content), 0)] == places


def test_blocks_before_the_place_are_not_looked_into():
    """By its anchor a reader finds its block, and by a count alone it passes over whole blocks."""
    good = avro_file("string", ["a", "b"], per_block=1)
    damaged = header("string") + block(b"\xff", 1) + good[len(header("string")) :]
    place = records_of(reader_of(AVRO, damaged.replace(b"\xff", b"\0")))[0].place

    assert ["a", "b"] == values(damaged, resume=place)
    assert ["b"] == values(damaged, resume=type(place)(skip=2, record_count=2))


class _CountingFile(io.BytesIO):
    """Notes what is read."""

    def __init__(self, content: bytes) -> None:
        super().__init__(content)
        self.bytes_read = 0

    def readinto(self, buffer: memoryview) -> int:
        count = super().readinto(buffer)
        self.bytes_read += count
        return count


def test_the_head_of_a_large_file_is_not_read_again():
    """What lies between header and anchor is passed over by a seek."""
    content = avro_file("bytes", [b"x" * 100_000] * 20, per_block=1)
    place = records_of(reader_of(AVRO, content))[17].place
    raw = _CountingFile(content)
    reader = AVRO.reader(
        ObjectInput(native_key="it", raw=raw),  # pyright: ignore[reportArgumentType]
        span=Span(),
        resume=place,
        limits=ReadLimits(rows=10, chunk_bytes=1 << 20, record_bytes=1 << 20),
        constants={},
    )

    assert 2 == len(records_of(reader))
    assert raw.bytes_read < 500_000


@pytest.mark.parametrize("blocks", [[0], [1, 0], [0, 2, 0, 0, 1], []])
def test_empty_blocks_hold_nothing(blocks: Sequence[int]):
    """They may stand anywhere, also at the end, and a file may have none at all."""
    content = header("int") + b"".join(block(datum("int", 7) * count, count) for count in blocks)

    assert sum(blocks) == check_resume(AVRO, content)


def test_small_blocks_are_put_together():
    """One chunk holds records of many blocks, and says when it is the last."""
    content = avro_file("int", list(range(100)), per_block=3)
    reader = reader_of(AVRO, content)

    chunk = reader.next_chunk()

    assert chunk is not None
    assert (100, True) == (len(chunk), chunk.last)
    assert reader.next_chunk() is None


def test_a_chunk_is_bounded_by_bytes():
    """Large records come in more chunks than the number of records would ask for."""
    content = avro_file("bytes", [b"x" * 1000] * 100, per_block=50)
    limits = ReadLimits(rows=1000, chunk_bytes=10_000, record_bytes=1 << 20)
    reader = reader_of(AVRO, content, limits=limits)

    sizes = list[int]()
    while (chunk := reader.next_chunk()) is not None:
        sizes.append(len(chunk))

    assert 100 == sum(sizes)
    assert max(sizes) < 15


def test_a_file_may_be_packed_as_a_whole():
    """Places are then those of the unpacked file."""
    content = avro_file("int", [1, 2, 3, 4], per_block=2)
    packed = gzip.compress(content)
    place = records_of(reader_of(AVRO, content))[2].place

    assert [4] == values(packed, resume=place, compression=Compression.GZIP)
