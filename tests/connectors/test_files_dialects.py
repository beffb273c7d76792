"""Files of other dialects and encodings: they grow, stop in the middle, and have bad records."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.connect import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import LocalRun
from task.local_loop import Rounds

Stored = dict[SourcePartition, SourceOffset]
PROPS = {
    "files.encoding": "windows-1252",
    "csv.comment": "#",
    "csv.skip.lines": "1",
    "csv.trim": "true",
    "csv.types": "infer",
}
CONTENT = 'Bericht "für\n# it"s\nort , n\nKöln, 1\n#,\n "Bonn\n#", 2\n'.encode("windows-1252")
VALUES = ['{"ort":"Köln","n":1}', '{"ort":"Bonn\\n#","n":2}']


def run_of(path: Path, stored: Stored, stop_after: int | None = None, **more: str) -> LocalRun:
    """A run over *path*, which is old enough."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0", **PROPS}
    named = {key.replace("_", "."): value for key, value in more.items()}
    return LocalRun(FilesConnector(), given | named, stored, stop_after=stop_after)


@pytest.mark.parametrize("stop_after", [1, 2])
def test_reading_goes_on_behind_each_record(tmp_path: Path, stop_after: int):
    """Nothing is skipped again, and positions are those of the file."""
    path, stored = tmp_path / "a.csv", Stored()
    path.write_bytes(CONTENT)

    first = [each.value for each in run_of(path, stored, stop_after).until_idle()]
    rest = [each.value for each in run_of(path, stored).until_idle()]

    assert VALUES == first + rest
    (offset,) = stored.values()
    assert (len(CONTENT), 2, True) == (offset["anchor"], offset["recordCount"], offset["done"])


def test_a_file_that_grows_byte_by_byte_gives_each_record_once(tmp_path: Path):
    """What comes before the header is no work by itself for longer than one look."""
    path, stored = tmp_path / "a.csv", Stored()
    found = list[object]()
    for size in range(1, len(CONTENT) + 1):
        path.write_bytes(CONTENT[:size])
        run = run_of(path, stored, files_follow="true", csv_types="n:integer")
        found += [each.value for each in run.until_idle()]
        assert [] == list(run._tasks())

    assert VALUES == found


def test_dead_letters_are_the_files_own_bytes(tmp_path: Path):
    """In its encoding, with its blanks, without what is no row."""
    bad = "ü , x , y".encode("windows-1252")
    (tmp_path / "a.csv").write_bytes(CONTENT + bad + b"\n#\n\x81,1\nz,3\n")
    props = {"name": "c", "topic": "t", "files.path": str(tmp_path), "files.min.age.ms": "0"}
    played = Rounds(FilesConnector, props | PROPS, ErrorPolicy(tolerate=True, dead_letters="dead"))

    played.play()
    played.play()

    assert [each.encode() for each in [*VALUES, '{"ort":"z","n":3}']] == played.values("t")
    assert [bad, b"\x81,1"] == played.values("dead")
