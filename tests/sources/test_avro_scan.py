"""Scanned Avro records are those that fastavro reads, and so is what is told of damage."""

from __future__ import annotations

import dataclasses
import functools
import io
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.formats.avro.container import BlockSource, read_header
from headrace.formats.avro.datums import DatumReader
from headrace.formats.avro.format import AvroFormat
from headrace.formats.avro.leaves import UNFIT
from headrace.formats.avro.reader import AvroReader
from headrace.formats.avro.reader_schema import ReaderSchema, reader_schema_of
from headrace.formats.avro.scan import UNUSUAL
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.exact_bytes import ExactBytes
from headrace.formats.format import ReadLimits
from headrace.formats.streams import Compression, open_stream
from headrace.formats.unreadable import Unread, UnreadableRecordError
from headrace.testing.format_suite import reader_of, records_of
from project.sampling import drawn
from sources.avro_files import block, datum, header, long, text

LIMITS = ReadLimits(rows=10_000, chunk_bytes=1 << 20, record_bytes=1 << 20)
SMALL = {"type": "int", "connect.type": "int8"}
DECIMAL = {"logicalType": "decimal", "precision": 9, "scale": 2}
TEXTS = some.text(max_size=3) | some.sampled_from(["x" * 63, "x" * 64, "é" * 60, "é" * 5000])
INTS = some.integers(-(2**31), 2**31 - 1)
LEAVES: list[tuple[Any, some.SearchStrategy[Any]]] = [
    ("boolean", some.booleans()),
    ("int", INTS | some.integers(-70, 70)),
    ("long", some.integers(-(2**63), 2**63 - 1) | some.integers(-70, 70)),
    ("float", some.floats(width=32)),
    ("double", some.floats()),
    ("bytes", some.binary(max_size=3)),
    ("string", TEXTS),
    (SMALL, some.integers(-128, 127)),
    ({"type": "int", "logicalType": "date"}, INTS),
    ({"type": "int", "logicalType": "time-millis"}, INTS),
    ({"type": "long", "logicalType": "timestamp-millis"}, some.integers(0, 2**45)),
    ({"type": "bytes", **DECIMAL}, some.binary(min_size=1, max_size=3)),
]
NAMED: list[tuple[dict[str, Any], some.SearchStrategy[Any]]] = [
    ({"type": "enum", "symbols": ["A", "B", "C"]}, some.sampled_from("ABC")),
    ({"type": "fixed", "size": 3}, some.binary(min_size=3, max_size=3)),
    ({"type": "fixed", "size": 0}, some.just(b"")),
    ({"type": "fixed", "size": 4, **DECIMAL}, some.binary(min_size=4, max_size=4)),
]
Typed = tuple[Any, some.SearchStrategy[Any]]


@some.composite
def kinds(draw: some.DrawFn, names: itertools.count[int], depth: int = 2) -> Typed:
    """A type that is scanned, with its values."""
    choice = draw(some.integers(0, 3 if depth else 1))
    if choice == 0:
        schema, values = draw(some.sampled_from(NAMED))
        return {**schema, "name": f"n{next(names)}"}, values
    if choice == 1:
        return draw(some.sampled_from(LEAVES))
    if choice == 2:
        schema, values = draw(
            kinds(names, depth - 1).filter(lambda each: type(each[0]) is not list)
        )
        return draw(some.permutations(["null", schema])), some.none() | values
    return draw(records(names, depth - 1))


@some.composite
def records(draw: some.DrawFn, names: itertools.count[int], depth: int = 2) -> Typed:
    """A record of such types."""
    members = draw(some.lists(kinds(names, depth), min_size=1, max_size=5))
    fields = [{"name": f"f{index}", "type": each} for index, (each, _) in enumerate(members)]
    schema = {"type": "record", "name": f"n{next(names)}", "fields": fields}
    values = {f"f{index}": each for index, (_, each) in enumerate(members)}
    return schema, some.fixed_dictionaries(values)


