"""Files that are deleted or moved are the ones that were read: what comes under their names at any moment stays."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import ModuleType

import pytest

from headrace.connect import SourceOffset, SourcePartition, TaskFailedError
from headrace.connectors.files.cleanup.cleaner import Cleanup
from headrace.connectors.files.cleanup.cleanups import Outcome
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local.listing import list_files
from headrace.stores import local_move, local_taken
from headrace.stores.local import LocalStore
from headrace.stores.local_reader import version_of
from headrace.stores.local_taken import NotExpectedError, taken
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]
ACTIONS = pytest.mark.parametrize("action", ["delete", "move"])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file that is read."""
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.txt"
    path.write_text("one\n")
    return path


def target(path: Path) -> Path:
    """Where it is moved to."""
    return path.parent.parent / "done" / path.name


def settings(path: Path, action: str) -> dict[str, str]:
    """Of a connector that reads the folder."""
    given = {"files.path": str(path.parent), "topic": "t", "files.min.age.ms": "0"}
    given["files.after.commit"] = action
    return given | ({"files.move.to": str(target(path).parent)} if action == "move" else {})


def run(path: Path, action: str, stored: Stored, *, stop_after: int | None = None) -> list[str]:
    """What is read."""
    run = LocalRun(FilesConnector(), settings(path, action), stored, stop_after=stop_after)
    return [each.value for each in run.until_idle()]


def read(path: Path, action: str) -> Stored:
    """The offsets behind a run that has read the file, and ended before anything was done to it."""
    stored: Stored = {}
    assert ["one"] == run(path, action, stored, stop_after=1)
    return stored


def clean(path: Path, action: str, stored: Stored) -> Outcome:
    """Do to the file what is to be done."""
    cleanup = Cleanup(FilesConfig.parse(settings(path, action)))
    return cleanup.clean(str(path), stored[SourcePartition(filename=str(path))])


def publish(path: Path, text: str) -> None:
    """As producers do that want no one to see half a file."""
    new = path.parent.parent / "new"
    new.write_text(text)
    new.rename(path)


def before(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    call: Callable[[], object],
    module: ModuleType = local_taken.os,
) -> None:
    """Have *call* done once, just before a function of the system is."""
    real = getattr(module, name)
    left = [call]

    def first(*args: object, **more: object) -> object:
        if left:
            left.pop()()
        return real(*args, **more)

    monkeypatch.setattr(module, name, first)


def names(folder: Path) -> list[str]:
    """What is in it, if it is there."""
    return sorted(os.listdir(folder)) if folder.exists() else []  # noqa: PTH208


def no_links(*_: object, **__: object) -> None:
    """As disks answer that have none."""
    raise PermissionError(errno.EPERM, "no links")


# ------------------------------------------------------------------ what comes meanwhile


@pytest.mark.parametrize("has_links", [True, False])
@ACTIONS
def test_what_comes_just_before_it_goes_stays(
    path: Path, action: str, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
):
    """Behind the last look at it, too."""
    stored = read(path, action)
    if not has_links:
        monkeypatch.setattr(local_taken.os, "link", no_links)
    before(monkeypatch, "rename", lambda: publish(path, "two\n"))

    assert Outcome.CHANGED is clean(path, action, stored)

    assert (["a.txt"], "two\n") == (names(path.parent), path.read_text())
    assert [] == names(target(path).parent)
    assert ["two"] == run(path, action, stored)


def test_what_comes_while_its_new_name_is_made_durable_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It is another file, and the one that was read is where it belongs."""
    stored = read(path, "move")
    target(path).parent.mkdir()
    before(monkeypatch, "sync", lambda: publish(path, "two\n"), local_move)

    assert Outcome.DONE is clean(path, "move", stored)

    assert ("two\n", "one\n") == (path.read_text(), target(path).read_text())


@pytest.mark.parametrize("has_links", [True, False])
def test_what_comes_before_the_name_is_given_back_stays(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, has_links: bool
):
    """And so does the one before; where that is now is told."""
    stored = read(path, "delete")
    before(monkeypatch, "rename", lambda: publish(path, "two\n"))
    if not has_links:
        monkeypatch.setattr(local_taken.os, "link", no_links)
    name = "link" if has_links else "lexists"
    module = local_taken.os if has_links else local_taken.os.path
    before(monkeypatch, name, lambda: publish(path, "three\n"), module)

    with pytest.raises(TaskFailedError, match="Another file came under this name") as told:
        clean(path, "delete", stored)

    private = next(each for each in path.parent.iterdir() if each != path)
    assert ("three\n", "two\n") == (path.read_text(), private.read_text())
    assert str(private) in str(told.value)


def test_what_cannot_go_has_its_name_again(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Here a disk is full, where it is moved to."""
    stored = read(path, "move")
    link = os.link

    def full(source: str, to: str, **more: bool) -> None:
        if to == str(target(path)):
            raise OSError(errno.ENOSPC, "full")
        link(source, to, **more)

    monkeypatch.setattr(local_move.os, "link", full)

    with pytest.raises(OSError, match="full"):
        clean(path, "move", stored)

    assert (["a.txt"], "one\n") == (names(path.parent), path.read_text())


