"""Ranges of one object: cut at any byte, they hold each of its records once."""

from __future__ import annotations

import io
import json
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import RecordError
from headrace.formats.avro.format import AvroFormat
from headrace.formats.blocks import Span
from headrace.formats.by_name import JSONL, LINES
from headrace.formats.chunk import Resume
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.formats.damage import DamagedObjectError
from headrace.formats.exact_bytes import ExactBytes
from headrace.formats.format import Format
from headrace.formats.parquet.footer import ColumnPlace, FooterPlaces, RowGroupPlaces
from headrace.formats.parquet.format import ParquetFormat
from headrace.formats.parquet.ranges import groups_between, row_group_begins
from headrace.testing.format_suite import check_ranges, reader_of, records_of
from project.sampling import drawn
from sources.avro_files import CODECS, SYNC, avro_file, block, datum, header, long

AVRO = AvroFormat()
PARQUET = ParquetFormat()
CUTS = some.lists(some.integers(1, 2000), max_size=6)
ROWS = some.sampled_from([1, 3, 1000])
# What looks like a marker, or like a marker with a block behind it.
MARKED = some.sampled_from(
    [SYNC, SYNC[:-1], SYNC * 2, SYNC[8:] + SYNC[:8], SYNC + long(1) + long(3)]
)
BYTES = some.lists(some.one_of(some.binary(max_size=40), MARKED), max_size=3).map(b"".join)


def range_of(content: bytes, start: int, stop: int) -> list[object]:
    """The values of a range of an Avro file."""
    span = Span(start=start, stop=stop, seek_row=True)
    reader = reader_of(AVRO, content, resume=Resume(anchor=start), span=span)
    return [each.value for each in records_of(reader)]


def parquet_file(rows: int, group: int, *, columns: int = 2) -> bytes:
    """A table of *columns* in row groups of *group* rows."""
    out = io.BytesIO()
    table = pa.table({f"c{n}": [f"{row} {n}" for row in range(rows)] for n in range(columns)})
    pq.write_table(table, out, row_group_size=group)
    return out.getvalue()


@settings(max_examples=drawn(60), deadline=None)
@given(
    values=some.lists(BYTES, max_size=12),
    per_block=some.integers(1, 4),
    codec=some.sampled_from(["null", "deflate", "snappy"]),
    cuts=CUTS,
    rows=ROWS,
)
def test_ranges_of_avro_hold_each_record_once(  # noqa: PLR0917
    values: list[bytes], per_block: int, codec: str, cuts: list[int], rows: int
) -> None:
    """Also where records hold what looks like the file's sync marker."""
    content = avro_file("bytes", values, codec=codec, per_block=per_block)

    check_ranges(AVRO, content, cuts, rows=rows)


@settings(max_examples=drawn(40), deadline=None)
@given(
    rows=some.integers(0, 12),
    group=some.integers(1, 5),
    cuts=some.lists(some.integers(1, 4000), max_size=6),
    batch=ROWS,
)
def test_ranges_of_parquet_hold_each_record_once(
    rows: int, group: int, cuts: list[int], batch: int
) -> None:
    """A row group belongs to the range that it begins in."""
    check_ranges(PARQUET, parquet_file(rows, group), cuts, rows=batch)


LETTERS = [f"{n} {'x' * (n % 3)}" for n in range(7)]
PLAIN_CSV = CsvDialect(quote="", header=False, names=("a", "b"))


