"""The conformance checks of formats, which an author runs on contents of their own."""

from __future__ import annotations

import dataclasses
import io
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.connect.partition import OffsetValue
from headrace.formats.blocks import Span
from headrace.formats.chunk import Chunk, Resume
from headrace.formats.format import Format, ObjectInput, ReadLimits
from headrace.formats.object_reader import ObjectReader
from headrace.formats.streams import Compression
from headrace.formats.unreadable import UnreadableRecordError

LIMITS = ReadLimits(rows=1000, chunk_bytes=64 * 1024, record_bytes=1024 * 1024)
FROM_THE_BEGINNING = Resume()
WHOLE = Span()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A record as it was read: its value in Python, and the place after it."""

    value: object
    place: Resume
    constants: Mapping[str, OffsetValue]


def reader_of(
    made: Format,
    content: bytes,
    *,
    resume: Resume = FROM_THE_BEGINNING,
    constants: Mapping[str, OffsetValue] | None = None,
    limits: ReadLimits = LIMITS,
    compression: Compression = Compression.NONE,
    span: Span = WHOLE,
) -> ObjectReader:
    """A reader of an object of *content*, or of a *span* of it."""
    return made.reader(
        ObjectInput(native_key="an object", raw=io.BytesIO(content), compression=compression),  # pyright: ignore[reportArgumentType]
        span=span,
        resume=resume,
        limits=limits,
        constants=constants or {},
    )


def records_of(reader: ObjectReader) -> list[Found]:
    """Everything *reader* reads; raises what it raises."""
    found = list[Found]()
    while (chunk := reader.next_chunk()) is not None:
        found += _found(chunk)
    reader.close()
    return found


def check_resume(made: Format, content: bytes, *, rows: Sequence[int] = (1, 2, 1000)) -> int:
    """Assert that reading resumes after every record of *content*; returns how many there are.

    Whatever the size of chunks (*rows*), the same records come with the same places; after each of them, a
    new reader finds all that follow and nothing else, also with a count alone; and the place at the end is
    after the last record.
    """
    reader = reader_of(made, content)
    records = records_of(reader)
    assert reader.place.record_count == len(records), "the end must count every record"
    for few in rows:
        limits = dataclasses.replace(LIMITS, rows=few)
        again = records_of(reader_of(made, content, limits=limits))
        assert [each.value for each in again] == [each.value for each in records], "order repeats"
        for index, record in enumerate(again):
            counted = Found(
                value=None, place=Resume(skip=index + 1, record_count=index + 1), constants={}
            )
            for last in (record, counted):
                _assert_rest(_after(made, content, last), again[index + 1 :], index + 2)
    end = Found(value=None, place=reader.place, constants=reader.constants())
    assert _after(made, content, end) == [], "nothing follows the end"
    return len(records)


def check_ranges(made: Format, content: bytes, cuts: Sequence[int], *, rows: int = 1000) -> None:
    """Assert that ranges of *content* between *cuts*, which are bytes, hold each record once, in their order.

    Reading of each range resumes after every one of its records, and after a count of its records alone. Resuming must
    not depend on where the other ranges are cut, so a caller tries more than one set of *cuts*.
    """
    assert made.splits, "the format says that it can be read in ranges"
    limits = dataclasses.replace(LIMITS, rows=rows)
    expected = [each.value for each in records_of(reader_of(made, content))]
    found = list[object]()
    borders = [0, *sorted({cut for cut in cuts if 0 < cut < len(content)}), len(content)]
    for start, stop in itertools.pairwise(borders):
        found += _checked_range(made, content, (start, stop), limits)
    assert found == expected, "the ranges together are the object"


def _checked_range(
    made: Format, content: bytes, borders: tuple[int, int], limits: ReadLimits
) -> list[object]:
    """The values of a range, after resuming at each of its places."""
    start, stop = borders
    begun = Span(start=start, stop=stop, seek_row=made.sealed or start > 0)
    reader = reader_of(made, content, resume=Resume(anchor=start), limits=limits, span=begun)
    records = records_of(reader)
    assert not reader.cut_short, "a range ends after its last record"
    assert reader.place.record_count == len(records), "a range counts its own records"
    for index, record in enumerate(records):
        resumed = dataclasses.replace(begun, seek_row=False)
        counted = Resume(anchor=start, skip=index + 1, record_count=index + 1)
        for span, resume in ((resumed, record.place), (begun, counted)):
            known = record.constants if span is resumed else None
            again = reader_of(made, content, resume=resume, constants=known, span=_at(span, resume))
            _assert_rest(records_of(again), records[index + 1 :], index + 2)
    end = reader.place
    after = _at(dataclasses.replace(begun, seek_row=False), end)
    again = reader_of(made, content, resume=end, constants=reader.constants(), span=after)
    assert not records_of(again), "nothing of a range follows its end"
    return [each.value for each in records]


def _at(span: Span, resume: Resume) -> Span:
    return span if span.seek_row else dataclasses.replace(span, start=resume.anchor)


Piece = Found | UnreadableRecordError


def check_passing_over(
    made: Format, content: bytes, *, rows: Sequence[int] = (1, 2, 1000)
) -> list[Piece]:
    """Assert that reading resumes after every record of *content*, good or bad; returns them in order.

    Whatever the size of chunks (*rows*), after each record and each bad one a new reader finds all that
    follow and nothing else, with the same errors, also with a count alone.
    """
    pieces = pieces_of(reader_of(made, content))
    for few in rows:
        limits = dataclasses.replace(LIMITS, rows=few)
        again = pieces_of(reader_of(made, content, limits=limits))
        assert _comparable(again) == _comparable(pieces)
    for index, piece in enumerate(pieces):
        place, constants = (
            (piece.place, piece.constants)
            if isinstance(piece, Found)
            else (piece.record.behind, piece.record.constants)
        )
        assert place.record_count == index + 1, "every record counts, and every bad one"
        counted = Resume(skip=index + 1, record_count=index + 1)
        for resume, known in ((place, constants), (counted, dict[str, OffsetValue]())):
            rest = pieces_of(reader_of(made, content, resume=resume, constants=known))
            assert _comparable(rest) == _comparable(pieces[index + 1 :]), "reading resumes after it"
    return pieces


def pieces_of(reader: ObjectReader) -> list[Piece]:
    """Everything *reader* reads, bad records in their places; raises what ends the reading."""
    found = list[Piece]()
    while True:
        try:
            chunk = reader.next_chunk()
        except UnreadableRecordError as error:
            found.append(error)
            continue
        if chunk is None:
            reader.close()
            return found
        found += _found(chunk)


def _comparable(pieces: Sequence[Piece]) -> list[object]:
    return [
        each.value if isinstance(each, Found) else (str(each), each.record.raw, each.record.behind)
        for each in pieces
    ]


def _after(made: Format, content: bytes, record: Found) -> list[Found]:
    return records_of(reader_of(made, content, resume=record.place, constants=record.constants))


def _assert_rest(found: list[Found], rest: list[Found], first: int) -> None:
    assert [each.value for each in found] == [each.value for each in rest], "the values that follow"
    counts = [each.place.record_count for each in found]
    assert counts == list(range(first, first + len(rest))), "the counts that follow"


def _found(chunk: Chunk) -> list[Found]:
    places = zip(chunk.anchors.tolist(), chunk.skips.tolist(), chunk.counts.tolist(), strict=True)
    return [
        Found(
            value=value,
            place=Resume(anchor=anchor, skip=skip, record_count=count),
            constants=chunk.constants,
        )
        for value, (anchor, skip, count) in zip(chunk.values.to_pylist(), places, strict=True)
    ]
