"""Bad records of every format: their bytes, their place, and reading that goes on behind each of them."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.schema import INT64
from headrace.formats.avro.format import AvroFormat
from headrace.formats.blocks import Span
from headrace.formats.by_name import JSONL, LINES
from headrace.formats.chunk import Resume
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.formats.format import Format, ObjectInput, ReadLimits
from headrace.formats.object_reader import ObjectReader
from headrace.formats.parquet.format import ParquetFormat
from headrace.formats.streams import Compression
from headrace.formats.unreadable import UnreadableRecordError
from headrace.sources import Context, NativeItem
from headrace.sources.extractor import ValueExtractor
from headrace.testing.format_suite import Found, Piece, check_passing_over, pieces_of, reader_of
from project.sampling import drawn
from sources.avro_files import block, datum, header, text

CSV = csv_format(CsvDialect(types=(("n", "integer"),)))
BARE_CSV = csv_format(CsvDialect(header=False, names=("n", "s"), quote=""))
TEXTS: dict[str, tuple[Format, list[bytes], list[bytes], bytes]] = {
    "jsonl": (JSONL, [b'{"a":1}', b"[]", b" 2 "], [b"{", b"1 2", b'"\xff"', b"no"], b""),
    "lines": (LINES, [b"a", b"", b"\xc3\xa9"], [b"\xff", b"a\xc3"], b""),
    "csv": (CSV, [b"1,a", b'2,"x"'], [b"1", b"1,2,3", b"x,a", b"1,\xff", b"1,\0"], b"n,s\n"),
    "bare csv": (BARE_CSV, [b"1,a", b'2,"'], [b"1", b"1,2,3", b"1,\xff"], b""),
}


def unreadable(pieces: Iterable[Piece]) -> list[UnreadableRecordError]:
    """The bad ones."""
    return [each for each in pieces if isinstance(each, UnreadableRecordError)]


@settings(deadline=None)
@given(name=some.sampled_from(sorted(TEXTS)), data=some.data())
def test_good_and_bad_rows_are_all_there_is(name: str, data: some.DataObject):
    """Each bad row has its own bytes and their place, whatever is around it."""
    form, good, bad, head = TEXTS[name]
    rows = data.draw(some.lists(some.sampled_from(good + bad), max_size=9))
    end = data.draw(some.sampled_from([b"\n", b"\r\n"]))
    content = head + b"".join(row + end for row in rows)

    pieces = check_passing_over(form, content)

    assert [row in bad for row in rows] == [not isinstance(each, Found) for each in pieces]
    assert [row for row in rows if row in bad] == [each.record.raw for each in unreadable(pieces)]
    for each in unreadable(pieces):
        start, stop = each.record.reference["from"], each.record.reference["to"]
        assert each.record.raw + end == content[start:stop]
        assert stop == each.record.behind.anchor


def test_a_bad_last_row_needs_no_line_end():
    """All there is of it is its bytes."""
    (error,) = unreadable(check_passing_over(JSONL, b'{}\n{"a":'))

    assert (b'{"a":', {"from": 3, "to": 8}) == (error.record.raw, error.record.reference)


def test_places_in_a_packed_object_say_that_they_are_of_what_it_unpacks_to():
    """A range of packed bytes would be of no use."""
    pieces = pieces_of(
        reader_of(JSONL, gzip.compress(b"{}\nno\n{}\n"), compression=Compression.GZIP)
    )

    assert {"from": 3, "to": 6, "unpacked": True} == unreadable(pieces)[0].record.reference
    assert 3 == len(pieces)


# ------------------------------------------------------------------ rows that are too long

LONG = ReadLimits(rows=1000, chunk_bytes=16, record_bytes=20, record_key="the limit")


def long_rows(
    content: bytes, *, span: Span | None = None, resume: Resume | None = None
) -> ObjectReader:
    """A reader that takes rows of 20 bytes, in blocks of 16."""
    return LINES.reader(
        ObjectInput(native_key="an object", raw=io.BytesIO(content)),  # pyright: ignore[reportArgumentType]
        span=span or Span(),
        resume=resume or Resume(),
        limits=LONG,
        constants={},
    )


@pytest.mark.parametrize("length", [21, 40, 400])
@pytest.mark.parametrize("end", [b"", b"\n", b"\nb\n"])
def test_a_row_that_is_too_long_is_told_by_its_place(length: int, end: bytes):
    """It is never held in memory; its end is found before it is told, so that the offset is behind it."""
    content = b"a\n" + b"x" * length + end

    pieces = pieces_of(long_rows(content))

    (error,) = unreadable(pieces)
    behind = 2 + length + len(end[:1])
    assert (None, {"from": 2, "to": behind}) == (error.record.raw, error.record.reference)
    assert Resume(anchor=behind, record_count=2) == error.record.behind
    assert [b"a", b"b"][: 1 + (len(end) > 1)] == [
        each.value.encode() for each in pieces if isinstance(each, Found)
    ]
    rest = pieces_of(long_rows(content, resume=error.record.behind))
    assert len(rest) == len(pieces) - 2


def test_the_beginning_of_a_long_row_that_grows_is_not_passed_over():
    """Nobody knows yet where the next row begins: what comes later would be taken for one."""
    reader = long_rows(b"a\n" + b"x" * 30, span=Span(limit=32, take_tail=False))

    chunk = reader.next_chunk()
    assert chunk is not None
    assert 1 == len(chunk)
    with pytest.raises(RecordError) as caught:
        reader.next_chunk()

    assert not isinstance(caught.value, UnreadableRecordError)


class Failing(io.BytesIO):
    """Bytes behind which a store is away."""

    def readinto(self, buffer: memoryview, /) -> int:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The next bytes, of which there must be some."""
        count = super().readinto(buffer)
        if not count:
            raise OSError("the store is away")
        return count


