"""What lies on disk, while it comes and goes and may or may not be read."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.connect import ConnectError, SourceOffset, SourcePartition, TaskFailedError
from headrace.connect.connector import Plan, PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local import file_seen, selection
from headrace.connectors.files.local.listing import list_files
from headrace.connectors.files.local.ready import Ready, last_line_end
from headrace.testing.task_runs import StoredOffsets

Stored = dict[SourcePartition, SourceOffset]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A text file's path."""
    return tmp_path / "a.txt"


def started(selected: Path, **props: str) -> FilesConnector:
    """A connector that reads what is *selected*."""
    made = FilesConnector()
    named = {key.replace("_", "."): value for key, value in props.items()}
    made.start({"files.path": str(selected), "topic": "t", "files.min.age.ms": "0", **named})
    return made


def planned(made: FilesConnector, stored: Stored) -> Plan:
    """Its next plan."""
    return made.plan(PlanRequest(slots=1, offsets=StoredOffsets(stored)))


def files_of(plan: Plan) -> list[object]:
    """The names of the files that *plan* reads."""
    return [Path(str(split.partition["filename"])).name for share in plan.shares for split in share]


def before(monkeypatch: pytest.MonkeyPatch, module: object, name: str, act: Callable) -> None:
    """Do *act* before each call of the module's function *name*."""
    original = getattr(module, name)

    def instead(*args: object, **kwargs: object) -> object:
        act()
        return original(*args, **kwargs)

    monkeypatch.setattr(module, name, instead)


