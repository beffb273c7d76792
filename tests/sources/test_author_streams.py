"""Streams as authors give them: such that cannot seek, packed ones, and long lines."""

from __future__ import annotations

import bz2
import gzip
import io
from collections.abc import Callable
from http.client import HTTPResponse

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.formats.chunk import Resume
from headrace.formats.format import ReadLimits
from headrace.sources import (
    Compression,
    CsvDialect,
    Extractor,
    FormatOptions,
    NativeSource,
    extractor_named,
)
from headrace.sources.scanning import Scanner
from headrace.testing.format_suite import Found, records_of
from headrace.testing.native_suite import NativeSourceSuite
from sources.avro_files import avro_file
from sources.shelf import SHELF, Book, Shelf, ShelfConnector, ShelfSource, ShelfTask, run

LIMITS = ReadLimits(rows=3, chunk_bytes=64 * 1024, record_bytes=1024 * 1024)
LINES = b"".join(b"%d\n" % number for number in range(2000))


class Forward(io.RawIOBase):
    """As a connection is: it goes forward only, a few bytes at a time."""

    def __init__(self, content: bytes) -> None:
        self._left = io.BytesIO(content)

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        """At most 7 bytes."""
        return self._left.readinto(memoryview(buffer)[:7])


class ForwardBook(Book):
    """A book that comes over a connection."""

    def open(self) -> io.RawIOBase:  # type: ignore[override]
        """Its content."""
        return Forward(SHELF.objects[self._name])


class ForwardShelf(ShelfSource):
    """Lists such."""

    item_class = ForwardBook

    def items(self, start_from: str | None):  # type: ignore[override]
        """By name."""
        return (ForwardBook(each.context().native_key) for each in super().items(start_from))

    def item(self, native_key: str) -> ForwardBook:
        """By its name."""
        return ForwardBook(native_key)


class ForwardTask(ShelfTask):
    """Reads them."""

    def source(self, config: object) -> ForwardShelf:
        """Of such."""
        return ForwardShelf()


class ForwardConnector(ShelfConnector):
    """The shelf over a connection."""

    task_class = ForwardTask
    source_class = ForwardShelf


def records(extractor: Extractor, resume: Resume | None = None, **constants: object) -> list[Found]:
    """What is read of the book a."""
    reader = extractor.reader(ForwardBook("a"), resume or Resume(), LIMITS, constants)  # type: ignore[arg-type]
    return records_of(reader)


def as_avro() -> bytes:
    """Ten numbers."""
    return avro_file("int", list(range(10)))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("lines", lambda: b"1\n22\n333\n" * 20),
        ("csv", lambda: b"a,b\n1,2\n3,4\n5,6\n"),
        ("jsonl", lambda: b'{"a":1}\n[2]\n'),
        ("bytes", lambda: b"0123456789"),
        ("avro", as_avro),
    ],
)
def test_a_stream_that_cannot_seek_is_read_from_any_record_on(
    shelf: Shelf, name: str, content: Callable[[], bytes]
):
    """What was read before is read and dropped, also where only the count of records is known."""
    shelf.objects = {"a": content()}
    extractor = extractor_named(name, FormatOptions(record_bytes=4))
    found = records(extractor)

    assert len(found) > 1
    for count, record in enumerate(found, 1):
        rest = [each.value for each in found[count:]]
        assert rest == [each.value for each in records(extractor, record.place, **record.constants)]
        counted = Resume(skip=count, record_count=count)
        assert rest == [each.value for each in records(extractor, counted)]


class TestForwardShelf(NativeSourceSuite):
    """The suite passes with such items."""

    @pytest.fixture
    def source(self) -> NativeSource[str]:
        """Three of them."""
        SHELF.__init__()
        SHELF.objects = {"a": b"1\n2\n", "b": b"", "c": b"3\n"}
        return ForwardShelf()

    @pytest.fixture
    def extractor(self) -> Extractor:
        """Lines."""
        return extractor_named("lines")