@pytest.mark.parametrize(
    ("form", "content"),
    [
        (AVRO, avro_file("string", LETTERS, per_block=2)),
        (AVRO, header("string")),
        (PARQUET, parquet_file(7, 2)),
        (PARQUET, parquet_file(0, 2)),
        (JSONL, b"\n".join(json.dumps(each).encode() for each in LETTERS)),
        (LINES, "\r\n".join(LETTERS).encode()),
        (csv_format(PLAIN_CSV), b"\n" + b"".join(b'%d,"x\n' % n for n in range(6))),
    ],
    ids=["avro", "no-records", "parquet", "no-rows", "jsonl", "lines", "csv"],
)
def test_any_cut_gives_each_record_to_one_side(form: Format, content: bytes) -> None:
    """Cut once, at every byte; and into ranges of one size, which may be smaller than any record."""
    for cut in range(1, len(content), max(1, len(content) // 100)):
        check_ranges(form, content, [cut])
    for size in (1, 7, 64):
        check_ranges(form, content, range(size, len(content), max(size, len(content) // 50)))


@pytest.mark.parametrize("codec", CODECS)
def test_a_marker_that_straddles_a_border_is_found(codec: str) -> None:
    """By the range that its block begins in, wherever the border is inside the marker."""
    content = avro_file("string", LETTERS, codec=codec, per_block=1)
    marker = content.index(SYNC, len(header("string", codec)))

    for cut in range(marker - 1, marker + 18):
        found = range_of(content, 0, cut), range_of(content, cut, len(content))
        assert [*found[0], *found[1]] == LETTERS
        # The block behind the marker begins with the byte behind it.
        assert (len(found[0]) == 1) == (cut <= marker + 16)


@pytest.mark.parametrize("marker", [b"a" * 16, b"ab" * 8, SYNC])
def test_bytes_that_look_like_the_marker_are_not_taken_for_it(marker: bytes) -> None:
    """Alone, doubled, one byte early, and with a block behind them that does not end as one."""
    liars = [marker, marker * 2, b"a" * 40, marker + long(1) + long(2) + b"xy" + marker[:-1] + b"!"]
    payloads = [datum("bytes", each) for each in [*liars, b"", *liars]]
    begin = header("bytes")[:-16] + marker
    content = begin + b"".join(block(each, 1, sync=marker) for each in payloads)
    expected = [*liars, b"", *liars]

    for cut in range(1, len(content)):
        found = range_of(content, 0, cut) + range_of(content, cut, len(content))
        assert found == expected, f"cut at {cut}"


def blocks_of(content: bytes) -> list[int]:
    """Where blocks begin, and the end."""
    places = {
        each.place.anchor for each in records_of(reader_of(AVRO, content)) if not each.place.skip
    }
    return sorted({len(header("string")), *places})


@pytest.mark.parametrize("where", ["head", "payload", "marker"])
def test_a_damaged_block_is_never_left_out(where: str) -> None:
    """The range that it begins in says so; to go on at the next marker would lose it."""
    content = avro_file("string", LETTERS, per_block=1)
    begins = blocks_of(content)
    place = {"head": begins[3], "payload": begins[3] + 2, "marker": begins[4] - 5}[where]
    damaged = content[:place] + b"\xff" + content[place + 1 :]

    with pytest.raises((RecordError, DamagedObjectError)):
        range_of(damaged, begins[2] + 1, len(content))

    assert range_of(damaged, 0, begins[3]) == LETTERS[:3]
    assert range_of(damaged, begins[3] + 1, len(content)) == LETTERS[4 + (where == "marker") :]


def test_the_first_block_of_a_range_is_told_where_it_was_searched_for() -> None:
    """So that a block before it, whose marker is lost, can be missed."""
    content = avro_file("string", LETTERS, per_block=1)
    begins = blocks_of(content)

    def told(start: int, stop: int) -> object:
        span = Span(start=start, stop=stop, seek_row=True)
        return dict(reader_of(AVRO, content, resume=Resume(anchor=start), span=span).constants())

    assert told(0, len(content)) == {}
    assert told(begins[0], len(content)) == {}
    assert told(begins[1] + 1, len(content)) == {"firstBlock": begins[2]}
    assert told(begins[1] + 1, begins[2]) == {"firstBlock": begins[2]}


def test_an_object_that_ends_before_its_range_is_cut_short() -> None:
    """It is not done: the plan knew it longer."""
    content = avro_file("string", LETTERS, per_block=1)
    shorter = content[: blocks_of(content)[3]]

    reader = reader_of(
        AVRO, shorter, span=Span(start=0, stop=len(content), seek_row=True), resume=Resume()
    )

    assert [each.value for each in records_of(reader)] == LETTERS[:3]
    assert reader.cut_short


def footer(*first_bytes: tuple[int | None, int | None] | None) -> FooterPlaces:
    """What tells of row groups where the pages of their first columns begin; ``None`` for one without columns."""

    def group(pages: tuple[int | None, int | None] | None) -> RowGroupPlaces:
        return RowGroupPlaces(1, [] if pages is None else [ColumnPlace(*pages, None)])

    return FooterPlaces([group(pages) for pages in first_bytes])


FIRST_BYTES = some.none() | some.tuples(
    some.none() | some.integers(-(2**63), 2**63 - 1) | some.integers(0, 60),
    some.none() | some.integers(0, 60),
)


@given(pages=some.lists(FIRST_BYTES, max_size=12), cuts=some.lists(some.integers(1, 99)))
def test_each_row_group_belongs_to_one_range_whatever_its_footer_says(
    pages: list[tuple[int | None, int | None] | None], cuts: list[int]
) -> None:
    """And its number is never behind the byte that it begins at, nor behind the end of its range."""
    begins = row_group_begins(footer(*pages))
    borders = [0, *sorted(set(cuts)), 100]

    found = [groups_between(begins, start, stop, size=100) for start, stop in pairwise(borders)]

    assert [number for first, stop in found for number in range(first, stop)] == list(
        range(len(pages))
    )
    assert all(number <= begin for number, begin in enumerate(begins))
    assert all(after <= stop for (_, after), stop in zip(found[:-1], borders[1:], strict=False))


def test_a_row_group_begins_with_its_first_page() -> None:
    """Which may be its dictionary; some writers say 0 for one that is not there."""
    assert row_group_begins(footer((50, 4), (90, None), (120, 0))) == [4, 90, 120]


def test_formats_that_do_not_split_say_so() -> None:
    """CSV with quotes, or whose fields only the file's beginning tells."""
    whole = [
        CsvDialect(),
        CsvDialect(quote=""),
        CsvDialect(quote="", header=False),
        CsvDialect(quote="", names=("a",)),
        CsvDialect(quote="", escape="\\", header=False, names=("a",)),
        CsvDialect(quote="", header=False, names=("a",), infer=True),
        CsvDialect(quote="", header=False, names=("a",), skip_lines=1),
    ]
    assert [False] * len(whole) == [csv_format(each).splits for each in whole]
    assert csv_format(PLAIN_CSV).splits


class Sips:
    """A stream that gives *most* bytes at a time."""

    def __init__(self, content: bytes, most: int) -> None:
        self._rest = io.BytesIO(content)
        self._most = most

    def read_into(self, target: memoryview) -> int:
        """See ``ByteStream``."""
        return self._rest.readinto(target[: self._most])

    def skip(self, count: int) -> None:
        """See ``SkippingStream``."""
        self._rest.seek(count, io.SEEK_CUR)

    def close(self) -> None:
        """Nothing to do."""


@pytest.mark.parametrize("most", range(1, 9))
def test_a_marker_is_found_wherever_a_stream_cuts_it(most: int) -> None:
    """And bytes behind it are read on from there; one that ends at the border or behind it does not count."""
    content = b"abcaabcabcdefgabcdx"

    def searched(before: int) -> tuple[bool, bytes]:
        source = ExactBytes(Sips(content, most), position=100)
        found = source.go_behind(b"abcd", before=before)
        return found, source.up_to(3) if found else b""

    assert searched(119) == (True, b"efg")
    assert searched(112) == (True, b"efg")
    assert searched(111) == (False, b"")
    source = ExactBytes(Sips(content, most), position=100)
    assert source.go_behind(b"abcd", before=200)
    assert source.go_behind(b"abcd", before=200)
    assert (source.position, source.go_behind(b"abcd", before=200)) == (118, False)
