"""Files that are being written: a row is taken when it is whole, whatever line ends its fields hold."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from headrace.connect import ConnectError, SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import LocalRun
from task.local_loop import Rounds

Stored = dict[SourcePartition, SourceOffset]


class LaterFiles(FilesConnector):
    """One that comes when files have been left alone for long enough."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: time.time() + 10)


def run_of(path: Path, stored: Stored, *, follow: bool = True, age: str = "0") -> LocalRun:
    """A run over the file."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": age}
    return LocalRun(FilesConnector(), given | {"files.follow": str(follow).lower()}, stored)


@pytest.mark.parametrize("rest", ['3,"x\nyy', '3,"x\n', '3,"', "3", '3,"x\n\n\n'])
@pytest.mark.parametrize(("follow", "age"), [(True, "0"), (False, "60000")])
def test_a_half_written_row_is_no_work_until_it_is_whole(
    tmp_path: Path,
    rest: str,
    follow: bool,  # noqa: FBT001
    age: str,
) -> None:
    """It is neither planned again and again, nor an error."""
    path, stored = tmp_path / "a.csv", Stored()
    path.write_text("a,b\n1,2\n" + rest)
    run = run_of(path, stored, follow=follow, age=age)
    assert ['{"a":"1","b":"2"}'] == [each.value for each in run.until_idle()]
    assert [] == list(run._tasks())
    assert [] == list(run._tasks())
    with path.open("a") as file:
        file.write(",z\n" if rest == "3" else 'z"\n')

    (more,) = run_of(path, stored, follow=follow, age=age).until_idle()

    assert more.value.startswith('{"a":"3","b":"')
    assert more.value.endswith('z"}')


def test_a_row_without_end_is_an_error_when_nothing_comes_any_more(tmp_path: Path) -> None:
    """The file is old enough and not followed."""
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,2\n3,"x\n')
    run = run_of(path, {}, follow=False)

    with pytest.raises(ConnectError, match="never closed"):
        run.until_idle()


def test_a_followed_file_is_done_when_its_last_row_is_whole(tmp_path: Path) -> None:
    """So that it is not looked into at each plan."""
    path, stored = tmp_path / "a.csv", Stored()
    path.write_text('a,b\n1,2\n3,"x\ny"\n')

    assert 2 == len(run_of(path, stored).until_idle())
    assert [True] == [each.get("done") for each in stored.values()]


def test_a_row_longer_than_may_be_is_told_while_it_grows(tmp_path: Path) -> None:
    """Waiting for its end would be waiting for ever."""
    path = tmp_path / "a.csv"
    path.write_text('a,b\n1,"' + "x\n" * 2_000_000)

    with pytest.raises(ConnectError, match="longer than 1048576 bytes"):
        run_of(path, {}).until_idle()


@pytest.mark.parametrize("split", ["0", "1000"])
@pytest.mark.parametrize(("follow", "age"), [("true", "0"), ("false", "60000")])
def test_a_long_line_is_passed_over_when_its_end_is_there(
    tmp_path: Path, follow: str, age: str, split: str
) -> None:
    """Its rest would be taken for a record otherwise."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\ntwo\n" + b"x" * 200_000)
    given = {"files.path": str(path), "name": "c", "topic": "t", "files.max.line.bytes": "1000"}
    given |= {"files.min.age.ms": age, "files.follow": follow, "files.split.bytes": split}
    played = Rounds(FilesConnector, given, ErrorPolicy(tolerate=True, dead_letters="dead"))
    with pytest.raises(ConnectError, match="longer than 1000 bytes"):
        played.play()
    assert [] == played.values("dead")

    with path.open("a") as file:
        file.write("REST\nthree\n")
    played.play()

    assert [b"one", b"two", b"three"] == sorted(
        played.values("t"), key=[b"one", b"two", b"three"].index
    )
    assert [None] == played.values("dead")


def test_a_long_last_line_is_passed_over_when_nothing_comes_any_more(tmp_path: Path) -> None:
    """It waits no longer for its end than any other last line does."""
    path = tmp_path / "a.txt"
    path.write_bytes(b"one\n" + b"x" * 200_000)
    given = {"files.path": str(path), "name": "c", "topic": "t", "files.max.line.bytes": "1000"}
    played = Rounds(LaterFiles, given, ErrorPolicy(tolerate=True, dead_letters="dead"))

    played.play()

    assert ([b"one"], [None]) == (played.values("t"), played.values("dead"))