@some.composite
def datums(draw: some.DrawFn) -> tuple[Any, list[bytes]]:
    """A schema and the bytes of some values of it."""
    names = itertools.count()
    schema, values = draw(records(names) | kinds(names))
    return schema, [datum(schema, each) for each in draw(some.lists(values, max_size=8))]


def shape(schema: object) -> ReaderSchema:
    """What is known of files with that schema."""
    return reader_schema_of(read_header(source(header(schema))))


def source(content: bytes) -> ExactBytes:
    """*content* from its beginning."""
    raw = io.BytesIO(content)
    return ExactBytes(open_stream(raw, Compression.NONE, 0), limit=None)  # pyright: ignore[reportArgumentType]


def bits(column: pa.Array) -> object:
    """Everything about *column*'s values, also of those that are not equal to themselves."""
    kind = column.type
    if pa.types.is_struct(kind):
        return [column.is_valid().to_pylist(), *map(bits, column.flatten())]
    if pa.types.is_floating(kind):
        # Which NaN it is depends on whether it was a Python float in between.
        return [repr(each) for each in column.to_pylist()]
    if pa.types.is_primitive(kind) and not pa.types.is_boolean(kind) and kind.bit_width <= 64:
        column = column.view(f"int{kind.bit_width}")
    return column.to_pylist()


def told(content: bytes, *, scanned: bool, limits: ReadLimits = LIMITS) -> list[Any]:
    """Records with their places, and errors, in order."""
    stream = source(content)
    head = read_header(stream)
    known = reader_schema_of(head)
    reader = AvroReader(
        BlockSource(stream, head.sync, most_bytes=1 << 20),
        known if scanned else dataclasses.replace(known, scan=None),
        native_key="an object",
        resume=Resume(),
        limits=limits,
        span=Span(),
        constants={},
    )
    found, chunks = list[Any](), list[pa.Array]()
    places = np.empty((0, 3), np.int64)

    def flush() -> None:
        nonlocal places
        if chunks:
            found.append((bits(pa.concat_arrays(chunks)), places.tolist()))
        chunks.clear()
        places = places[:0]

    for _ in range(10_000):
        try:
            chunk = reader.next_chunk()
        except UnreadableRecordError as error:
            flush()
            found.append((str(error), error.record))
            continue
        except (RecordError, TaskFailedError) as error:
            flush()
            return [*found, (type(error), str(error))]
        if chunk is None:
            flush()
            return found
        chunk.values.validate()
        chunks.append(chunk.values)
        new = np.stack([chunk.anchors, chunk.skips, chunk.counts], axis=1)
        places = np.concatenate([places, new])
    raise AssertionError("it does not end")


@settings(max_examples=drawn(100), deadline=None)
@given(drawn=datums())
def test_a_scan_finds_where_records_begin_and_what_they_hold(drawn: tuple[Any, list[bytes]]):
    """Borders are those of the datums, and the column is the one of fastavro's values."""
    schema, each = drawn
    known, octets = shape(schema), b"".join(each)
    assert known.scan is not None

    places, end = known.scan.places(octets, 0, len(each))
    values, reason = DatumReader(known.column).read(io.BytesIO(octets), len(each))

    assert (len(octets), None) == (end, reason)
    assert [0, *itertools.accumulate(map(len, each))][:-1] == places[:, 0].tolist()
    expected = known.column.build(values)
    found = known.scan.build(np.frombuffer(octets, np.uint8), places)
    found.validate()
    assert expected.type == found.type
    assert bits(expected) == bits(found)


@settings(max_examples=drawn(200), deadline=None)
@given(drawn=datums(), sizes=some.lists(some.integers(1, 4)), data=some.data())
def test_flipped_bits_are_told_as_before(
    drawn: tuple[Any, list[bytes]], sizes: list[int], data: some.DataObject
):
    """Whatever the bytes are: the same records, in the same places, and the same errors."""
    schema, each = drawn
    content = header(schema)
    safe = len(content)
    left = iter(each)
    for size in [*sizes, len(each)]:
        part = list(itertools.islice(left, size))
        content += block(b"".join(part), len(part))
    damaged = bytearray(content)
    for _ in range(data.draw(some.integers(0, 3))):
        place = data.draw(some.integers(safe, len(content) - 1))
        damaged[place] ^= 1 << data.draw(some.integers(0, 7))
    limits = dataclasses.replace(LIMITS, rows=data.draw(some.sampled_from([1, 2, 5, 10_000])))

    expected = told(bytes(damaged), scanned=False, limits=limits)
    assert expected == told(bytes(damaged), scanned=True, limits=limits)