@pytest.mark.parametrize("step", ["look_at", "last_line_end"])
def test_a_file_that_vanishes_behind_the_listing_is_left_out_and_told(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    """The others are read, the log names it, and an empty plan is asked for again soon."""
    path.write_text("one\n")
    (path.parent / "b.txt").write_text("two\n")
    made = started(path.parent, files_follow="true")
    before(monkeypatch, selection, step, lambda: path.unlink(missing_ok=True))

    with caplog.at_level(logging.WARNING):
        plan = planned(made, {})

    assert ["b.txt"] == files_of(plan)
    assert plan.ask_again_after is not None
    assert f"{path}: The file vanished while it was looked at" in caplog.text


def test_a_half_read_file_that_vanishes_behind_the_listing_fails_the_next_plan(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends with its work does not take it for finished."""
    path.write_text("one\ntwo\n")
    stored: Stored = {SourcePartition(filename=str(path)): {"recordCount": 1, "anchor": 4}}
    made = started(path.parent)
    before(monkeypatch, selection, "look_at", path.unlink)

    assert planned(made, stored).ask_again_after
    with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
        planned(made, stored)


def test_a_named_file_that_was_read_may_vanish(path: Path) -> None:
    """One that no one has seen yet is an error."""
    assert [] == list_files([str(path)], recursive=False, known=[str(path)])
    with pytest.raises(TaskFailedError, match="does not exist"):
        list_files([str(path)], recursive=False)


@pytest.mark.parametrize(("selected", "recursive"), [("", True), ("**/*.txt", False)])
def test_a_folder_that_vanishes_while_it_is_listed_is_left_out_and_told(  # noqa: PLR0917
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    selected: str,
    recursive: bool,  # noqa: FBT001
) -> None:
    """Only one that no one has seen yet is an error."""
    inner = tmp_path / "in"
    inner.mkdir()
    (tmp_path / "a.txt").touch()
    scanned: list[str] = []
    original = os.scandir

    def scandir(folder: str) -> object:
        scanned.append(folder)
        if folder == str(inner):
            inner.rmdir()
        return original(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    with caplog.at_level(logging.WARNING):
        found = list_files([str(tmp_path / selected)], recursive=recursive)

    assert [str(tmp_path / "a.txt")] == found
    assert str(inner) in scanned
    assert f"{inner}: The folder vanished" in caplog.text


def test_a_link_to_itself_that_is_named_fails(tmp_path: Path) -> None:
    """It is no file, but no reason to pass for a place without files either."""
    (tmp_path / "loop.txt").symlink_to("loop.txt")

    with pytest.raises(TaskFailedError, match=r"loop\.txt: This path cannot be read: Too many"):
        list_files([str(tmp_path / "loop.txt")], recursive=False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_is_named(path: Path) -> None:
    """It is not left out like one that is gone."""
    path.write_text("one\n")
    path.chmod(0)

    with pytest.raises(ConnectError, match=r"a\.txt: This file cannot be read: Permission denied"):
        planned(started(path), {})


@pytest.mark.parametrize("step", ["look_at", "last_line_end", "status_of"])
def test_what_the_system_does_not_let_us_read_is_named(
    path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Each look at a file says which one it was, and what the system says."""
    path.write_text("one\n")
    looks: dict[str, Callable[[], object]] = {
        "look_at": lambda: file_seen.look_at(str(path)),
        "last_line_end": lambda: last_line_end(str(path), start=0, size=4, at_most=9),
        "status_of": lambda: file_seen.status_of(str(path)),
    }

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    monkeypatch.setattr(os, "stat", refuse)
    with pytest.raises(TaskFailedError, match=r"a\.txt: This file cannot be read: Permission"):
        looks[step]()


def test_a_file_whose_folder_became_a_file_is_gone(path: Path) -> None:
    """The system says it in other words."""
    path.touch()

    assert file_seen.look_at(f"{path}/x") is None
    assert file_seen.status_of(f"{path}/x") is None


def test_listing_selects_folders_files_and_globs(tmp_path: Path) -> None:
    """Sorted, each once, without hidden ones; folders inside only when asked or by two stars."""
    for name in ("b.txt", "a.txt", ".hidden", "in/c.txt", "in/deep/d.txt", "in/.x/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def listed(*paths: str, recursive: bool = False) -> list[str]:
        found = list_files([str(tmp_path / path) for path in paths], recursive=recursive)
        return [str(Path(each).relative_to(tmp_path)) for each in found]

    assert ["a.txt", "b.txt"] == listed("")
    assert ["a.txt", "b.txt", "in/c.txt", "in/deep/d.txt"] == listed("", recursive=True)
    assert ["a.txt", "b.txt", "in/c.txt", "in/deep/d.txt"] == listed("**/*.txt")
    assert ["in/c.txt"] == listed("i?/[c-e].txt", "in/c.txt")
    assert ["in/c.txt"] == listed("*/c.*")


def test_a_dot_that_a_glob_writes_out_stands_for_that_of_a_name(tmp_path: Path) -> None:
    """As in a shell: neither one star nor two stand for it."""
    for name in (".a.txt", "a.txt", ".in/b.txt", ".in/.c.txt", "in/.x/d.txt", "in/.x/y/e.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    folder, told = str(tmp_path), dict[str, str]()

    def listed(glob: str) -> list[str]:
        found = list_files([f"{folder}/{glob}"], recursive=False, left_out=told.__setitem__)
        return [each.removeprefix(f"{folder}/") for each in found]

    assert [".a.txt"] == listed(".*.txt")
    assert "No glob of files.path matches it." == told[f"{folder}/.in"]
    assert [".in/b.txt"] == listed(".*/*.txt")
    assert [".in/.c.txt"] == listed(".in/.*")
    assert [".in/b.txt", "in/.x/d.txt"] == listed("**/.*/*.txt")
    assert ["in/.x/d.txt", "in/.x/y/e.txt"] == listed("in/**/.*/**")
    assert ["a.txt"] == listed("**")
    assert "Its name begins with a dot." == told[f"{folder}/.in"]


def test_names_that_are_not_utf8_are_listed_as_no_other_is(tmp_path: Path) -> None:
    """No offset could be stored for them as they are, and none may be taken for that of another file."""
    for name in (b"\xff.txt", b"\\xff.txt", b"\\\xff.txt", b"\\xff\xff.txt", b"\xff\\xff.txt"):
        Path(os.fsdecode(bytes(tmp_path) + b"/" + name)).touch()

    found = list_files([str(tmp_path)], recursive=False)

    assert 5 == len(set(found))
    assert [f"{tmp_path}/\\xff.txt"] == [each for each in found if "//" not in each]


@pytest.mark.parametrize(
    ("content", "start", "at_most", "expected"),
    [
        (b"a\nb", 0, 10, Ready(stop=2)),
        (b"a\nb", 2, 10, Ready(stop=2)),
        (b"abc", 0, 10, Ready(stop=0)),
        (b"a\n" + b"x" * 200_000, 0, 100_000, Ready(stop=200_002, open_ended=True)),
        (b"a\n" + b"x" * 200_000, 0, 300_000, Ready(stop=2)),
    ],
)
def test_the_last_line_end_is_found(  # noqa: PLR0917
    path: Path, content: bytes, start: int, at_most: int, expected: Ready
) -> None:
    """From behind, in bounded steps; a line over the limit need not be waited for."""
    path.write_bytes(content)

    assert expected == last_line_end(str(path), start=start, size=len(content), at_most=at_most)
