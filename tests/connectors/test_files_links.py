"""Symbolic links on local disk, as docs/read-files.md tells of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.files_steps import Steps
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file and a folder, a link to each, and one that leads back up."""
    made = tmp_path / "in"
    (made / "sub").mkdir(parents=True)
    (made / "a.txt").write_text("a\n")
    (made / "sub" / "b.txt").write_text("b\n")
    (made / "to_a.txt").symlink_to("a.txt")
    (made / "to_sub").symlink_to("sub")
    (made / "sub" / "up").symlink_to("..")
    (tmp_path / "to_in").symlink_to("in")
    return made


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("in", ["in/a.txt", "in/sub/b.txt", "in/to_a.txt"]),
        ("in/**/*.txt", ["in/a.txt", "in/sub/b.txt", "in/to_a.txt"]),
        ("in/*/*.txt", ["in/sub/b.txt", "in/to_sub/b.txt"]),
        ("to_in", ["to_in/a.txt", "to_in/sub/b.txt", "to_in/to_a.txt"]),
        ("to_in/a*", ["to_in/a.txt"]),
    ],
)
def test_links_are_followed_where_that_makes_no_loop(folder: Path, path: str, names: list[str]):
    """To files always; to folders where the path names them or a glob matches their level, not below."""
    above = folder.parent

    plan = Steps(above / path, files_recursive="true" if "*" not in path else "false").plan()

    found = [str(split.partition["filename"]) for share in plan.shares for split in share]
    assert [str(above / name) for name in names] == found


def test_what_is_selected_under_two_paths_is_sent_twice(folder: Path):
    """Each path has its own offset; exclusion leaves one out."""
    props = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0"}

    twice = LocalRun(FilesConnector(), props, {}).until_idle()
    once = LocalRun(FilesConnector(), {**props, "files.exclude": "to_*"}, {}).until_idle()

    assert ["a", "a"] == [each.value for each in twice]
    assert ["a"] == [each.value for each in once]


def test_to_delete_a_link_leaves_what_it_leads_to(folder: Path):
    """It was read under the link's path."""
    props = {"files.path": str(folder / "to_a.txt"), "topic": "t", "files.min.age.ms": "0"}

    LocalRun(FilesConnector(), {**props, "files.after.commit": "delete"}, {}).until_idle()

    assert not (folder / "to_a.txt").is_symlink()
    assert "a\n" == (folder / "a.txt").read_text()