TWO = {
    "type": "record",
    "name": "Two",
    "fields": [{"name": "a", "type": ["null", "string"]}, {"name": "b", "type": "int"}],
}
LABELLED = {
    "type": "record",
    "name": "Labelled",
    "fields": [{"name": "a", "type": "string"}, {"name": "b", "type": "double"}],
}
ENUM = {"type": "enum", "name": "Letter", "symbols": ["A", "B"]}


@pytest.mark.parametrize(
    ("schema", "bad"),
    [
        ("long", b"\x80" * 10 + b"\1"),
        ("long", b"\x80"),
        ("int", long(2**31)),
        ("int", long(1) * 2),
        ("int", long(-(2**31) - 1)),
        (SMALL, long(128)),
        ("boolean", b"\2"),
        ("boolean", b"\xff"),
        ("string", text(b"\xff")),
        ("string", b"\x01a"),
        ("string", b"\x01"),
        ("string", b"\x81\x01" + b"a" * 64),
        ("string", b"\x80" * 9 + b"\1"),
        ("string", b"\x80" * 12 + b"\0"),
        ("string", long(2**40)),
        ("string", long(100) + b"a" * 50),
        ({"type": "fixed", "name": "F", "size": 9}, b"a"),
        (LABELLED, text(b"aaa") + b"1234"),
        (ENUM, long(2)),
        (ENUM, long(-1)),
        (TWO, b"\4\0"),
        (TWO, b"\1\0"),
        (TWO, b"\3\0"),
        (TWO, b"\x80\0\0"),
        (TWO, b"\2" + text(b"\xff") + b"\0"),
        (TWO, b"\0" + long(2**31)),
        ({"type": "bytes", **DECIMAL}, text(b"\x7f" * 17)),
    ],
    ids=str,
)
@pytest.mark.parametrize("behind", [0, 1, 3])
def test_each_kind_of_damage_is_seen_by_a_scan(schema: object, bad: bytes, behind: int):
    """It gives up, or its column is refused; and then it is told as it is without one."""
    good = datum(schema, example(schema))
    octets = good * 2 + bad + good * behind

    with pytest.raises((*UNUSUAL, *UNFIT)):
        scanned(schema, octets, 3 + behind)

    content = header(schema) + block(good, 1) + block(octets, 3 + behind) + block(good * 2, 2)
    found = told(content, scanned=True)
    assert told(content, scanned=False) == found
    assert "BytesIO" not in str(found), "no addresses of memory"


@pytest.mark.parametrize(
    ("schema", "padded"),
    [
        ("long", b"\x82\x80\x00"),
        ("long", b"\xff" * 9 + b"\x01"),
        ("long", b"\xff" * 9 + b"\x7f"),
        ("string", b"\x82\x00a"),
        ("string", b"\x82\x80\x00a"),
        (TWO, b"\x82\x00\2ab\0"),
        ("long", b"\xff" * 20 + b"\x01"),
        ("string", b"\x82" + b"\x80" * 62 + b"\0a"),
    ],
    ids=str,
)
def test_numbers_in_more_bytes_than_they_take_are_read(schema: object, padded: bytes):
    """What they are, or in what is no number at all, fastavro decides."""
    good = datum(schema, example(schema))
    content = header(schema) + block(good + padded + good, 3)

    found = told(content, scanned=True)

    assert told(content, scanned=False) == found


def scanned(schema: object, octets: bytes, count: int) -> pa.Array:
    """The column of *count* records that are all of *octets*; raises what a scan does otherwise."""
    known = shape(schema)
    assert known.scan is not None
    places, end = known.scan.places(octets, 0, count)
    if end < len(octets):
        raise ValueError("bytes are left")
    return known.scan.build(np.frombuffer(octets, np.uint8), places)