@pytest.mark.parametrize("skip", [0, 2])
def test_an_outage_inside_a_long_row_is_an_outage(skip: int):
    """It is tried again, and the row is not told yet."""
    reader = LINES.reader(
        ObjectInput(native_key="an object", raw=Failing(b"a\n" + b"x" * 400)),  # pyright: ignore[reportArgumentType]
        span=Span(),
        resume=Resume(skip=skip, record_count=skip),
        limits=LONG,
        constants={},
    )
    if not skip:
        assert reader.next_chunk()

    for _ in range(2):
        with pytest.raises(OSError, match="the store is away"):
            reader.next_chunk()


def test_a_split_inside_a_long_row_that_grows_is_not_done():
    """What is added to the row would be taken for the next one."""
    span = Span(start=10, stop=32, limit=32, take_tail=False, seek_row=True)
    reader = long_rows(b"a\n" + b"x" * 30, span=span, resume=Resume(anchor=10))

    assert reader.next_chunk() is None
    assert reader.cut_short


def test_a_long_row_belongs_to_the_split_that_it_begins_in():
    """Otherwise two slots would pass it over."""
    content = b"a\n" + b"x" * 300 + b"\nb\n"
    splits = [Span(start=0, stop=2), Span(start=2, stop=10), Span(start=10, seek_row=True)]

    found = [
        pieces_of(long_rows(content, span=span, resume=Resume(anchor=span.start)))
        for span in splits
    ]

    assert [0, 1, 0] == [len(unreadable(each)) for each in found]
    assert [1, 1, 1] == [len(each) for each in found]


# ------------------------------------------------------------------ containers


@settings(deadline=None, max_examples=drawn(40))
@given(blocks=some.lists(some.lists(some.booleans(), min_size=1, max_size=5), max_size=3))
def test_avro_records_that_do_not_fit_have_their_own_bytes(blocks: list[list[bool]]):
    """In blocks of any shape; the place is the block's and the record's number in it."""
    good, wrong = datum("string", "good"), text(b"\xff\xfe")
    content = header("string") + b"".join(
        block(b"".join(wrong if is_bad else good for is_bad in each), len(each)) for each in blocks
    )

    pieces = check_passing_over(AvroFormat(), content)

    flat = [is_bad for each in blocks for is_bad in each]
    assert flat == [not isinstance(each, Found) for each in pieces]
    assert all(each.record.raw == wrong for each in unreadable(pieces))
    numbers = [number for each in blocks for number, is_bad in enumerate(each, 1) if is_bad]
    assert numbers == [each.record.reference["record"] for each in unreadable(pieces)]


