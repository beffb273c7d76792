"""The files connector end to end without Kafka: every record once, wherever it was stopped."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.connect import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import Delivered, LocalRun
from project.sampling import drawn

Stored = dict[SourcePartition, SourceOffset]
PACKERS = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.compress}

TEXT = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\n\r"), max_size=6
)
LINE_END = st.sampled_from(["\n", "\r\n"])
JSON_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
JSON_LINE = st.one_of(
    JSON_VALUE.map(lambda value: json.dumps(value, ensure_ascii=False)),
    JSON_VALUE.map(lambda value: f"  {json.dumps(value)} "),
    st.sampled_from(["", "  ", "\t"]),
)


def run(
    folder: Path, stored: Stored, *, stop_after: int | None = None, **props: str
) -> list[Delivered]:
    """Run the connector over *folder* until it is idle, or until that many records."""
    given = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0"}
    named = {key.replace("_", "."): value for key, value in props.items()}
    connector = FilesConnector()
    return LocalRun(
        connector, {**given, **named}, stored, slots=3, stop_after=stop_after
    ).until_idle()


def values(delivered: list[Delivered]) -> list[object]:
    """Just the values."""
    return [each.value for each in delivered]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder."""
    return tmp_path


def temporary() -> Iterator[Path]:
    """A folder of an example's own, because hypothesis runs many in one test."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a file reads as; what is found *again* behind it, and whether it is *done* then."""

    values: list[object]
    again: Sequence[Delivered] = ()
    done: bool = True


def readings(content: bytes, name: str, **props: str) -> Iterator[Reading]:
    """What *content* reads as in one go, and cut at every record."""
    for folder in temporary():
        (folder / name).write_bytes(content)
        partition = SourcePartition(filename=str(folder / name))
        for cut in range(len(run(folder, {}, **props)) + 1):
            stored: Stored = {}
            first = run(folder, stored, stop_after=cut, **props) if cut else []
            rest = run(folder, stored, **props)
            again = tuple(run(folder, stored, **props))
            yield Reading(values(first + rest), again, bool(stored[partition].get("done")))


@settings(max_examples=drawn(40), deadline=None)
@given(
    lines=st.lists(TEXT, max_size=8),
    end=LINE_END,
    last=st.booleans(),
    packer=st.sampled_from(sorted(PACKERS)),
    rows=st.integers(1, 5),
)
def test_lines_are_what_a_naive_reader_reads(  # noqa: PLR0917
    lines: list[str],
    end: str,
    last: bool,  # noqa: FBT001
    packer: str,
    rows: int,
) -> None:
    """Any lines in any packing, cut at any record, come out once each and in order."""
    text = end.join(lines) + (end if last and lines else "")
    expected = text.replace("\r\n", "\n").split("\n")
    expected = expected[:-1] if not expected[-1] else expected
    content = PACKERS[packer](text.encode())

    for found in readings(content, f"a.txt{packer}", files_batch_max_rows=str(rows)):
        assert Reading([*expected]) == found


@settings(max_examples=drawn(40), deadline=None)
@given(
    lines=st.lists(JSON_LINE, max_size=8),
    end=LINE_END,
    packer=st.sampled_from(sorted(PACKERS)),
    rows=st.integers(1, 5),
    mark=st.booleans(),
)
def test_jsonl_passes_unchanged(  # noqa: PLR0917
    lines: list[str],
    end: str,
    packer: str,
    rows: int,
    mark: bool,  # noqa: FBT001
) -> None:
    """Documents keep their bytes, blank lines are no records, a byte order mark is not text."""
    text = end.join(lines)
    expected = [line for line in lines if line.strip(" \t")]
    content = PACKERS[packer]((b"\xef\xbb\xbf" if mark else b"") + text.encode())

    for found in readings(content, f"a.jsonl{packer}", files_batch_max_rows=str(rows)):
        assert Reading([*expected]) == found


CSV_TEXT = st.text(
    st.sampled_from(["a", "b", ",", '"', "\n", "\\", "\t", "é", "\x01", "\r"]), max_size=6
)


@settings(max_examples=drawn(60), deadline=None)
@given(
    rows=st.lists(st.tuples(CSV_TEXT, CSV_TEXT), max_size=7),
    end=LINE_END,
    packer=st.sampled_from(sorted(PACKERS)),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    batch=st.integers(1, 5),
)
def test_csv_is_what_pythons_reader_reads(  # noqa: PLR0917
    rows: list[tuple[str, str]], end: str, packer: str, quoting: int, batch: int
) -> None:
    """Quoted delimiters, quotes and line ends are text; each row is one object of strings."""
    out = io.StringIO()
    # Python's writer leaves a lone carriage return unquoted, which is not CSV.
    returns = any("\r" in text for row in rows for text in row)
    writer = csv.writer(out, quoting=csv.QUOTE_ALL if returns else quoting, lineterminator=end)
    writer.writerows([("x", 'y "2"'), *rows])
    expected = [{"x": x, 'y "2"': y} for x, y in rows]
    content = PACKERS[packer](out.getvalue().encode())

    first, *others = readings(content, f"a.csv{packer}", files_batch_max_rows=str(batch))

    assert expected == [json.loads(str(each)) for each in first.values]
    assert [Reading(first.values)] * (len(rows) + 1) == [first, *others]