def example(schema: Any) -> object:  # noqa: ANN401 (JSON)
    """A value of *schema*."""
    kind = schema if isinstance(schema, str) else schema["type"]
    found = {"string": "a", "boolean": True, "double": 0.5, "enum": "B", "bytes": b"\5"}
    more = {"fixed": b"x" * 9, "record": {"a": "b", "b": 7.0 if schema is LABELLED else 7}}
    return {**found, **more}.get(kind, 5)


@pytest.mark.parametrize("per_block", [7, 700, 5000])
def test_bad_records_among_many_are_passed_over(per_block: int):
    """Each by itself, with its own bytes, however many good ones are read with it."""
    good, bad = datum(TWO, {"a": "b" * 70, "b": -5}), b"\2" + text(b"\xff") + b"\0"
    places = {3, 4, 700, 2999}
    each = [bad if number in places else good for number in range(3000)]
    starts = range(0, 3000, per_block)
    parts = [each[start : start + per_block] for start in starts]
    content = header(TWO) + b"".join(block(b"".join(part), len(part)) for part in parts)

    found = told(content, scanned=True)

    assert [bad] * 4 == [each[1].raw for each in found if isinstance(each[1], Unread)]
    assert told(content, scanned=False) == found


@pytest.mark.parametrize("skip", [1, 30, 31, 64, 99])
def test_a_scan_skips_what_was_read_before(skip: int):
    """Within a block as well as by whole blocks."""
    each = [datum("int", number) for number in range(100)]
    content = header("int") + b"".join(
        block(b"".join(each[at : at + 30]), len(each[at : at + 30])) for at in range(0, 100, 30)
    )

    reader = reader_of(AvroFormat(), content, resume=Resume(skip=skip, record_count=skip))

    assert [*range(skip, 100)] == [each.value for each in records_of(reader)]


@pytest.mark.parametrize("schema", ["long", ["null", "long"], "boolean", ENUM], ids=str)
def test_a_chunk_of_small_values_is_bounded_by_what_they_take_as_a_column(schema: object):
    """Not by the single bytes that they are in Avro."""
    content = header(schema) + block(b"\0" * 100_000, 100_000)
    limits = dataclasses.replace(LIMITS, rows=1_000_000, chunk_bytes=10_000)
    reader = reader_of(AvroFormat(), content, limits=limits)

    sizes = list[int]()
    while (chunk := reader.next_chunk()) is not None:
        sizes.append(len(chunk))
        assert chunk.values.nbytes <= limits.chunk_bytes

    assert 100_000 == sum(sizes)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": "int"},
        {"type": "map", "values": "int"},
        ["int", "string"],
        ["string"],
        {"type": "record", "name": "E", "fields": []},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": ["null", {"type": "array", "items": "int"}]}]},
        {"type": "record", "name": "R", "fields": [{"name": f"f{number}", "type": "int"} for number in range(1000)]},
        functools.reduce(lambda inner, number: ["null", {"type": "record", "name": f"R{number}", "fields": [{"name": "a", "type": inner}]}], range(100), "int"),
    ],
    ids=range(8),
)  # fmt: skip
def test_other_types_are_left_to_fastavro(schema: object):
    """As are records beyond what a function can be made for."""
    assert shape(schema).scan is None


def test_no_word_of_the_schema_gets_into_the_scan():
    """Names may be anything in a file that somebody made."""
    name = "x = __import__('os')"
    fields = [{"name": name, "type": ["null", {"type": "fixed", "name": f"{name}.y", "size": 1}]}]
    known = shape({"type": "record", "name": name, "fields": fields})
    assert known.scan is not None

    places, end = known.scan.places(b"\0\2a", 0, 2)

    assert ([[0], [1]], 3) == (places.tolist(), end)


def test_objects_of_one_schema_share_a_function():
    """Compiling takes longer than reading a small object."""
    first, second = shape(TWO).scan, shape(TWO).scan
    assert first is not None
    assert second is not None

    assert first.function is second.function
