"""Files that were read, and lie under their names again with another inode before anything was done to them."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from headrace.connect import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]
TOLD = "is another file than the one"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with a plain and a packed file."""
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n")
    (folder / "b.txt.gz").write_bytes(gzip.compress(b"two\n"))
    return folder


def run(
    folder: Path, stored: Stored, /, *, stop_after: int | None = None, **more: str
) -> list[str]:
    """What is read, and deleted."""
    given = {"files.path": str(folder), "topic": "t", "files.min.age.ms": "0"}
    given |= {"files.after.commit": "delete"}
    given |= {key.replace("_", "."): each for key, each in more.items()}
    delivered = LocalRun(FilesConnector(), given, stored, stop_after=stop_after).until_idle()
    return sorted(each.value for each in delivered)


def read(folder: Path) -> Stored:
    """The offsets behind a run that has read all, and ended before anything was done to it."""
    stored: Stored = {}
    assert ["one", "two"] == run(folder, stored, stop_after=2)
    return stored


@pytest.mark.parametrize("is_away", [False, True])
@pytest.mark.parametrize("changed", ["fail", "ignore", "reread"])
def test_a_file_that_is_back_is_not_read_again(
    folder: Path, caplog: pytest.LogCaptureFixture, changed: str, *, is_away: bool
):
    """What is left to do to it is done, whether a plan has seen that it was away or not."""
    stored = read(folder)
    away = folder.with_name("away")
    folder.rename(away)
    if is_away:
        folder.mkdir()
        assert [] == run(folder, stored, files_changed=changed)
        folder.rmdir()
    shutil.copytree(away, folder)

    assert [] == run(folder, stored, files_changed=changed)

    assert ([], {}) == (os.listdir(folder), stored)  # noqa: PTH208
    assert TOLD not in caplog.text


def test_a_copy_that_is_being_put_back_is_left_until_it_is_old_enough(folder: Path):
    """It may not be whole yet, and it is to be moved as it was."""
    stored = read(folder)
    away = folder.with_name("away")
    folder.rename(away)
    shutil.copytree(away, folder)

    assert [] == run(folder, stored, files_min_age_ms="60000")

    assert ["a.txt", "b.txt.gz"] == sorted(os.listdir(folder))  # noqa: PTH208


def test_another_file_of_the_same_size_is_read(folder: Path, caplog: pytest.LogCaptureFixture):
    """One byte is enough."""
    stored = read(folder)
    (folder / "new").write_text("ONE\n")
    (folder / "new").rename(folder / "a.txt")

    assert ["ONE"] == run(folder, stored)

    assert TOLD in caplog.text


def test_without_a_proof_of_its_last_byte_it_is_another_file(folder: Path):
    """An entry need not speak of all that the file has."""
    stored = read(folder)
    partition = SourcePartition(filename=str(folder / "a.txt"))
    stored[partition] = {**stored[partition], "checked": 0, "checksum": 0}
    (folder / "new").write_text("ONE\n")
    (folder / "new").rename(folder / "a.txt")

    assert ["ONE"] == run(folder, stored)