@settings(max_examples=30, deadline=None)
@given(
    lines=st.lists(TEXT, max_size=12),
    size=st.integers(1, 40),
    other=st.integers(0, 40),
    cuts=st.lists(st.integers(1, 4), max_size=4),
)
def test_ranges_give_each_line_once(
    lines: list[str], size: int, other: int, cuts: list[int]
) -> None:
    """A split file gives each line once, also when it is stopped and the split size changes meanwhile."""
    for folder in temporary():
        (folder / "a.txt").write_bytes("\n".join(lines).encode())
        expected = "\n".join(lines).split("\n")
        expected = expected[:-1] if not expected[-1] else expected
        stored: Stored = {}
        found = list[Delivered]()
        for index, cut in enumerate(cuts):
            now = size if index % 2 == 0 else other
            found += run(folder, stored, stop_after=cut, files_split_bytes=str(now))
        found += run(folder, stored, files_split_bytes=str(size))
        assert sorted(expected) == sorted(map(str, values(found)))
        assert [SourcePartition(filename=str(folder / "a.txt"))] == list(stored)
        assert [] == run(folder, stored)


@pytest.mark.parametrize("block", [4096, 5000, 8192])
def test_blocks_do_not_show(folder: Path, block: int) -> None:
    """Rows over many small blocks are the same rows, and the largest line may be larger than a block."""
    lines = [f"{number} " * (number % 997) for number in range(1, 600)] + ["x" * 50_000]
    (folder / "a.txt").write_text("\n".join(lines))

    assert lines == values(run(folder, {}, files_batch_max_bytes=str(block)))


def test_several_gzip_members_are_one_file(folder: Path) -> None:
    """Members behind each other, with padding, are read as one."""
    packed = gzip.compress(b"1\n") + gzip.compress(b"2\n") + b"\0" * 100
    (folder / "a.jsonl.gz").write_bytes(packed)

    assert ["1", "2"] == values(run(folder, {}))


def test_big_numbers_and_double_keys_stay(folder: Path) -> None:
    """What a parser would round or drop passes as it is."""
    line = '{"a":12345678901234567890123,"b":0.10,"a":null}'
    (folder / "a.jsonl").write_text(line + "\n")

    assert [line] == values(run(folder, {}))


def test_topics_may_hold_the_files_name(folder: Path) -> None:
    """The template's placeholder is the name, as far as topics can hold it."""
    (folder / "ä b.txt").write_text("x\n")

    (found,) = run(folder, {}, topic="in-${filename}")

    assert "in-__b.txt" == found.topic


def test_csv_types_keep_their_text(folder: Path) -> None:
    """Typed fields are JSON numbers and booleans with the file's own digits; empty ones are null."""
    (folder / "a.csv").write_text("i,n,b,s,z\n00,1,TRUE,-,NA\n".replace("00", "7") + ",,,,\n")

    found = run(folder, {}, csv_types="i:integer,n:number,b:boolean", csv_null="NA")

    expected = [
        '{"i":7,"n":1,"b":true,"s":"-","z":null}',
        '{"i":null,"n":null,"b":null,"s":"","z":""}',
    ]
    assert expected == values(found)


def test_an_offset_with_only_a_count_skips(folder: Path) -> None:
    """A person may set how many records are to be left out."""
    (folder / "a.jsonl").write_text("1\n\n2\n3\n")
    stored: Stored = {SourcePartition(filename=str(folder / "a.jsonl")): {"recordCount": 2}}

    assert ["3"] == values(run(folder, stored))
    assert 3 == next(iter(stored.values()))["recordCount"]


def test_skip_counts_from_the_anchor(folder: Path) -> None:
    """Anchor and skip together are a position."""
    (folder / "a.txt").write_text("1\n2\n3\n4\n")
    partition = SourcePartition(filename=str(folder / "a.txt"))
    stored: Stored = {partition: {"recordCount": 3, "anchor": 2, "skip": 2}}

    assert ["4"] == values(run(folder, stored))


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n \n"])
def test_a_file_without_records_is_finished(folder: Path, content: bytes) -> None:
    """Nothing to read is an entry that says done."""
    (folder / "a.jsonl").write_bytes(content)
    stored: Stored = {}

    assert [] == run(folder, stored)
    assert next(iter(stored.values()))["done"]


def test_a_header_alone_is_no_record(folder: Path) -> None:
    """A CSV file with only a header is finished with no records."""
    (folder / "a.csv").write_text("a,b\n")
    stored: Stored = {}

    assert [] == run(folder, stored)
    assert next(iter(stored.values()))["done"]
