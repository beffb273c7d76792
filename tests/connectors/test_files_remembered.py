"""What earlier looks have shown of files on disk, which is forgotten with them."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from headrace.connect import SourceOffset, SourcePartition
from headrace.connect.connector import PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local.path_cache import PathCache
from headrace.connectors.files.local.selection import LocalSelection
from headrace.testing.task_runs import LocalRun, StoredOffsets


@pytest.mark.parametrize("follow", ["false", "true"])
def test_what_is_known_of_files_that_are_gone_is_forgotten(tmp_path: Path, follow: str) -> None:
    """Whatever was looked up for them: signs of rest, packed bytes, a row that is not whole."""
    stored = dict[SourcePartition, SourceOffset]()
    props = {"files.path": str(tmp_path), "topic": "t", "files.min.age.ms": "0"}
    props |= {"files.follow": follow, "files.missing": "ignore"}
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("1\n")
        (tmp_path / f"{number}.csv").write_text(
            'a,b\n1,2\n3,"x\n' if follow == "true" else "a\n1\n"
        )
        (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(b"1\n"))
    LocalRun(FilesConnector(), props, stored).until_idle()
    connector, request = FilesConnector(), PlanRequest(slots=1, offsets=StoredOffsets(stored))
    connector.start(props)
    connector.plan(request)
    selection = connector._selection
    assert isinstance(selection, LocalSelection)
    looks = (selection._unchanged, selection._prefixes._answers, selection._rows._none_in)
    assert 40 <= sum(map(len, looks))

    for each in tmp_path.iterdir():
        each.unlink()
    (tmp_path / "new.txt").write_text("1\n")
    connector.plan(request)

    assert not any(looks)


def test_there_is_never_more_than_was_shown() -> None:
    """And what was shown stays."""
    looks = PathCache[int]({"a": 1, "b": 2, "c": 3})

    looks.keep(["b", "d"])

    assert {"b": 2} == looks
