"""A mark over files on local disk: runs that die anywhere, and places that come and go."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from connectors.files_steps import Steps, Stored
from headrace.connect import SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local import listing
from headrace.testing.task_runs import LocalRun

MARK = SourcePartition(mark="/")
NONE = {"files_lookback": "0"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the files are."""
    made = tmp_path / "in"
    made.mkdir()
    return made


def write(folder: Path, *numbers: int, at: int = 1_000) -> None:
    """Write files of three lines, changed at that second."""
    for number in numbers:
        path = folder / f"{number:03}.txt"
        path.write_text("".join(f"{number}.{line}\n" for line in range(3)))
        os.utime(path, (at, at))


def lines(*numbers: int) -> list[str]:
    """What is in the files."""
    return [f"{number}.{line}" for number in numbers for line in range(3)]


def run(
    folder: Path,
    stored: Stored,
    more: dict[str, str] | None = None,
    *,
    stop_after: int | None = None,
) -> list[object]:
    """What a run commits until it dies, or is through."""
    named = {key.replace("_", "."): value for key, value in (more or {}).items()}
    props = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0"}
    props |= {"files.tracking": "ordered", "files.lookback": "2", **named}
    played = LocalRun(FilesConnector(), props, stored, slots=2, stop_after=stop_after)
    return [each.value for each in played.until_idle()]


def mark(stored: Stored) -> str:
    """The name of the file that the mark is at."""
    return Path(str(stored.get(MARK, {}).get("key", ""))).name


def entries(stored: Stored) -> list[str]:
    """The names of the files that have entries."""
    return sorted(Path(str(each["filename"])).name for each in stored if each != MARK)


@pytest.mark.parametrize(
    "more", [{}, {"files_max_objects_per_round": "3"}, {"files_lookback": "0"}]
)
def test_every_record_once_wherever_it_dies(folder: Path, more: dict[str, str]):
    """Each run goes on where the one before has died, while files come, also between those that were read."""
    stored: Stored = {}
    read = list[object]()
    write(folder, *range(0, 20, 2))
    for death in range(1, 12):
        read += run(folder, stored, more, stop_after=death)
        write(folder, 20 + death)
    read += run(folder, stored, more)

    assert sorted(lines(*range(0, 20, 2), *range(21, 32))) == sorted(map(str, read))
    lookback = int(more.get("files_lookback", "2"))
    assert lookback == len(entries(stored))
    assert f"{31 - lookback:03}.txt" == mark(stored)


def test_late_files_are_found_within_the_look_back_only(folder: Path):
    """The others are explained."""
    stored: Stored = {}
    write(folder, 1, 3, 5, 7)
    run(folder, stored)
    assert "003.txt" == mark(stored)
    write(folder, 2, 6, at=2_000)

    assert lines(6) == run(folder, stored)

    steps = Steps(folder, stored, files_tracking="ordered", files_lookback="2")
    told = {name: str(each.reason) for name, each in steps.explained().items()}
    assert told["002.txt"].startswith("too_late: ")
    assert "counts as read" in told["001.txt"]
    assert "It was read to its end: 3 records." == told["007.txt"]


def test_a_disk_that_is_not_mounted_moves_no_mark(folder: Path):
    """What had not been read is read when it is back."""
    stored: Stored = {}
    write(folder, 1, 2, 3)
    run(folder, stored, NONE, stop_after=4)
    away = folder.rename(folder.parent / "away")
    folder.mkdir()
    before = dict(stored)
    assert [] == run(folder, stored, NONE | {"files_missing": "ignore"})
    assert before == stored
    folder.rmdir()
    away.rename(folder)

    rest = run(folder, stored, NONE)

    assert 5 == len(rest)
    assert ("003.txt", []) == (mark(stored), entries(stored))


