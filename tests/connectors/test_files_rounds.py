"""Where to begin, and how much one round takes."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files_steps import Steps, names_of
from connectors.test_files_store_selection import OBJECT, ListedStore, selection
from headrace.connect import SourcePartition, TaskFailedError
from headrace.connect.task import Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.selecting.round import Round
from headrace.sources.sharing import Piece
from headrace.testing.task_runs import LocalRun

SIZES = st.lists(st.lists(st.integers(0, 20), max_size=3), max_size=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five files of four bytes."""
    for name in "abcde":
        (tmp_path / f"{name}.txt").write_text(f"{name}1\n\n")
    return tmp_path


@pytest.mark.parametrize(
    ("props", "names"),
    [
        ({}, ["a", "b", "c", "d", "e"]),
        ({"files_max_objects_per_round": "2"}, ["a", "b"]),
        ({"files_max_objects_per_round": "5"}, ["a", "b", "c", "d", "e"]),
        ({"files_max_bytes_per_round": "11"}, ["a", "b"]),
        ({"files_max_bytes_per_round": "12"}, ["a", "b", "c"]),
        ({"files_max_bytes_per_round": "1"}, ["a"]),
        ({"files_max_bytes_per_round": "12", "files_max_objects_per_round": "2"}, ["a", "b"]),
    ],
)
def test_a_round_takes_so_much_and_says_whether_there_is_more(
    folder: Path, props: dict[str, str], names: list[str]
):
    """In the order of names, but at least one file."""
    plan = Steps(folder, **props).plan()

    assert [f"{name}.txt" for name in names] == names_of(plan)
    assert 4 * len(names) == plan.total_bytes
    assert (len(names) < 5) == plan.has_more