# ------------------------------------------------------------------ what a process leaves that dies


def die(path: Path, monkeypatch: pytest.MonkeyPatch, expected: str | None = None) -> None:
    """As a process does that has taken the file, which it has or has not *expected*."""
    with monkeypatch.context() as patched, suppress(KeyboardInterrupt, NotExpectedError):
        patched.setattr(local_taken, "give_back", lambda *_: None)
        with taken(str(path), expected or version_of(path.lstat())):
            raise KeyboardInterrupt
    assert not path.exists()


@ACTIONS
def test_what_was_taken_by_a_process_that_died_goes_at_the_next_start(
    path: Path, action: str, monkeypatch: pytest.MonkeyPatch
):
    """It is not read again."""
    stored = read(path, action)
    die(path, monkeypatch)

    assert [] == run(path, action, stored)

    assert [] == names(path.parent)
    assert (["a.txt"] if action == "move" else []) == names(target(path).parent)


@ACTIONS
def test_what_came_under_the_name_since_is_read(
    path: Path, action: str, monkeypatch: pytest.MonkeyPatch
):
    """By then no entry speaks of the one that was taken: its name does."""
    stored = read(path, action)
    die(path, monkeypatch)
    path.write_text("two\n")

    assert ["two"] == run(path, action, stored)

    assert ["a.txt"][: action == "move"] == names(path.parent)
    assert ["a.txt"][: action == "move"] == names(target(path).parent)


@ACTIONS
def test_what_was_taken_for_another_one_has_its_name_again(
    path: Path, action: str, monkeypatch: pytest.MonkeyPatch
):
    """A new file that no one has read."""
    stored = read(path, action)
    expected = version_of(path.lstat())
    publish(path, "two\n")
    die(path, monkeypatch, expected)

    assert ["two"] == run(path, action, stored)


def test_a_marker_that_was_taken_goes_at_the_next_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Its file is gone by then."""
    marker = path.with_name("a.txt.done")
    marker.touch()
    given = settings(path, "delete") | {"files.complete.marker": "{name}.done"}
    stored: Stored = {}
    LocalRun(FilesConnector(), given, stored, stop_after=1).until_idle()
    path.unlink()
    die(marker, monkeypatch)

    LocalRun(FilesConnector(), given, stored).until_idle()

    assert [] == names(path.parent)


def test_what_was_taken_is_moved_to_another_disk(path: Path, monkeypatch: pytest.MonkeyPatch):
    """It is copied from where it is."""
    stored = read(path, "move")
    die(path, monkeypatch)
    link = os.link

    def other_disk(source: str, to: str, **more: bool) -> None:
        if str(source).startswith(str(path.parent)):
            raise OSError(errno.EXDEV, "other disk")
        link(source, to, **more)

    monkeypatch.setattr(local_move.os, "link", other_disk)

    assert [] == run(path, "move", stored)

    assert ([], "one\n") == (names(path.parent), target(path).read_text())


def test_what_was_taken_waits_for_a_place_that_is_away(path: Path, monkeypatch: pytest.MonkeyPatch):
    """A disk that is not mounted; nothing is made in its place."""
    stored = read(path, "move")
    die(path, monkeypatch)
    given = settings(path, "move") | {"files.move.to": str(path.parent.parent / "disk" / "done")}

    LocalRun(FilesConnector(), given, stored).until_idle()

    assert ["in"] == names(path.parent.parent)
    assert 1 == len(names(path.parent))


def test_what_was_taken_is_no_file_to_be_read(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whatever the patterns are."""
    die(path, monkeypatch)

    assert 1 == len(names(path.parent))
    assert [] == list_files([f"{path.parent}/**", str(path.parent)], recursive=True)
    assert [] == list(LocalStore(str(path.parent)).list())