def test_avro_bytes_are_found_far_inside_a_block():
    """Records are read in pages, and the bad one is read again from the beginning of its own."""
    values = [text(b"%d" % number) for number in range(1500)]
    values[1299] = text(b"\xff1299")
    content = header("string") + block(b"".join(values), len(values))

    (error,) = unreadable(pieces_of(reader_of(AvroFormat(), content)))

    assert values[1299] == error.record.raw


def test_parquet_rows_that_are_refused_are_told_by_their_place():
    """Their bytes are spread over the pages of columns."""
    table = pa.table({"s": [f"value {number:03}" for number in range(12)]})
    written = io.BytesIO()
    pq.write_table(table, written, row_group_size=4, compression="none", use_dictionary=False)
    content = written.getvalue()
    for number in (3, 4, 9):
        content = content.replace(b"value %03d" % number, b"\xff" * 9)

    pieces = check_passing_over(ParquetFormat(), content)

    assert [
        (None, {"rowGroup": 0, "row": 3}),
        (None, {"rowGroup": 1, "row": 0}),
        (None, {"rowGroup": 2, "row": 1}),
    ] == [(each.record.raw, each.record.reference) for each in unreadable(pieces)]
    assert 12 == len(pieces)


# ------------------------------------------------------------------ values


class Numbers(NativeItem[str]):
    """An item that is no stream."""

    def __init__(self, values: list[object]) -> None:
        self.values = values

    def context(self) -> Context[str]:
        """Its name is of no importance."""
        return Context(native_key="numbers")


class NumberExtractor(ValueExtractor):
    """Its values should be numbers."""

    value_schema = INT64

    def values(self, item: NativeItem[Any]) -> Iterable[object]:
        """As they are."""
        assert isinstance(item, Numbers)
        return item.values


@given(
    some.lists(some.sampled_from([1, 2, "no", [3]]), max_size=12),
    some.sampled_from([1, 2, 5, 100]),
)
def test_a_value_that_does_not_fit_takes_no_others_with_it(values: list[Any], rows: int):
    """It is told by its number; reading goes on behind it, here and in another reader."""
    item = Numbers(values)
    limits = ReadLimits(rows=rows, chunk_bytes=1000, record_bytes=1000)

    def read(resume: Resume) -> list[Piece]:
        return pieces_of(NumberExtractor().reader(item, resume, limits, {}))

    pieces = read(Resume())

    fitting = [isinstance(value, int) for value in values]
    assert fitting == [isinstance(each, Found) for each in pieces]
    for index, each in enumerate(pieces):
        place = each.place if isinstance(each, Found) else each.record.behind
        assert len(values) - index - 1 == len(read(place))


# ------------------------------------------------------------------ what cannot be delimited


@pytest.mark.parametrize(
    ("form", "content", "packing"),
    [
        (JSONL, gzip.compress(b"{}\n" * 9)[:-3], Compression.GZIP),
        (CSV, b'n,s\n1,a\n2,"never closed\n', Compression.NONE),
        (CSV, b"n,n\n1,a\n", Compression.NONE),
        (AvroFormat(), header("int") + block(datum("int", 1), 1)[:-1], Compression.NONE),
    ],
    ids=["cut off", "open quote", "bad header", "broken block"],
)
def test_where_nothing_behind_can_be_found_it_is_no_bad_record(
    form: Format, content: bytes, packing: Compression
):
    """So nothing can pass over it: it would be all that is left of the object."""
    reader = reader_of(form, content, compression=packing)
    errors = list[Exception]()
    for _ in range(5):
        try:
            reader.next_chunk()
        except (RecordError, TaskFailedError) as error:
            errors.append(error)

    assert errors
    assert not any(isinstance(each, UnreadableRecordError) for each in errors)
