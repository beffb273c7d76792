"""Odd entries of a folder: with errors.tolerance=all they are put in quarantine, and the others are read."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.files_steps import Steps
from headrace.connect import ConnectError, SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import LocalRun
from task.local_loop import Rounds

Odd = Callable[[Path], Path]
TOLERANT = ErrorPolicy(tolerate=True, dead_letters="dead", headers=True)
NOT_UTF8 = os.fsdecode(b"b\xff.jsonl")


def looping(folder: Path) -> Path:
    """A link that leads to itself."""
    (folder / "loop.jsonl").symlink_to("loop.jsonl")
    return folder / "loop.jsonl"


def misnamed(folder: Path) -> Path:
    """A file whose name is not UTF-8."""
    (folder / NOT_UTF8).write_text('{"n":9}\n')
    return folder / NOT_UTF8


def doubled(folder: Path) -> Path:
    """A Parquet file with two columns of one name."""
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    pq.write_table(table, folder / "twice.parquet")
    return folder / "twice.parquet"


every_odd = pytest.mark.parametrize("odd", [looping, misnamed, doubled])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One with two files, of which names sort before and behind those of odd ones."""
    (tmp_path / "a.jsonl").write_text('{"n":1}\n')
    (tmp_path / "z.jsonl").write_text('{"n":2}\n')
    return tmp_path


def rounds(folder: Path) -> Rounds:
    """Rounds over *folder* that tolerate errors."""
    props = {"name": "c", "topic": "t", "files.path": str(folder), "files.min.age.ms": "0"}
    return Rounds(FilesConnector, props, TOLERANT)


@every_odd
def test_the_others_are_read(folder: Path, odd: Odd, caplog: pytest.LogCaptureFixture) -> None:
    """The odd one is one letter, and its entry says why; the next start warns of it and sends nothing."""
    odd(folder)
    played = rounds(folder)

    played.play()

    assert [b'{"n":1}', b'{"n":2}'] == sorted(filter(None, played.values("t")))
    assert [None] == played.values("dead")
    quarantined = [each for each in played.stored.values() if each.get("quarantined")]
    assert 1 == len(quarantined)
    with caplog.at_level(logging.WARNING):
        played.play()
    assert "It is in quarantine and read no further" in caplog.text
    assert 1 == len(played.values("dead"))


@every_odd
def test_without_tolerance_it_fails(folder: Path, odd: Odd) -> None:
    """A connector that is told nothing leaves nothing out."""
    odd(folder)
    props = {"topic": "t", "files.path": str(folder), "files.min.age.ms": "0"}

    with pytest.raises(ConnectError, match=r"leads to itself|is not UTF-8|Several columns"):
        LocalRun(FilesConnector(), props, {}).until_idle()


@every_odd
def test_what_is_put_right_is_read(folder: Path, odd: Odd) -> None:
    """Once: nothing of it was sent before."""
    path = odd(folder)
    played = rounds(folder)
    played.play()

    path.unlink()
    (folder / "c.jsonl").write_text('{"n":9}\n')
    (folder / "c.jsonl").rename(folder / "b.jsonl" if odd is misnamed else path)
    if odd is doubled:
        pq.write_table(pa.table({"n": [9]}), path)
    played.play()
    played.play()

    assert 3 == len(played.values("t"))


def test_a_file_with_the_name_that_an_odd_one_is_given_is_another(folder: Path) -> None:
    """Neither takes the other's offset."""
    misnamed(folder)
    (folder / "b\\xff.jsonl").write_text('{"n":3}\n')
    played = rounds(folder)

    played.play()
    played.play()

    assert 3 == len(played.values("t"))
    assert [None] == played.values("dead")


def test_a_link_to_itself_in_the_place_of_what_was_read_fails(folder: Path) -> None:
    """What is left of that file is not damaged but gone."""
    props = {"topic": "t", "files.path": str(folder), "files.min.age.ms": "0"}
    stored = dict[SourcePartition, SourceOffset]()
    LocalRun(FilesConnector(), props, stored).until_idle()
    before = dict(stored)
    (folder / "a.jsonl").unlink()
    (folder / "a.jsonl").symlink_to("a.jsonl")

    with pytest.raises(ConnectError, match=r"a\.jsonl: It is a symbolic link that leads to itself"):
        LocalRun(FilesConnector(), props, stored).until_idle()

    assert before == stored


@pytest.mark.parametrize("selected", ["", "*.jsonl"])
def test_what_is_no_file_is_told_once(
    folder: Path, caplog: pytest.LogCaptureFixture, selected: str
) -> None:
    """Whoever writes into a FIFO might wait for records; explain has the reason, too."""
    os.mkfifo(folder / "pipe.jsonl")
    with socket.socket(socket.AF_UNIX) as opened:
        here = Path.cwd()
        os.chdir(folder)  # the name of a socket is short
        try:
            opened.bind("socket.jsonl")
        finally:
            os.chdir(here)
    steps = Steps(folder / selected if selected else folder)

    with caplog.at_level(logging.WARNING):
        steps.plan()
        steps.plan()

    assert 1 == caplog.text.count("It is a FIFO, and only regular files are read.")
    assert 1 == caplog.text.count("It is a socket, and only regular files are read.")
    told = {name: row.reason for name, row in steps.explained().items()}
    assert "It is a FIFO, and only regular files are read." == told["pipe.jsonl"]


def test_explain_shows_that_an_odd_one_fails_the_connector(folder: Path) -> None:
    """Before anything runs; a name that is not UTF-8 can be printed."""
    looping(folder)
    misnamed(folder)

    rows = Steps(folder).explained()

    assert ["b\\xff.jsonl", "loop.jsonl"] == sorted(name for name, row in rows.items() if row.fails)
    assert "leads to itself" in str(rows["loop.jsonl"].reason)
    assert "is not UTF-8" in str(rows["b\\xff.jsonl"].reason)
    assert ["a.jsonl", "z.jsonl"] == sorted(name for name, row in rows.items() if row.slots)


def test_explain_shows_that_a_tolerated_odd_one_is_put_in_quarantine(folder: Path) -> None:
    """It is not read, and fails nothing."""
    looping(folder)
    misnamed(folder)

    rows = Steps(folder, errors_tolerance=" all").explained()

    assert not any(row.fails for row in rows.values())
    begin = "It would be put in quarantine: "
    assert f"{begin}It is a symbolic link" in str(rows["loop.jsonl"].reason)
    assert f"{begin}The file's name is not UTF-8" in str(rows["b\\xff.jsonl"].reason)
    assert ["a.jsonl", "z.jsonl"] == sorted(name for name, row in rows.items() if row.slots)


def test_explain_shows_that_a_tolerated_odd_one_waits_for_a_later_round(folder: Path) -> None:
    """A round counts it as an object, like any other."""
    looping(folder)

    rows = Steps(folder, errors_tolerance="all", files_max_objects_per_round="1").explained()

    assert "later round" in str(rows["loop.jsonl"].reason)
