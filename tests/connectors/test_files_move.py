"""Files on local disk that are moved when they were read: nothing of them is lost, and no one else may read them."""

from __future__ import annotations

import errno
import logging
import os
from pathlib import Path

import pytest

from headrace.connect import ConfigError, SourceOffset, SourcePartition
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.stores import local, local_move
from headrace.stores.local import LocalStore
from headrace.testing.task_runs import LocalRun

LONG_AGO = 1_000_000_000_000_000_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A private folder with a private file that was changed long ago."""
    made = tmp_path / "in"
    made.mkdir(mode=0o700)
    path = made / "a.jsonl"
    path.write_text("1\n")
    path.chmod(0o600)
    os.utime(path, ns=(LONG_AGO, LONG_AGO))
    return made


def settings(folder: Path, action: str = "move", **more: str) -> dict[str, str]:
    """Of a connector that reads *folder*."""
    given = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0"}
    given["files.after.commit"] = action
    if action == "move":
        given["files.move.to"] = str(done(folder))
    return given | {key.replace("_", "."): each for key, each in more.items()}


def done(folder: Path) -> Path:
    """Where its files are moved to."""
    return folder.parent / "done"


def run(folder: Path, action: str = "move", **more: str) -> list[object]:
    """What a run reads, without offsets from before."""
    given = settings(folder, action, **more)
    return [each.value for each in LocalRun(FilesConnector(), given, {}).until_idle()]


def names(folder: Path) -> list[str]:
    """What is in a folder, if that is there."""
    return sorted(each.name for each in folder.iterdir()) if folder.exists() else []


def mode(path: Path) -> int:
    """Who may do what with it."""
    return path.stat().st_mode & 0o777


def moved(folder: Path, name: str = "a.jsonl") -> None:
    """Move one file as the connector does."""
    store = LocalStore("/")
    key = str(folder / name).lstrip("/")
    store.move(key, store.head(key).version, str(done(folder) / "x" / name).lstrip("/"))


# ------------------------------------------------------------------ renamed, or copied


def test_within_one_file_system_it_is_the_same_file(folder: Path) -> None:
    """With its inode, mode and times; folders that are made let no one in who may not enter its own."""
    before = (folder / "a.jsonl").stat()

    assert ["1"] == run(folder)

    after = (done(folder) / "a.jsonl").stat()
    assert [] == names(folder)
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert (LONG_AGO, 1) == (after.st_mtime_ns, after.st_nlink)
    assert 0o700 == mode(done(folder))


def test_to_another_file_system_it_is_copied_with_mode_and_times(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing half is left there."""
    link = os.link

    def other_disk(source: str, target: str, **more: bool) -> None:
        if str(source).startswith(str(folder)):
            raise OSError(errno.EXDEV, "other disk")
        link(source, target, **more)

    monkeypatch.setattr(local_move.os, "link", other_disk)

    moved(folder)

    path = done(folder) / "x" / "a.jsonl"
    assert ([], ["a.jsonl"]) == (names(folder), names(path.parent))
    assert ("1\n", 0o600) == (path.read_text(), mode(path))
    assert LONG_AGO == path.stat().st_mtime_ns
    assert [0o700, 0o700] == [mode(each) for each in (path.parent, done(folder))]


def test_without_hard_links_it_is_renamed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some disks have none, and some kernels refuse those to what is another user's."""

    def refused(*_: str, **__: bool) -> None:
        raise PermissionError(errno.EPERM, "no links")

    monkeypatch.setattr(local_move.os, "link", refused)
    inode = (folder / "a.jsonl").stat().st_ino

    moved(folder)

    assert inode == (done(folder) / "x" / "a.jsonl").stat().st_ino


def test_a_link_is_copied(folder: Path) -> None:
    """Where it is moved to, it would lead elsewhere."""
    (folder / "b.jsonl").symlink_to("a.jsonl")

    moved(folder, "b.jsonl")

    path = done(folder) / "x" / "b.jsonl"
    assert (False, "1\n") == (path.is_symlink(), path.read_text())
    assert ["a.jsonl"] == names(folder)


