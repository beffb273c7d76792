"""Numbers in offsets that people or other programs wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.connect import SourceOffset, SourcePartition, TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A text file of ten lines."""
    made = tmp_path / "a.txt"
    made.write_text("".join(f"{n}\n" for n in range(10)))
    return made


def run(path: Path, key: str, value: OffsetValue) -> tuple[list[str], Stored]:
    """What a run commits where the offset has *value* under *key*, and the offsets then."""
    stored: Stored = {SourcePartition(filename=str(path)): {key: value}}
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    delivered = LocalRun(FilesConnector(), given, stored).until_idle()
    return [each.value for each in delivered], stored


@pytest.mark.parametrize("count", [7, 7.0])
def test_a_count_is_left_out(path: Path, count: OffsetValue) -> None:
    """Also one that JSON wrote with a fraction of nothing."""
    sent, stored = run(path, "recordCount", count)

    assert ["7", "8", "9"] == sent
    assert [10] == [each["recordCount"] for each in stored.values()]


@pytest.mark.parametrize("value", ["7", -1, True, 7.5, float("inf"), None])
@pytest.mark.parametrize("key", ["recordCount", "anchor"])
def test_what_is_no_count_is_refused(path: Path, key: str, value: OffsetValue) -> None:
    """It would be taken for nothing, and the file be read again."""
    with pytest.raises(
        TaskFailedError, match=f"under '{key}'; it must be a whole number"
    ) as caught:
        run(path, key, value)

    assert str(caught.value).startswith(f"{path}: Its offset {{'{key}': {value!r}}} has")


def test_more_records_than_there_are_is_a_failure(path: Path) -> None:
    """It is not done with as many as there are."""
    with pytest.raises(TaskFailedError, match="counts 99 records, and there are only 10") as caught:
        run(path, "recordCount", 99)

    assert str(caught.value).startswith(f"{path}: ")
    assert [] == run(path, "recordCount", 10)[0]


def test_a_last_line_that_is_waited_for_counts(path: Path) -> None:
    """It is not there yet where it is too young, and that is no failure."""
    path.write_text(path.read_text()[:-1])
    stored: Stored = {SourcePartition(filename=str(path)): {"recordCount": 10}}
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "60000"}
    local = LocalRun(FilesConnector(), given, stored)
    local._connector.start(local._props)
    (task,) = local._tasks()

    local._drain(task)

    assert [{"recordCount": 10}] == list(stored.values())
    assert ([], True) == (
        local.delivered,
        "done" in next(iter(run(path, "recordCount", 10)[1].values())),
    )
