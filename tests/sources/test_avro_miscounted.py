"""Blocks of Avro files that say they have fewer records than their bytes: none of these is sent, wherever reading began."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from headrace.formats.avro.format import AvroFormat
from headrace.formats.chunk import Resume
from headrace.formats.damage import DamagedObjectError
from headrace.formats.object_reader import ObjectReader
from headrace.formats.unreadable import UnreadableRecordError
from headrace.testing.format_suite import LIMITS, reader_of
from sources.avro_files import block, datum, header, long, text

AVRO = AvroFormat(block_bytes=1024 * 1024)
ID = {"name": "id", "type": "int"}
FLAT = {"type": "record", "name": "Row", "fields": [ID, {"name": "v", "type": "string"}]}
LISTS = {"type": "array", "items": "string"}
LISTED = {"type": "record", "name": "Row", "fields": [ID, {"name": "v", "type": LISTS}]}
INNER = {"type": "record", "name": "Inner", "fields": [{"name": f"f{n}", "type": "int"} for n in range(9)]}  # fmt: skip
SPARSE = {"type": "record", "name": "Row", "fields": [ID, {"name": "v", "type": ["null", INNER]}]}
VALUES = {"scanned": (FLAT, "a"), "read": (LISTED, ["a", "b"]), "sparse": (SPARSE, None)}
COUNT = 1200


def rows(kind: str, count: int) -> list[bytes]:
    """So many records."""
    schema, value = VALUES[kind]
    return [datum(schema, {"id": n, "v": value}) for n in range(count)]


def events(content: bytes, resume: Resume, most: int) -> tuple[list[Any], list[Resume], str]:
    """The ids, what is said of records that do not fit, the place behind each, and how it ends."""
    reader = reader_of(AVRO, content, resume=resume, limits=dataclasses.replace(LIMITS, rows=most))
    found, places = list[Any](), list[Resume]()
    try:
        while _more(reader, found, places):
            pass
    except DamagedObjectError as error:
        return found, places, str(error)
    return found, places, ""


def _more(reader: ObjectReader, found: list[Any], places: list[Resume]) -> bool:
    try:
        chunk = reader.next_chunk()
    except UnreadableRecordError as error:
        found.append((error.position, error.record.raw))
        places.append(error.record.behind)
        return True
    if chunk is not None:
        found += [each["id"] for each in chunk.values.to_pylist()]
        positions = zip(chunk.anchors, chunk.skips, chunk.counts, strict=True)
        places += [Resume(anchor=int(a), skip=int(s), record_count=int(c)) for a, s, c in positions]
    return chunk is not None


@pytest.mark.parametrize("most", [1, 2, 3, 1000])
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("count", [5, 700])
def test_no_record_of_a_block_with_more_bytes_than_records_is_given(
    kind: str, count: int, most: int
):
    """The same from every record before it: in portions, too, of which the last one shows it."""
    schema, _ = VALUES[kind]
    good, wrong = rows(kind, 5), rows(kind, count + 1)
    content = header(schema) + block(b"".join(good), 5)
    start = len(content)
    content += block(b"".join(wrong), count)

    found, places, told = events(content, Resume(), most)

    assert [*range(5)] == found
    assert f"an object, block at byte {start}, record 1 of it (record 6): " in told
    assert "its block holds more bytes than its records take" in told
    for index, place in enumerate(places):
        assert (found[index + 1 :], told) == events(content, place, most)[::2]
    # A place inside of it, from when its first records were given, is none to go on from either.
    assert ([], told) == events(content, Resume(anchor=start, skip=2, record_count=7), most)[::2]


@pytest.mark.parametrize("kept", [0, 1, 100])
@pytest.mark.parametrize("kind", VALUES)
def test_a_sound_block_is_given_in_portions_of_any_size(
    kind: str, kept: int, monkeypatch: pytest.MonkeyPatch
):
    """However much of it is kept while it is looked through."""
    monkeypatch.setattr("headrace.formats.avro.block._MOST_KEPT", kept)
    schema, _ = VALUES[kind]
    content = header(schema) + block(b"".join(rows(kind, COUNT)), COUNT)

    for most in (7, 500, 513, 5000):
        found, places, told = events(content, Resume(), most)
        assert ([*range(COUNT)], "") == (found, told)
        assert [*range(1, COUNT + 1)] == [each.record_count for each in places]
        for index in (0, 6, 511, 512, 700, COUNT - 1):
            assert found[index + 1 :] == events(content, places[index], most)[0]


@pytest.mark.parametrize("bad", [3, 600, 1199])
def test_a_record_that_does_not_fit_is_told_from_a_block_in_portions(bad: int):
    """With its bytes and its place; the others are given."""
    parts = rows("read", COUNT)
    parts[bad] = long(bad) + long(1) + text(b"\xff") + long(0)
    content = header(LISTED) + block(b"".join(parts), COUNT)
    start = len(header(LISTED))
    told = (f"block at byte {start}, record {bad + 1} of it (record {bad + 1})", parts[bad])

    for most in (100, 1000):
        found, places, _ = events(content, Resume(), most)
        assert [*range(bad), told, *range(bad + 1, COUNT)] == found
        for index in (0, bad - 1, bad):
            assert found[index + 1 :] == events(content, places[index], most)[0]


@pytest.mark.parametrize("kind", ["scanned", "read"])
@pytest.mark.parametrize("bad", [3, 600, 1199])
def test_records_before_a_damaged_one_are_given_from_a_block_in_portions(kind: str, bad: int):
    """It can be told where they end."""
    parts = rows(kind, COUNT)
    parts[bad] = long(bad) + long(2**20)
    content = header(VALUES[kind][0]) + block(b"".join(parts), COUNT)

    for most in (100, 1000):
        found, places, told = events(content, Resume(), most)
        assert [*range(bad)] == found[:-1]
        assert "" == told
        assert found[bad:] == events(content, places[bad - 1], most)[0]