def test_a_copy_is_not_wider_than_the_file(folder: Path) -> None:
    """Also one that does not move it."""
    store = LocalStore(str(folder))

    store.copy("a.jsonl", store.head("a.jsonl").version, "b.jsonl")

    assert (0o600, LONG_AGO) == (mode(folder / "b.jsonl"), (folder / "b.jsonl").stat().st_mtime_ns)


# ------------------------------------------------------------------ what is there already


@pytest.mark.parametrize("copied", [False, True])
def test_what_a_process_left_that_died_halfway_is_gone_on_with(
    folder: Path,
    copied: bool,  # noqa: FBT001
) -> None:
    """Between the link, or the copy, and the deletion."""
    target = done(folder) / "x" / "a.jsonl"
    target.parent.mkdir(parents=True)
    if copied:
        target.write_text("1\n")
    else:
        os.link(folder / "a.jsonl", target)

    moved(folder)

    assert [] == names(folder)
    assert "1\n" == target.read_text()


def test_another_file_is_not_replaced(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Both stay, and it is told which, and how often that failed."""
    done(folder).mkdir()
    (done(folder) / "a.jsonl").write_text("before\n")

    with caplog.at_level(logging.WARNING):
        run(folder)

    assert ["a.jsonl"] == names(folder)
    assert "before\n" == (done(folder) / "a.jsonl").read_text()
    assert f" once so far: {done(folder)}/a.jsonl: Another file lies here" in caplog.text


def test_a_file_in_place_of_a_folder_is_named(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """By its whole path."""
    done(folder).write_text("no folder")

    with caplog.at_level(logging.WARNING):
        run(folder)

    assert f" once so far: {done(folder)}: This is a file, and a folder is needed." in caplog.text


def test_a_link_to_the_file_itself_is_no_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the last name of the content would go."""
    target = done(folder) / "x" / "a.jsonl"
    target.parent.mkdir(parents=True)
    target.symlink_to(folder / "a.jsonl")
    monkeypatch.setattr(local, "renamed", lambda *_: False)

    with pytest.raises(Exception, match="Another file lies here"):
        moved(folder)

    assert "1\n" == (folder / "a.jsonl").read_text()


# ------------------------------------------------------------------ markers


@pytest.mark.parametrize(
    ("action", "left"), [("delete", []), ("move", ["a.jsonl", "a.jsonl.done"])]
)
def test_a_marker_goes_with_its_file(folder: Path, action: str, left: list[str]) -> None:
    """So that what comes under the name waits for its own."""
    marker = {"files_complete_marker": "{name}.done"}
    (folder / "a.jsonl.done").touch()

    assert ["1"] == run(folder, action, **marker)

    assert [] == names(folder)
    assert left == names(done(folder))
    (folder / "a.jsonl").write_text("half")
    assert [] == run(folder, action, **marker)


def test_a_marker_that_failed_is_tried_again_with_its_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although that is gone by then."""
    (folder / "a.jsonl.done").touch()
    delete, refused = LocalStore.delete, ["a.jsonl.done"]

    def failing(store: LocalStore, key: str, version: str) -> bool:
        if refused and key.endswith(refused[0]):
            refused.clear()
            raise OSError("busy")
        return delete(store, key, version)

    monkeypatch.setattr(LocalStore, "delete", failing)

    stored = dict[SourcePartition, SourceOffset]()
    given = settings(folder, "delete", files_complete_marker="{name}.done")
    for _ in range(2):
        LocalRun(FilesConnector(), given, stored).until_idle()

    assert ([], []) == (refused, names(folder))


@pytest.mark.parametrize("action", ["delete", "move"])
def test_the_marker_of_a_folder_is_refused_where_files_go(folder: Path, action: str) -> None:
    """It would stay, and speak of files that no one has written yet."""
    with pytest.raises(ConfigError, match=r"Give each file its own, such as \{name\}\.done"):
        FilesConfig.parse(settings(folder, action, files_complete_marker="_SUCCESS"))

    FilesConfig.parse(settings(folder, "keep", files_complete_marker="_SUCCESS"))
