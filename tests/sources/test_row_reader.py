"""Reading in blocks: how the bytes are cut must never show."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Callable

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connect.errors import RecordError
from headrace.formats.blocks import BlockReader, Span
from headrace.formats.chunk import Resume
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.extractor import CsvExtractor
from headrace.formats.csv.framing import csv_framing
from headrace.formats.damage import DamagedObjectError
from headrace.formats.decoding import DecodingExtractor
from headrace.formats.jsonl import JsonLinesExtractor
from headrace.formats.line_framing import Framing, LineFraming
from headrace.formats.lines import LinesExtractor
from headrace.formats.return_framing import ReturnFraming
from headrace.formats.row_extractor import RowExtractor
from headrace.formats.row_reader import RowReader
from headrace.formats.streams import Compression, open_stream
from headrace.formats.text_encoding import TextEncoding, encoding_named
from project.sampling import drawn

_FOUND = encoding_named("windows-1252")
assert _FOUND is not None
WINDOWS: TextEncoding = _FOUND
COMMA = CsvDialect(header=False, names=("a", "b"))
ESCAPED = CsvDialect(header=False, names=("a", "b"), escape="\\")
BARE = CsvDialect(header=False, names=("a", "b"), quote="")
COMMENTED = CsvDialect(header=False, names=("a", "b"), comment="a")
TRIMMED = CsvDialect(header=False, names=("a", "b"), trim=True)
TRIMMED_ESCAPED = CsvDialect(header=False, names=("a", "b"), escape="\\", comment="{", trim=True)
SKIPPING = CsvDialect(header=False, names=("a", "b"), skip_lines=2, comment="1")
FORMATS: dict[str, Callable[[], tuple[Framing, RowExtractor]]] = {
    "lines": lambda: (LineFraming(), LinesExtractor()),
    "returns": lambda: (ReturnFraming(), LinesExtractor(replace=True)),
    "jsonl": lambda: (LineFraming(), JsonLinesExtractor()),
    "csv": lambda: (csv_framing(COMMA), CsvExtractor(COMMA)),
    "escaped csv": lambda: (csv_framing(ESCAPED), CsvExtractor(ESCAPED)),
    "bare csv": lambda: (csv_framing(BARE), CsvExtractor(BARE)),
    "commented csv": lambda: (csv_framing(COMMENTED), CsvExtractor(COMMENTED)),
    "trimmed csv": lambda: (csv_framing(TRIMMED), CsvExtractor(TRIMMED)),
    "trimmed escaped csv": lambda: (csv_framing(TRIMMED_ESCAPED), CsvExtractor(TRIMMED_ESCAPED)),
    "skipping csv": lambda: (csv_framing(SKIPPING), CsvExtractor(SKIPPING)),
    "windows lines": lambda: (LineFraming(), DecodingExtractor(LinesExtractor(), WINDOWS)),
    "windows jsonl": lambda: (LineFraming(), DecodingExtractor(JsonLinesExtractor(), WINDOWS)),
    "windows csv": lambda: (csv_framing(COMMA), DecodingExtractor(CsvExtractor(COMMA), WINDOWS)),
}
Seen = tuple[object, ...]
LONGEST = 12


def reader(
    content: bytes,
    name: str,
    *,
    block: int = 1 << 16,
    rows: int = 1000,
    longest: int = LONGEST,
    span: Span | None = None,
    packing: Compression = Compression.NONE,
    skip: int = 0,
) -> RowReader:
    """A reader of *content*."""
    framing, extractor = FORMATS[name]()
    span = span or Span()
    first = span.start - 1 if span.seek_row else span.start
    stream = open_stream(io.BytesIO(content), packing, first)
    blocks = BlockReader(stream, framing, span=span, block_bytes=block, max_row_bytes=longest)
    return RowReader(
        blocks,
        extractor,
        native_key="it",
        resume=Resume(anchor=span.start, skip=skip, record_count=skip),
        max_rows=rows,
        max_row_bytes=longest,
    )


def seen(made: RowReader) -> list[Seen]:
    """Everything that *made* says: records with their places, and errors with theirs."""
    found = list[Seen]()
    while True:
        try:
            chunk = made.next_chunk()
        except RecordError as error:
            found.append(("error", error.position, error.reason))
            continue
        except DamagedObjectError as error:
            with pytest.raises(DamagedObjectError):
                made.next_chunk()
            return [*found, ("error", error.position, error.reason), ("end", str(error))]
        if chunk is None:
            return [*found, ("all", made.place.anchor, made.place.record_count)]
        columns = (chunk.values.to_pylist(), chunk.anchors.tolist(), chunk.counts.tolist())
        found += list(zip(*columns, strict=True))


def records(made: RowReader) -> list[object]:
    """The values alone."""
    return [each[0] for each in seen(made)[:-1]]


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=drawn(150), deadline=None)
@given(
    content=st.lists(
        st.sampled_from(
            [
                b"a",
                b"1",
                b",",
                b'"',
                b"\n",
                b"\r",
                b"\\",
                b" ",
                b"\xff",
                b"\0",
                b"{}",
                b"\xc3\xbc",
                b"\x81",
            ]
        ),
        max_size=40,
    ).map(b"".join),
    block=st.integers(1, 30),
    rows=st.integers(1, 5),
)
def test_blocks_and_batches_do_not_show(name: str, content: bytes, block: int, rows: int) -> None:
    """Any bytes give the same records, places and errors, whatever the sizes of blocks and batches."""
    assert seen(reader(content, name)) == seen(reader(content, name, block=block, rows=rows))


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=drawn(80), deadline=None)
@given(
    content=st.lists(
        st.sampled_from([b"a", b"1", b",", b'"a\nb"', b'""', b"\n", b"\r\n", b"{}", b"1,2\n"]),
        max_size=20,
    ).map(b"".join),
)
def test_reading_goes_on_behind_every_record(name: str, content: bytes) -> None:
    """From the place behind any record the rest is what came after it, by anchor and by skipping."""
    whole = seen(reader(content, name, longest=100))
    for index, record in enumerate(whole):
        if len(record) == 3 and isinstance(record[2], int) and record[0] != "all":
            rest = seen(reader(content, name, longest=100, span=Span(start=int(str(record[1])))))
            told = [each[:2] for each in whole[index + 1 :] if each[0] != "error"]
            assert told == [each[:2] for each in rest if each[0] != "error"]


@settings(max_examples=drawn(100), deadline=None)
@given(
    lines=st.lists(st.text("ab", max_size=5), max_size=12),
    size=st.integers(1, 12),
    block=st.integers(1, 20),
)
def test_spans_share_lines_out(lines: list[str], size: int, block: int) -> None:
    """Spans of any size give each line to exactly one of them."""
    content = "\n".join(lines).encode()
    spans = [
        Span(start=start, stop=start + size, limit=len(content), seek_row=start > 0)
        for start in range(0, len(content), size)
    ]
    found = [
        value
        for span in spans
        for value in records(reader(content, "lines", block=block, span=span))
    ]

    expected = content.decode().split("\n")
    assert (expected[:-1] if not expected[-1] else expected) == found


@settings(max_examples=drawn(100), deadline=None)
@given(
    rows=st.lists(
        st.tuples(st.text('a,"\\\n ', max_size=5), st.text('b,"\\\n ', max_size=5)), max_size=5
    )
)
def test_escaped_csv_is_what_pythons_reader_reads(rows: list[tuple[str, str]]) -> None:
    """An escape character takes the next one literally, line ends included."""
    out = io.StringIO()
    options = {"escapechar": "\\", "doublequote": False, "lineterminator": "\n"}
    csv.writer(out, quoting=csv.QUOTE_ALL, **options).writerows(rows)  # pyright: ignore[reportArgumentType]

    found = [
        list(__import__("json").loads(str(each)).values())
        for each in records(reader(out.getvalue().encode(), "escaped csv", longest=100))
    ]

    assert [list(row) for row in rows] == found


@pytest.mark.parametrize(
    ("packing", "pack"),
    [(Compression.GZIP, gzip.compress), (Compression.ZSTD, zstandard.compress)],
)
@settings(max_examples=drawn(60), deadline=None)
@given(content=st.binary(max_size=3000).map(b"x".__add__), missing=st.integers(1, 40))
def test_cut_off_data_is_never_the_end(
    packing: Compression, pack: Callable[[bytes], bytes], content: bytes, missing: int
) -> None:
    """A compressed file without its last bytes gives what is whole, and then an error, not an end."""
    packed = pack(content)[:-missing]

    *found, last = seen(reader(packed, "returns", longest=5000, packing=packing))

    assert "end" == last[0]
    assert "error" == found[-1][0]
    assert "cut off" in str(found[-1][2])


@pytest.mark.parametrize("packing", [Compression.GZIP, Compression.ZSTD])
@settings(max_examples=drawn(60), deadline=None)
@given(content=st.binary(max_size=300))
def test_any_bytes_end(packing: Compression, content: bytes) -> None:
    """Bytes that are not compressed data end in an error, never in a hang or in nothing."""
    assert "end" == seen(reader(content, "lines", packing=packing))[-1][0]


@pytest.mark.parametrize("between", [0, 1, 50, 700])
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [("lines", b"a", b"\xff"), ("jsonl", b"{}", b"}"), ("csv", b"1,2", b"1")],
)
def test_bad_rows_do_not_have_those_behind_them_looked_at_again_and_again(
    name: str, good: bytes, bad: bytes, between: int
) -> None:
    """However many there are, what is looked at is in proportion to the rows."""
    rows = ([good] * between + [bad]) * (7_000 // (between + 1))
    made = reader(b"\n".join(rows) + b"\n", name, rows=100_000)
    looked_at = list[int]()
    extract = made._extractor.extract
    made._extractor.extract = lambda rows: (looked_at.append(len(rows)), extract(rows))[1]  # type: ignore[method-assign]

    seen(made)

    assert len(rows) <= sum(looked_at) < 20 * len(rows)


def test_rows_before_the_cut_are_delivered() -> None:
    """Whole lines in front of the place where a file is cut off are records."""
    packed = gzip.compress(b"one\ntwo\nthree\n")[:-5]

    found = seen(reader(packed, "lines", packing=Compression.GZIP))

    assert [("one", 4, 1), ("two", 8, 2), ("three", 14, 3)] == found[:3]
    assert "byte 14" == found[3][1]


def test_a_long_line_is_not_held_in_memory() -> None:
    """A line over the limit costs no more memory than the limit and a block."""
    made = reader(b"a\n" + b"x" * 5_000_000 + b"\nb\n", "lines", block=4096)

    found = seen(made)

    assert [("a", 2, 1), ("b", 5_000_005, 3)] == [found[0], found[2]]
    assert ("error", "byte 2 (record 2)") == found[1][:2]
    assert made._blocks._buffer.size < 20_000


def test_shorter_than_planned_is_not_the_end() -> None:
    """A file that ends before its limit says so, and its last line is not taken for whole."""
    made = reader(b"a\nb", "lines", span=Span(stop=9, limit=9))

    assert ["a"] == records(made)
    assert made.cut_short


@pytest.mark.parametrize("name", ["lines", "returns"])
@pytest.mark.parametrize("end", [b"\r\n", b"\n", b"\r\nx"])
def test_a_line_end_does_not_count_for_the_length(name: str, end: bytes) -> None:
    """Also when only its first half is known yet."""
    content = b"a" * LONGEST + end

    assert "a" * LONGEST == records(reader(content, name, block=1))[0]