class Line:
    """A connection over which *answer* comes, and no more."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer

    def makefile(self, _mode: str) -> io.BytesIO:
        """Its bytes."""
        return io.BytesIO(self._answer)


def response(head: bytes, body: bytes) -> HTTPResponse:
    """As ``urllib.request.urlopen`` gives it."""
    made = HTTPResponse(Line(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body))  # type: ignore[arg-type]
    made.begin()
    return made


@pytest.mark.parametrize(
    ("head", "body", "cut"),
    [
        (b"Content-Length: 4", b"1\n2\n", False),
        (b"Connection: close", b"1\n2\n", False),
        (b"Content-Length: 5", b"1\n2\n", True),
        (b"Transfer-Encoding: chunked", b"4\r\n1\n2\n\r\n0\r\n\r\n", False),
        (b"Transfer-Encoding: chunked", b"4\r\n1\n2\n\r\n", True),
    ],
)
def test_a_response_that_is_cut_short_is_not_at_its_end(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch, head: bytes, body: bytes, *, cut: bool
):
    """Although Python's own stream says so."""
    monkeypatch.setattr(ForwardBook, "open", lambda _: response(head, body))
    extractor = extractor_named("lines")

    if cut:
        with pytest.raises(ConnectionError, match="too early"):
            records(extractor)
    else:
        assert ["1", "2"] == [each.value for each in records(extractor)]


def test_parquet_of_a_stream_that_cannot_seek_fails_once(shelf: Shelf):
    """With what to do, and not by trying for ever."""
    written = io.BytesIO()
    pq.write_table(pa.table({"a": [1]}), written)
    shelf.objects = {"a": written.getvalue()}

    with pytest.raises(TaskFailedError, match=r"a: A Parquet file has its footer .* cannot seek"):
        run({}, kind=ForwardConnector, extractor_class="parquet")


def test_what_a_stream_does_not_support_is_nothing_that_passes(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
):
    """It is an ``OSError`` for Python only."""

    def refuse(self: Scanner[str], work: object) -> None:
        raise io.UnsupportedOperation("seek")

    monkeypatch.setattr(Scanner, "_goes_to", refuse)
    shelf.objects = {"a": b"1\n"}

    with pytest.raises(TaskFailedError, match="a cannot be read: Its stream does not support seek"):
        run({})


@pytest.mark.parametrize("kind", [ShelfConnector, ForwardConnector])
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress], ids=["gzip", "bzip2"])
def test_packed_items_of_text_are_known_by_their_first_bytes(
    shelf: Shelf, kind: type[ShelfConnector], pack: Callable[[bytes], bytes]
):
    """Nothing has to be set, and reading goes on in their middle."""
    shelf.objects = {"a": pack(LINES), "b": b"plain\n"}
    stored: dict[object, object] = {}

    first = run(stored, 5, kind=kind)  # type: ignore[arg-type]
    rest = run(stored, kind=kind)  # type: ignore[arg-type]

    assert [*map(str, range(2000)), "plain"] == first + rest


def test_an_author_says_otherwise(shelf: Shelf):
    """A compression that is given counts, and bytes are bytes."""
    packed = gzip.compress(b"1;2\n")
    shelf.objects = {"a": packed}
    dialect = CsvDialect(delimiter=";", header=False, names=("x", "y"))

    known = extractor_named("csv", FormatOptions(dialect=dialect), compression=Compression.GZIP)
    assert ['{"x":"1","y":"2"}'] == [each.value for each in records(known)]
    assert [packed] == [each.value for each in records(extractor_named("bytes"))]
    with pytest.raises(RecordError, match="not UTF-8"):
        records(extractor_named("lines", compression=Compression.NONE))


def test_the_longest_line_is_a_setting(shelf: Shelf):
    """Which the error names."""
    shelf.objects = {"a": b"x" * 2000 + b"\n"}

    assert ["x" * 2000] == run({}, native_max_record_bytes="2000")
    with pytest.raises(RecordError, match=r"longer than 1999 bytes.*native\.max\.record\.bytes"):
        run({}, native_max_record_bytes="1999")
