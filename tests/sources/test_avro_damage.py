"""Avro files that are not whole: records or an error that says where, never a silent end and never a hang."""

from __future__ import annotations

import io
import zlib
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.formats.avro.format import AvroFormat
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.format import ObjectInput
from headrace.testing.format_suite import LIMITS, reader_of, records_of
from project.sampling import drawn
from sources.avro_files import CODECS, SYNC, avro_file, block, datum, header, long, text

AVRO = AvroFormat(block_bytes=1024 * 1024)
ROW = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "map", "values": {"type": "array", "items": "long"}}},
        {"name": "letter", "type": {"type": "enum", "name": "Letter", "symbols": ["A", "B"]}},
        {"name": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9}},
    ],
}
ROWS: list[Any] = [
    {"id": n, "name": "é" * n, "tags": {"a": [n, -n]}, "letter": "AB"[n % 2], "money": Decimal(n)}
    for n in range(7)
]


def seen(content: bytes) -> tuple[list[object], str | None]:
    """The records before an error, and the error; every error of one record is passed over."""
    found = list[object]()
    try:
        reader = reader_of(AVRO, content)
    except (RecordError, TaskFailedError) as error:
        return found, str(error)
    refused = None
    for _ in range(1000):
        try:
            chunk = reader.next_chunk()
        except RecordError as error:
            refused = refused or str(error)
            continue
        except TaskFailedError as error:
            with pytest.raises(TaskFailedError):
                reader.next_chunk()
            return found, str(error)
        if chunk is None:
            return found, refused
        found += chunk.values.to_pylist()
    raise AssertionError("it does not end")


@pytest.mark.parametrize("codec", CODECS)
def test_a_file_that_is_cut_off_anywhere_says_so(codec: str):
    """Only behind a whole block is a shorter file a whole one; what comes before the cut is right."""
    content = avro_file(ROW, ROWS, codec=codec)
    whole = records_of(reader_of(AVRO, content))
    borders = {
        len(header(ROW, codec)),
        *(each.place.anchor for each in whole if not each.place.skip),
    }

    for cut in range(len(content)):
        found, error = seen(content[:cut])
        assert [each.value for each in whole[: len(found)]] == found
        assert (error is None) == (cut in borders), f"cut at {cut}"
        assert error is None or "an object, " in error


@settings(max_examples=drawn(400), deadline=None)
@given(codec=some.sampled_from(sorted(CODECS)), data=some.data())
def test_flipped_bits_end_in_records_or_an_error(codec: str, data: some.DataObject):
    """Whatever the bytes say, nothing but the two kinds of errors comes out."""
    content = bytearray(avro_file(ROW, ROWS, codec=codec))
    for _ in range(data.draw(some.integers(1, 4))):
        place = data.draw(some.integers(0, len(content) - 1))
        content[place] ^= 1 << data.draw(some.integers(0, 7))

    seen(bytes(content))


@settings(max_examples=drawn(200), deadline=None)
@given(payload=some.binary(max_size=60), count=some.integers(0, 12))
def test_any_bytes_in_a_block_end_in_records_or_an_error(payload: bytes, count: int):
    """All of a block's records are read, or the block is refused."""
    found, error = seen(header(ROW) + block(payload, count))

    assert error is not None or len(found) == count


@settings(max_examples=drawn(100), deadline=None)
@given(content=some.binary(max_size=80))
def test_any_bytes_behind_the_magic_end_in_an_error(content: bytes):
    """Random bytes are no file."""
    assert seen(b"Obj\x01" + content) == ([], seen(b"Obj\x01" + content)[1])
    assert seen(b"Obj\x01" + content)[1] is not None


INT = header("int")
BLOCK = block(datum("int", 1), 1)
EMPTY = {"type": "record", "name": "Empty", "fields": []}


@pytest.mark.parametrize(
    ("content", "good", "words"),
    [
        (b"", 0, "byte 0: This is not an Avro object container file. It is empty."),
        (b"PAR1", 0, "byte 0: This is not an Avro object container file. It does not begin as one."),
        (INT + BLOCK[:-1], 0, "The file ends inside a block: it is cut off."),
        (INT + BLOCK + BLOCK[:1], 1, f"byte {len(INT + BLOCK) + 1}: The file ends inside a block"),
        (INT + BLOCK + block(b"\2", 1, sync=SYNC[::-1]), 1, f"byte {len(INT + BLOCK) + 3}: These bytes are not the file's sync marker"),
        (INT + BLOCK + b"garbage", 1, f"byte {len(INT + BLOCK)}: A block says that it has -52 records"),
        (INT + BLOCK + b"\xff" * 11, 1, "A number is longer than 64 bits."),
        (INT + block(b"\2" * 5, 3), 0, "its block holds more bytes than its records take"),
        (INT + block(b"\2" * 5, 6), 0, "A block of 5 bytes cannot hold 6 records."),
        (INT + block(b"\2" * 5, 0), 0, "A block of 5 bytes cannot hold 0 records."),
        (INT + BLOCK + block(b"\2\2\x80", 3), 3, f"an object, block at byte {len(INT + BLOCK)}, record 3 of it (record 4): This record cannot be read"),
        (INT + long(1) + long(2**40), 0, f"byte {len(INT)}: A block has {2**40} bytes, and 1048576 are the most. If blocks"),
        (header("int", "deflate") + block(b"\0" * 2**21, 2**21, "deflate"), 0, "A block unpacks to more than 1048576 bytes."),
        (header("int", "zstandard") + block(b"\0" * 2**21, 2**21, "zstandard"), 0, "unpacks to more than"),
        (header("int", "snappy") + block(b"\0" * 2**21, 2**21, "snappy"), 0, "and 1048576 are the most"),
        (header("int", "snappy") + long(1) + text(CODECS["snappy"](b"\2")[:-1] + b"?") + SYNC, 0, "The checksum behind a Snappy block is not the block's."),
        (header("int", "deflate") + long(1) + text(zlib.compress(b"\2")) + SYNC, 0, "not sound deflate data"),
        (header("int", "brotli") + BLOCK, 0, "the codec 'brotli', which is not supported (known are null, deflate"),
        (header(EMPTY) + long(10**12) + text(b"") + SYNC, 0, "A block of 0 bytes cannot hold 1000000000000 records."),
        (header("int")[:-16] + b"x", 0, "The file ends inside its header"),
        (b"Obj\x01" + long(1) + long(2**40), 0, "The header has an entry of 1099511627776 bytes."),
    ],
)  # fmt: skip
def test_damage_is_told_with_its_place(content: bytes, good: int, words: str):
    """With the object, the byte and the record."""
    found, error = seen(content)

    assert good == len(found)
    assert error is not None
    assert words in error


