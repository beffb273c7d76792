"""How many bytes files have behind their offsets."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from connectors.files_steps import Steps, Stored
from headrace.connect import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun

TEN = b"".join(b"line %d\n" % n for n in range(10))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of ten lines of seven bytes."""
    path = tmp_path / "a.txt"
    path.write_bytes(TEN)
    return path


def lags(file: Path, offsets: Stored, /, **more: str) -> list[int | None]:
    """What is told of each offset, by a connector that no one has started."""
    props = Steps(file.parent, **more).props
    told = FilesConnector().lag(props, offsets)
    assert told.keys() <= offsets.keys()
    return [told.get(each) for each in offsets]


def whole(file: Path) -> SourcePartition:
    """The source partition of all of it."""
    return SourcePartition(filename=str(file))


def read(file: Path, count: int | None = None, **more: str) -> Stored:
    """The offsets that a run leaves, which is stopped behind *count* records."""
    stored: Stored = {}
    props = Steps(file.parent, **more).props
    LocalRun(FilesConnector(), props, stored, stop_after=count).until_idle()
    return stored


def test_it_is_what_is_not_read_yet(file: Path):
    """In bytes, as a run has left it, and none when everything is read."""
    assert [len(TEN) - 3 * 7] == lags(file, read(file, 3))
    assert [0] == lags(file, read(file))


def test_a_file_that_is_followed_grows(file: Path):
    """Also one that was read to its end, as no other one does."""
    stored = read(file, files_follow="true")
    with file.open("ab") as grown:
        grown.write(b"more\n")

    assert [5] == lags(file, stored, files_follow="true")
    assert [5] == lags(file, read(file, 10), files_changed="tail")


def test_another_file_is_not_measured(file: Path):
    """One that took its place, one that is shorter, one that is gone, and what no file has as a path."""
    stored = read(file, 3)
    file.write_bytes(TEN[:7])
    assert [None] == lags(file, stored)
    other = file.with_name("b.txt")
    other.write_bytes(b"other\n" * 30)
    other.replace(file)
    assert [None] == lags(file, stored)
    file.unlink()
    assert [None] == lags(file, stored)
    assert [None, None] == lags(
        file,
        {SourcePartition(filename="s3://b/a.txt"): {}, SourcePartition(mark="/"): {"key": "/a"}},
    )


def test_a_file_that_is_replaced_by_longer_ones_is_measured(file: Path):
    """With files.changed=tail, which reads on in another file."""
    stored = read(file)
    other = file.with_name("b")
    other.write_bytes(TEN + b"more\n")
    other.replace(file)

    assert [5] == lags(file, stored, files_changed="tail")


def test_each_range_is_measured(file: Path):
    """An entry for the whole has what no range has; a range ends where the file does."""
    offsets: Stored = {
        whole(file): {"recordCount": 1, "anchor": 7},
        SourcePartition(filename=str(file), **{"from": 14, "to": 28}): {"anchor": 21},
        SourcePartition(filename=str(file), **{"from": 28, "to": 42}): {"anchor": 42, "done": True},
        SourcePartition(filename=str(file), **{"from": 63, "to": 99}): {"recordCount": 0},
    }

    assert [7 + 21, 7, 0, 7] == lags(file, offsets)


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        ({"recordCount": 3}, None),
        ({"recordCount": 0}, len(TEN)),
        ({"recordCount": 3, "anchor": 21}, len(TEN) - 21),
        ({"recordCount": 3, "anchor": 21, "quarantined": "It is damaged."}, None),
        ({"recordCount": 3, "done": True}, 0),
    ],
)
def test_what_people_set_and_what_is_damaged(
    file: Path, offset: SourceOffset, expected: int | None
):
    """Only a place in bytes tells, and in quarantine nothing more is read."""
    assert [expected] == lags(file, {whole(file): offset})


def test_a_compressed_file_is_told_when_it_is_read(file: Path):
    """Its offsets count the bytes of what is in it, of which no one knows how many there are."""
    packed = file.with_name("a.txt.gz")
    packed.write_bytes(gzip.compress(TEN))
    file.unlink()

    assert [None] == lags(packed, read(packed, 3))
    assert [0] == lags(packed, read(packed))
    assert [0] == lags(packed, read(packed), files_follow="true")


def test_a_name_that_tells_no_format_any_more_is_left_out(file: Path):
    """It does not keep others from being told."""
    odd = whole(file.with_name("a.odd"))
    known: Stored = {odd: {"anchor": 7, "recordCount": 1}, **read(file, 3)}

    assert [None, len(TEN) - 21] == lags(file, known)