def test_a_folder_that_vanishes_while_it_is_listed_moves_no_mark(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """What is in it may not be read."""
    stored: Stored = {}
    for below, number in (("a", 1), ("b", 2)):
        (folder / below).mkdir()
        write(folder / below, number)
    more = {**NONE, "files_recursive": "true"}
    away = (folder / "a").rename(folder.parent / "away")
    run(folder, stored, {**more, "files_lookback": "9"})
    away.rename(folder / "a")
    scandir = listing.os.scandir

    def vanish(path: str) -> object:
        if path == str(folder / "a"):
            (folder / "a").rename(away)
            monkeypatch.undo()
        return scandir(path)

    monkeypatch.setattr(listing.os, "scandir", vanish)
    steps = Steps(folder, stored, **more, files_tracking="ordered")
    assert {} == steps.plan().offsets
    away.rename(folder / "a")

    assert lines(1) == run(folder, stored, more)


@pytest.fixture
def mounted(folder: Path) -> Path:
    """Another folder, to which links in the first one lead."""
    made = folder.parent / "mounted"
    made.mkdir()
    return made


def test_a_link_whose_target_is_away_stops_the_mark(
    folder: Path, mounted: Path, caplog: pytest.LogCaptureFixture
):
    """What was not read is read when it is back, and what is before it is passed; it is told once."""
    stored: Stored = {}
    write(folder, 1, 3)
    (folder / "002.txt").symlink_to(mounted / "002.txt")

    assert lines(1, 3) == sorted(map(str, run(folder, stored, NONE)))
    assert ("001.txt", ["003.txt"]) == (mark(stored), entries(stored))
    assert 1 == caplog.text.count("002.txt: It is a link that leads nowhere now.")
    write(mounted, 2)

    assert lines(2) == run(folder, stored, NONE)
    assert ("003.txt", []) == (mark(stored), entries(stored))


def test_a_link_to_what_was_read_or_is_not_selected_stops_nothing(
    folder: Path, mounted: Path, caplog: pytest.LogCaptureFixture
):
    """Its target may be deleted, and the link left."""
    stored: Stored = {}
    write(mounted, 1, 2)
    for name in ("001.txt", "002.txt", "latest"):
        (folder / name).symlink_to(mounted / name)
    more = {"files_lookback": "1", "files_name_regex": r"\d+\.txt"}
    run(folder, stored, more)
    assert ("001.txt", ["002.txt"]) == (mark(stored), entries(stored))
    for name in ("001.txt", "002.txt"):
        (mounted / name).unlink()
    write(folder, 3, 4)

    assert lines(3, 4) == sorted(map(str, run(folder, stored, more)))
    assert ("003.txt", ["004.txt"]) == (mark(stored), entries(stored))
    assert "leads nowhere" not in caplog.text


def test_a_glob_over_links_of_which_one_leads_nowhere_stops_the_mark(
    folder: Path, mounted: Path, caplog: pytest.LogCaptureFixture
):
    """Until its folder is back."""
    stored: Stored = {}
    write(mounted, 1)
    (folder / "b").mkdir()
    write(folder / "b", 2)
    away = mounted.rename(folder.parent / "away")
    (folder / "a").symlink_to(mounted)

    assert lines(2) == run(folder / "*" / "*", stored, NONE)
    assert ("", ["002.txt"]) == (mark(stored), entries(stored))
    assert 1 == caplog.text.count("a: It is a link, and no folder is where it leads now.")
    away.rename(mounted)

    assert lines(1) == run(folder / "*" / "*", stored, NONE)
    assert ("002.txt", []) == (mark(stored), entries(stored))


def test_a_linked_folder_before_the_mark_may_lead_nowhere(folder: Path, mounted: Path):
    """All names below it count as read."""
    stored: Stored = {}
    write(mounted, 1)
    (folder / "a").symlink_to(mounted)
    (folder / "b").mkdir()
    write(folder / "b", 2)
    run(folder / "*" / "*", stored, NONE)
    mounted.rename(folder.parent / "away")
    write(folder / "b", 3)

    assert lines(3) == run(folder / "*" / "*", stored, NONE)
    assert "003.txt" == mark(stored)


def test_the_mark_waits_where_its_own_folder_shows_nothing(folder: Path):
    """Although it has left no entry there: what sorts behind it may be away, and unread."""
    stored: Stored = {}
    more = {**NONE, "files_recursive": "true"}
    for below in "ab":
        (folder / below).mkdir()
    write(folder / "a", 1)
    run(folder, stored, more)
    write(folder / "a", 2)
    away = (folder / "a").rename(folder.parent / "away")
    (folder / "a").mkdir()
    write(folder / "b", 3)

    assert lines(3) == run(folder, stored, more)
    assert ("001.txt", ["003.txt"]) == (mark(stored), entries(stored))
    (folder / "a").rmdir()
    away.rename(folder / "a")

    assert lines(2) == run(folder, stored, more)
    assert ("003.txt", []) == (mark(stored), entries(stored))


def test_a_folder_of_the_mark_that_is_gone_for_good_is_passed(folder: Path):
    """After the time that says so."""
    stored: Stored = {}
    more = {**NONE, "files_recursive": "true", "files_forget_after_ms": "0"}
    for below in "ab":
        (folder / below).mkdir()
    write(folder / "a", 1)
    run(folder, stored, more)
    (folder / "a" / "001.txt").unlink()
    write(folder / "b", 2)

    assert lines(2) == run(folder, stored, more)
    assert ("002.txt", []) == (mark(stored), entries(stored))


def test_what_is_too_old_is_not_too_late(folder: Path):
    """It would not be read under another name either."""
    stored: Stored = {}
    write(folder, 1, 3)
    run(folder, stored, NONE)
    write(folder, 2, at=2_000)
    for since, told in (("1970-01-01T01:00:00Z", "changed before"), ("1970-01-01", "too_late: ")):
        more = {**NONE, "files_tracking": "ordered", "files_modified_since": since}
        assert told in str(Steps(folder, stored, **more).explained()["002.txt"].reason)


def test_a_time_in_the_future_does_not_end_the_check(folder: Path):
    """It counts as now; nor is the file itself told to be late."""
    stored: Stored = {}
    write(folder, 1, 3)
    run(folder, stored, {"files_lookback": "9"})
    write(folder, 1, at=40_000_000_000)
    run(folder, stored, NONE)

    assert time.time() * 1000 > int(str(stored[MARK]["modified"]))
    write(folder, 2, at=int(time.time()) + 1)
    steps = Steps(folder, stored, files_tracking="ordered", **NONE)
    told = {name: str(each.reason) for name, each in steps.explained().items()}
    assert told["002.txt"].startswith("too_late: ")
    assert not told["001.txt"].startswith("too_late: ")


def test_what_is_deleted_after_its_commit_leaves_nothing(folder: Path):
    """Its entry is gone at once, and a file that comes under its name behind the mark is a new one."""
    stored: Stored = {}
    write(folder, 1, 2, 3)
    more = {"files_after_commit": "delete"}

    assert lines(1, 2, 3) == sorted(map(str, run(folder, stored, more)))
    assert {} == stored
    write(folder, 2)
    assert lines(2) == run(folder, stored, more)
    assert ({}, []) == (stored, list(folder.iterdir()))


def test_a_file_that_vanished_half_read_does_not_stop_the_mark_for_ever(folder: Path):
    """With files.missing=ignore; its entry stays, should it come back."""
    stored: Stored = {}
    write(folder, 1, 2, 3)
    run(folder, stored, NONE, stop_after=1)
    (half,) = entries(stored)
    gone = folder / half
    content = gone.read_text()
    gone.unlink()

    run(folder, stored, NONE | {"files_missing": "ignore"})

    assert ("003.txt", [half]) == (mark(stored), entries(stored))
    gone.write_text(content)
    assert 2 == len(run(folder, stored, NONE | {"files_changed": "ignore"}))
    assert [] == entries(stored)