@pytest.mark.parametrize(
    ("schema", "bad", "words"),
    [
        ("string", text(b"\xff"), "Invalid UTF8 payload"),
        ("int", long(2**31), "too large to fit"),
        (ROW["fields"][3]["type"], long(2), "out of bounds"),
        (ROW["fields"][3]["type"], long(-1), "out of bounds"),
        (ROW["fields"][4]["type"], text(b"\x7f" * 17), "too big"),
        (ROW["fields"][4]["type"], text(b"\x7f" * 16), "precision"),
        ({"type": "int", "connect.type": "int8"}, long(128), "too large to fit"),
        ({"type": "record", "name": "R", "fields": [{"name": "f", "type": {"type": "array", "items": "string"}}]}, long(1) + text(b"\xff") + long(0), "f: Invalid UTF8"),
    ],
)  # fmt: skip
def test_one_record_that_does_not_fit_is_passed_over(schema: object, bad: bytes, words: str):
    """It raises once, with its place, and counts as a record; those before and behind it are read."""
    good = datum(schema, _any_value(schema))
    content = header(schema) + block(good * 2 + bad + good, 4) + block(bad + good, 2)
    reader = reader_of(AVRO, content)
    counts = list[list[int]]()
    errors = list[str]()
    for _ in range(5):
        try:
            chunk = reader.next_chunk()
            counts.append([] if chunk is None else chunk.counts.tolist())
        except RecordError as error:
            errors.append(str(error))

    assert [[1, 2], [4], [6]] == counts
    assert ["record 3 of it (record 3)", "record 1 of it (record 5)"] == [
        error.split(": ")[0].partition(", ")[2].partition(", ")[2] for error in errors
    ]
    assert words in errors[0]
    assert 6 == reader.place.record_count


def _any_value(schema: object) -> object:
    kind = schema["type"] if isinstance(schema, dict) else schema
    return {"string": "a", "int": 1, "enum": "A", "bytes": Decimal(5), "record": {"f": ["a"]}}[kind]


def test_a_place_that_is_no_blocks_beginning_is_refused():
    """The file was replaced by another one, so that reading cannot go on there."""
    content = avro_file("int", [1, 2, 3], per_block=1)

    for anchor in range(1, len(content)):
        place = Resume(anchor=anchor, record_count=1)
        if content[:anchor].endswith(SYNC):
            records_of(reader_of(AVRO, content, resume=place))
            continue
        with pytest.raises(TaskFailedError, match=r"an object, byte \d+: .*"):
            reader_of(AVRO, content, resume=place)


def test_bytes_behind_the_planned_end_are_not_read():
    """An object that grew ends where it was planned; one that lost whole blocks was cut short."""
    content = avro_file("int", [1, 2, 3], per_block=1)
    places = [each.place for each in records_of(reader_of(AVRO, content))]

    def read(limit: int) -> tuple[int, bool]:
        reader = AVRO.reader(
            ObjectInput(native_key="it", raw=io.BytesIO(content)),  # pyright: ignore[reportArgumentType]
            span=Span(limit=limit),
            resume=Resume(),
            limits=LIMITS,
            constants={},
        )
        return len(records_of(reader)), reader.cut_short

    assert (2, False) == read(places[1].anchor)
    assert (3, True) == read(len(content) + 1)
    with pytest.raises(TaskFailedError, match="cut off"):
        read(places[1].anchor + 1)


def test_an_error_of_the_store_is_not_damage():
    """It comes out as it is, for the one who can ask the store again."""

    class Broken(io.BytesIO):
        def readinto(self, buffer: memoryview) -> int:
            if self.tell():
                raise OSError(5, "the store is away")
            return super().readinto(memoryview(buffer)[:20])

    with pytest.raises(OSError, match="away"):
        AVRO.reader(
            ObjectInput(native_key="it", raw=Broken(INT)),  # pyright: ignore[reportArgumentType]
            span=Span(),
            resume=Resume(),
            limits=LIMITS,
            constants={},
        )
