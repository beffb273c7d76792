"""Headers that say where a record comes from."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import cast

import pytest

from connectors.files_steps import Steps
from headrace.connect import HeaderColumns, RecordError, SourceBatch
from headrace.connectors.files.config import FilesConfig


def headers_of(batches: list[SourceBatch]) -> list[dict[str, object]]:
    """The headers of each record."""
    return [
        {header.key: header.value for header in row}
        for batch in batches
        for row in batch.headers or ()
    ]


def lasts(batches: list[SourceBatch]) -> list[object]:
    """What each record says about being the last one."""
    return [each["file.last"] for each in headers_of(batches)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A text file of two lines, changed a second after 1970 began."""
    made = tmp_path / "a.txt"
    made.write_text("one\ntwo\n")
    os.utime(made, (1, 1))
    return made


def test_records_say_where_they_come_from(path: Path):
    """All that may be asked for; in columns, so that nothing is made for each record."""
    found = Steps(path, files_headers="name,size,modified,record,position,last").batches()

    shared = {
        "file.name": str(path),
        "file.size": 8,
        "file.modified": 1000,
    }
    assert [
        {**shared, "file.record": 1, "file.position": 4, "file.last": False},
        {**shared, "file.record": 2, "file.position": 8, "file.last": True},
    ] == headers_of(found)
    assert all(isinstance(batch.headers, HeaderColumns) for batch in found)


def test_without_asking_there_are_none(path: Path):
    """Nothing is made, either."""
    assert {None} == {batch.headers for batch in Steps(path).batches()}


@pytest.mark.parametrize("content", [b"1\n2\n3", b"1\n2\n3\n", b"1\n2\n3\n\n\n \n", b"3"])
@pytest.mark.parametrize("rows", ["1", "2", "100"])
@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_exactly_the_last_record_is_the_last(tmp_path: Path, content: bytes, rows: str, name: str):
    """Also where only blank lines follow it, and where it is alone in its batch."""
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    found = Steps(tmp_path, files_headers="last", files_batch_max_rows=rows).batches()

    assert [*[False] * (len(lasts(found)) - 1), True] == lasts(found)


def test_an_error_waits_for_the_records_before_it(tmp_path: Path):
    """Which wait for what follows them; the last one behind it still says that it is the last."""
    (tmp_path / "a.jsonl").write_text("1\nx\n3\n")
    task = Steps(tmp_path, files_headers="last").task()

    before = task.poll()
    with pytest.raises(RecordError) as raised:
        task.poll()
    behind = task.poll()

    assert [[False], [True]] == [
        lasts(cast("list[SourceBatch]", each)) for each in (before, behind)
    ]
    assert "(record 2)" in str(raised.value)
    assert task.poll() is None
    task.stop()


def test_a_young_file_waits_until_it_has_a_last_record(path: Path):
    """All of it, not only its last line."""
    os.utime(path)

    plan = Steps(path, files_headers="last", files_min_age_ms="60000").plan()

    assert not plan.has_work()
    assert plan.ask_again_after


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({"files.headers": "last", "files.split.bytes": "10"}, "no record is the last"),
        ({"files.headers": "record", "files.split.bytes": "10"}, "ask for position"),
        ({"files.headers": "last", "files.follow": "true"}, "may grow again"),
        ({"files.headers": "name,name"}, "Name each header once"),
        ({"files.headers": "owner"}, "String must be one of: name, size"),
    ],
)
def test_headers_that_cannot_be_are_refused(props: dict[str, str], told: str):
    """By validation."""
    ((key, sentence),) = FilesConfig.problems({"files.path": "/in", "topic": "t", **props})

    assert "files.headers" == key
    assert told in sentence


def test_records_of_ranges_say_their_position(tmp_path: Path):
    """In the whole file, not in the range."""
    (tmp_path / "a.jsonl").write_text("1\n" * 20)

    found = Steps(tmp_path, files_headers="position", files_split_bytes="15").batches()

    assert list(range(2, 42, 2)) == sorted(
        int(str(each["file.position"])) for each in headers_of(found)
    )