def test_a_round_has_an_end_where_no_one_says_it(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A million new files would not fit into the memory of a driver; files that grow have no rounds."""
    monkeypatch.setattr("headrace.connectors.files.connector.MOST_OBJECTS", 2)

    assert ["a.txt", "b.txt"] == names_of(Steps(folder).plan())
    assert 5 == len(names_of(Steps(folder, files_follow="true").plan()))


@pytest.mark.parametrize(
    "limit", [{"files.max.objects.per.round": "1"}, {"files.max.bytes.per.round": "9"}]
)
def test_rounds_follow_each_other_until_all_is_read(folder: Path, limit: dict[str, str]):
    """Each record once."""
    props = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0", **limit}

    found = LocalRun(FilesConnector(), props, {}).until_idle()

    assert ["a1", "b1", "c1", "d1", "e1"] == [each.value for each in found if each.value]


def test_ranges_of_one_file_are_taken_in_several_rounds(tmp_path: Path):
    """What was not taken is cut again."""
    (tmp_path / "a.jsonl").write_text("".join(f"{number:03}\n" for number in range(100, 130)))
    limits = {"files.split.bytes": "20", "files.max.bytes.per.round": "50"}
    props = {"files.path": str(tmp_path), "topic": "t", "files.min.age.ms": "0", **limits}

    found = LocalRun(FilesConnector(), props, {}, slots=2).until_idle()

    assert [str(number) for number in range(100, 130)] == sorted(each.value for each in found)
    assert 2 == len(
        names_of(Steps(tmp_path, files_split_bytes="20", files_max_bytes_per_round="50").plan())
    )


def test_a_half_read_file_that_is_not_taken_is_not_missing(folder: Path):
    """The listing ends before it; one that is gone is missed all the same."""
    last = SourcePartition({"filename": str(folder / "e.txt")})
    stored = {last: {"recordCount": 1, "anchor": 3, "skip": 0}}
    steps = Steps(folder, {**stored}, files_max_objects_per_round="1")

    assert ["a.txt"] == names_of(steps.plan())
    (folder / "e.txt").unlink()
    with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
        steps.plan()


@given(sizes=SIZES, most_bytes=st.integers(0, 40), most_objects=st.integers(0, 5))
def test_a_round_keeps_its_limits(sizes: list[list[int]], most_bytes: int, most_objects: int):
    """It takes the first pieces there are, never more than it may unless it is a single one."""
    files = [
        [
            Piece(split=Split(partition=SourcePartition({"f": f"{n}-{m}"})), weight=size)
            for m, size in enumerate(each)
        ]
        for n, each in enumerate(sizes)
    ]
    taken = Round(max_objects=most_objects, max_bytes=most_bytes)

    by_file = [taken.take(str(number), pieces) for number, pieces in enumerate(files)]

    everything = [piece for pieces in files for piece in pieces]
    count = len(taken.pieces)
    assert taken.pieces == everything[:count] == [piece for pieces in by_file for piece in pieces]
    assert taken.has_more == (count < len(everything))
    assert taken.objects == [str(number) for number, each in enumerate(by_file) if each]
    assert not most_bytes or taken.total_bytes <= most_bytes or 1 == count
    assert not most_objects or sum(map(bool, by_file)) <= most_objects
    assert count or not everything


def test_reading_begins_behind_a_name(folder: Path):
    """Behind it, not at it."""
    plan = Steps(folder, files_start_after=str(folder / "c.txt")).plan()

    assert ["d.txt", "e.txt"] == names_of(plan)


def test_a_store_is_listed_from_a_key_on():
    """By the store itself, and what it lists all the same is left out."""
    objects = [replace(OBJECT, key=key) for key in ("a.jsonl", "b.jsonl", "c.jsonl")]
    store = ListedStore(*objects)
    chosen = selection(store, files_start_after="a.jsonl", files_modified_since="1970-01-01")

    assert ["s3://b/b.jsonl", "s3://b/c.jsonl"] == [path for path, _ in chosen.decisions({})]
    assert ["list a.jsonl"] == store.asked


def test_objects_that_were_changed_before_a_time_are_left_out():
    """By the time that the listing tells."""
    objects = [replace(OBJECT, key=f"{time}.jsonl", modified_ms=time) for time in (0, 86_400_000)]
    chosen = selection(ListedStore(*objects), files_modified_since="1970-01-02")

    assert ["s3://b/86400000.jsonl"] == [path for path, _ in chosen.decisions({})]


@pytest.mark.parametrize(
    "since", ["1970-01-03", "1970-01-03T00:00:00Z", "1970-01-03T01:00:00+01:00"]
)
def test_reading_begins_at_a_time(folder: Path, since: str):
    """What was changed at that time or later; in UTC unless it says otherwise."""
    day = 24 * 3600
    for number, name in enumerate("abcde"):
        os.utime(folder / f"{name}.txt", (number * day, number * day))

    plan = Steps(folder, files_modified_since=since).plan()

    assert ["c.txt", "d.txt", "e.txt"] == names_of(plan)


def test_a_file_that_is_changed_later_is_read_then(folder: Path):
    """The time is looked at by each plan."""
    steps = Steps(folder, files_modified_since="2020-01-01")
    for path in folder.iterdir():
        os.utime(path, (1, 1))
    assert not steps.plan().has_work()

    later = datetime(2021, 1, 1, tzinfo=UTC).timestamp()
    os.utime(folder / "b.txt", (later, later))

    assert ["b.txt"] == names_of(steps.plan())


@pytest.mark.parametrize(
    ("props", "key", "told"),
    [
        ({"files.modified.since": "yesterday"}, "files.modified.since", "Give a date"),
        (
            {"files.follow": "true", "files.max.objects.per.round": "1"},
            "files.follow",
            "always grows",
        ),
        ({"files.max.bytes.per.round": "-1"}, "files.max.bytes.per.round", "at least 0"),
    ],
)
def test_what_cannot_be_is_refused(props: dict[str, str], key: str, told: str):
    """By validation."""
    ((found, sentence),) = FilesConfig.problems({"files.path": "/in", "topic": "t", **props})

    assert key == found
    assert told in sentence
