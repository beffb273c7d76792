"""Files among others whose extension does not identify the format."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files_steps import Steps, Stored, names_of
from connectors.test_files_store_selection import OBJECT, decided
from headrace.connect import SourcePartition
from headrace.connect.errors import TaskFailedError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One file that is known, and two that are not."""
    for name in ("a.odd", "b.jsonl", "c.odd"):
        (tmp_path / name).write_text("1\n")
    return tmp_path


@pytest.mark.parametrize("path", ["", "*", "[a-c]*", "**"])
def test_it_is_left_out_and_told_once(
    folder: Path, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One warning for each extension, with what to do; explain has the same sentence for each file."""
    steps = Steps(folder / path)

    with caplog.at_level(logging.WARNING):
        assert [["b.jsonl"], ["b.jsonl"]] == [names_of(steps.plan()) for _ in range(2)]

    (told,) = [each.getMessage() for each in caplog.records]
    assert ".odd: Its extension does not identify the format, so that it is left out." in told
    rows = steps.explained()
    assert all("so that it is left out" in str(rows[name].reason) for name in ("a.odd", "c.odd"))
    assert not any(each.fails for each in rows.values())


def test_a_hundred_extensions_are_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Names that end with numbers have one each."""
    for number in range(150):
        (folder / f"x.{number:06}").touch()

    with caplog.at_level(logging.WARNING):
        Steps(folder).plan()

    assert 100 == sum("Its extension does not identify" in each for each in caplog.messages)


@pytest.mark.parametrize("path", ["a.odd", "*.odd"])
def test_what_is_named_fails(folder: Path, path: str) -> None:
    """It was meant to be read."""
    with pytest.raises(TaskFailedError, match="does not identify the format"):
        Steps(f"{folder / path},{folder}").plan()


def test_where_nothing_is_known_it_fails(folder: Path) -> None:
    """Not a place without files; unless something was read there before."""
    path = folder / "b.jsonl"
    known: Stored = {SourcePartition(filename=str(path)): {"recordCount": 1, "done": True}}
    path.unlink()

    with pytest.raises(TaskFailedError, match="does not identify the format"):
        Steps(folder).plan()
    assert Steps(folder).explained()["a.odd"].fails

    assert [] == names_of(Steps(folder, known).plan())


def test_what_was_begun_fails(folder: Path) -> None:
    """The settings have changed since."""
    known: Stored = {SourcePartition(filename=str(folder / "a.odd")): {"anchor": 1, "size": 2}}

    with pytest.raises(TaskFailedError, match="does not identify the format"):
        Steps(folder, known).plan()


def test_in_a_store_it_is_the_same() -> None:
    """Of what a prefix selects."""
    objects = [replace(OBJECT, key=key) for key in ("a.odd", "b.jsonl")]

    assert ["s3://b/b.jsonl"] == list(decided(*objects))
    for path in ("s3://b/a.odd", "s3://b/*.odd", "s3://b/a"):
        with pytest.raises(TaskFailedError, match="does not identify the format"):
            decided(*objects, path=path)
