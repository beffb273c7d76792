"""A damaged datum takes the rest of its block with it, and not the rest of the file."""

from __future__ import annotations

import dataclasses
import gzip
from typing import Any

import pytest

from headrace.formats.avro.format import AvroFormat
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.damage import DamagedObjectError
from headrace.formats.object_reader import ObjectReader
from headrace.formats.streams import Compression
from headrace.formats.unreadable import UnreadableRecordError
from headrace.testing.format_suite import LIMITS, reader_of
from sources.avro_files import CODECS, SYNC, block, datum, header, long, text

AVRO = AvroFormat(block_bytes=1024 * 1024)
FLAT: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [{"name": "id", "type": "int"}, {"name": "name", "type": "string"}],
}
LISTED: dict[str, Any] = {
    "type": "record",
    "name": "Row",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": {"type": "array", "items": "string"}},
    ],
}
PER_BLOCK, BLOCKS = 4, 3
# A length that is more than its block has.
BAD = long(7) + long(2**20)
Event = tuple[object, Resume]


def datums(schema: dict[str, Any], number: int) -> list[bytes]:
    """The records of block *number*."""
    ids = range(number * PER_BLOCK, (number + 1) * PER_BLOCK)
    name = (lambda n: [f"n{n}"]) if schema is LISTED else "n{}".format
    return [datum(schema, {"id": n, "name": name(n)}) for n in ids]


def file(schema: dict[str, Any], codec: str, damaged: int, bad: int) -> tuple[bytes, list[int]]:
    """A file with record *bad* of block *damaged* unreadable, and the places where its blocks begin, and its end."""
    content, places = header(schema, codec), list[int]()
    for number in range(BLOCKS):
        places.append(len(content))
        parts = datums(schema, number)
        if number == damaged:
            parts[bad] = BAD
        content += block(b"".join(parts), PER_BLOCK, codec)
    return content, [*places, len(content)]


def events(reader: ObjectReader) -> list[Event]:
    """The ids of records, and the references of what is lost, each with the place behind it."""
    found = list[Event]()
    while True:
        try:
            chunk = reader.next_chunk()
        except UnreadableRecordError as error:
            found.append((dict(error.record.reference), error.record.behind))
            continue
        if chunk is None:
            assert reader.place.record_count == (found[-1][1].record_count if found else 12)
            return found
        for index, value in enumerate(chunk.values.to_pylist()):
            place = [int(each[index]) for each in (chunk.anchors, chunk.skips, chunk.counts)]
            found.append(
                (value["id"], Resume(anchor=place[0], skip=place[1], record_count=place[2]))
            )


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("schema", [FLAT, LISTED], ids=["scanned", "read"])
@pytest.mark.parametrize("damaged", range(BLOCKS))
@pytest.mark.parametrize("bad", [0, 2, 3])
def test_what_is_left_of_the_block_is_lost_together(
    schema: dict[str, Any], codec: str, damaged: int, bad: int
):
    """The next block is read, everything counts, and reading goes on behind every record and behind the loss."""
    content, places = file(schema, codec, damaged, bad)
    lost = PER_BLOCK * damaged + bad
    behind = PER_BLOCK * (damaged + 1)
    reference = {
        "block": places[damaged],
        "record": bad + 1,
        "records": PER_BLOCK - bad,
        "from": places[damaged],
        "to": places[damaged + 1],
    }
    for rows in (1, 3, 1000):
        limits = dataclasses.replace(LIMITS, rows=rows)
        found = events(reader_of(AVRO, content, limits=limits))
        assert [*range(lost), reference, *range(behind, PER_BLOCK * BLOCKS)] == [
            each[0] for each in found
        ]
        assert [*range(1, lost + 1), *range(behind, PER_BLOCK * BLOCKS + 1)] == [
            each[1].record_count for each in found
        ]
        assert Resume(anchor=places[damaged + 1], record_count=behind) == found[lost][1]
        for index, (_, place) in enumerate(found):
            counted = Resume(skip=place.record_count, record_count=place.record_count)
            for resume in (place, counted):
                again = events(reader_of(AVRO, content, resume=resume, limits=limits))
                assert found[index + 1 :] == again


@pytest.mark.parametrize("codec", sorted(set(CODECS) - {"null"}))
@pytest.mark.parametrize("damaged", range(BLOCKS))
def test_a_block_that_does_not_unpack_is_lost_as_a_whole(codec: str, damaged: int):
    """Its length and the markers around it tell where it ends."""
    content, places = file(FLAT, codec, BLOCKS, 0)
    start, end = places[damaged : damaged + 2]
    packed = CODECS[codec](b"".join(datums(FLAT, damaged)))
    broken = long(PER_BLOCK) + text(b"\xff" * len(packed)) + SYNC
    assert end - start == len(broken)

    found = events(reader_of(AVRO, content[:start] + broken + content[end:]))

    lost = PER_BLOCK * damaged
    assert {"block": start, "record": 1, "records": PER_BLOCK, "from": start, "to": end} == found[
        lost
    ][0]
    assert [*range(lost), *range(lost + PER_BLOCK, PER_BLOCK * BLOCKS)] == [
        each[0] for each in found if not isinstance(each[0], dict)
    ]


def test_what_was_counted_of_a_loss_is_not_lost_again():
    """A count from elsewhere may end among the lost records."""
    content, places = file(FLAT, "null", 1, 1)
    found = events(reader_of(AVRO, content, resume=Resume(skip=6, record_count=6)))

    assert {"records": 2, "record": 3} == {key: found[0][0][key] for key in ("records", "record")}  # pyright: ignore[reportIndexIssue]
    assert Resume(anchor=places[2], record_count=8) == found[0][1]
    assert [8, 9, 10, 11] == [each[0] for each in found[1:]]


def test_a_packed_file_says_that_places_are_those_of_the_unpacked_one():
    """Nobody finds them in the packed one."""
    content, _ = file(FLAT, "null", 0, 0)
    found = events(reader_of(AVRO, gzip.compress(content), compression=Compression.GZIP))

    assert True is found[0][0]["unpacked"]  # pyright: ignore[reportIndexIssue]


@pytest.mark.parametrize("damaged", range(BLOCKS))
def test_ranges_read_apart_lose_the_same(damaged: int):
    """Wherever the file is cut into two ranges, all of it comes once, and the loss, too."""
    content, places = file(FLAT, "null", damaged, 1)
    whole = sorted(str(each[0]) for each in events(reader_of(AVRO, content)))

    for cut in range(places[0], len(content), 7):
        parts = [
            Span(start=start, stop=stop, seek_row=True)
            for start, stop in ((0, cut), (cut, len(content)))
        ]
        found = [
            str(event[0])
            for part in parts
            for event in _of_range(
                reader_of(AVRO, content, resume=Resume(anchor=part.start), span=part)
            )
        ]
        assert whole == sorted(found), f"cut at {cut}"


def test_a_damaged_block_inside_a_record_is_none_of_the_file():
    """A range that begins in the record finds the block behind it, and loses nothing."""
    fake = SYNC + long(1) + text(BAD) + SYNC
    rows = [{"id": n, "name": fake} for n in range(3)]
    schema = {**FLAT, "fields": [FLAT["fields"][0], {"name": "name", "type": "bytes"}]}
    content = header(schema) + b"".join(block(datum(schema, each), 1) for each in rows)

    for cut in range(len(header(schema)), len(content)):
        reader = reader_of(
            AVRO,
            content,
            resume=Resume(anchor=cut),
            span=Span(start=cut, stop=len(content), seek_row=True),
        )
        found = [each[0] for each in _of_range(reader)]
        assert [*range(3 - len(found), 3)] == found, f"cut at {cut}"


def _of_range(reader: ObjectReader) -> list[Event]:
    found = list[Event]()
    while True:
        try:
            chunk = reader.next_chunk()
        except UnreadableRecordError as error:
            same = error.record.constants == reader.constants()
            assert same, "the offset behind a loss knows the range's first block, too"
            found.append((dict(error.record.reference), error.record.behind))
            continue
        if chunk is None:
            return found
        found += [(each["id"], reader.place) for each in chunk.values.to_pylist()]


@pytest.mark.parametrize("count", [0, 2**40])
def test_a_block_that_neither_unpacks_nor_counts_well_ends_the_reading(count: int):
    """Its number of records would go into every offset behind it."""
    content = header(FLAT, "deflate") + long(count) + text(b"\xff" * 9) + SYNC
    reader = reader_of(AVRO, content + block(b"".join(datums(FLAT, 0)), PER_BLOCK, "deflate"))

    with pytest.raises(DamagedObjectError):
        reader.next_chunk()


@pytest.mark.parametrize(("count", "good"), [(PER_BLOCK - 1, 0), (PER_BLOCK + 1, PER_BLOCK)])
def test_a_wrong_number_of_records_ends_the_reading(count: int, good: int):
    """Their bytes are whole records, but not so many."""
    content, _ = file(FLAT, "null", BLOCKS, 0)
    wrong = long(count) + text(b"".join(datums(FLAT, 0))) + SYNC
    reader = reader_of(AVRO, header(FLAT) + wrong + content[len(header(FLAT)) :])
    if good:
        assert good == len(reader.next_chunk() or ())

    with pytest.raises(DamagedObjectError):
        reader.next_chunk()


@pytest.mark.parametrize(
    "broken",
    [
        long(-4) + text(b"x" * 12) + SYNC,
        long(400) + text(b"x" * 12) + SYNC,
        long(4) + text(b"x" * 12) + SYNC[::-1],
        long(4) + text(b"x" * 12)[:-1] + SYNC,
    ],
    ids=["count below 0", "count too high", "marker", "length"],
)
def test_a_block_whose_head_is_damaged_ends_the_reading(broken: bytes):
    """How many records it has, or where it ends, is not known."""
    content, places = file(FLAT, "null", BLOCKS, 0)
    reader = reader_of(AVRO, content[: places[1]] + broken + content[places[2] :])

    assert 4 == len(reader.next_chunk() or ())
    with pytest.raises(DamagedObjectError):
        reader.next_chunk()
