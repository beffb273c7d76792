"""The commands that errors name do what they are named for."""

from __future__ import annotations

import gzip
import logging
from collections.abc import Mapping
from pathlib import Path

import pytest

from connectors.files_steps import Steps, Stored
from connectors.obeyed_commands import obey
from connectors.tracked_store import MARK_OF_STORE, FilledStore, Played
from headrace.connect import SourceOffset, SourcePartition, TaskFailedError
from headrace.connectors.file_stream import FileStreamSourceConnector
from headrace.connectors.files.aiven.connector import AivenS3Connector
from headrace.connectors.files.aiven.words import in_peers_words
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.rereading import file_again
from headrace.testing.task_runs import LocalRun, StoredOffsets

NO_PROPS: Mapping[str, str] = {}
ORDERED = {"files_tracking": "ordered", "files_lookback": "0"}


def run(
    path: Path,
    stored: Stored,
    props: Mapping[str, str] = NO_PROPS,
    *,
    stop_after: int | None = None,
) -> list[str]:
    """The values that a run commits."""
    given = Steps(path, **props).props
    delivered = LocalRun(FilesConnector(), given, stored, stop_after=stop_after).until_idle()
    return [each.value for each in delivered]


def refused(path: Path, stored: Stored, props: Mapping[str, str]) -> str:
    """What fails a run."""
    with pytest.raises(TaskFailedError) as caught:
        run(path, stored, props)
    return str(caught.value)


@pytest.fixture
def store() -> FilledStore:
    """An empty one."""
    return FilledStore()


@pytest.mark.parametrize("name", ["a.csv", "it's (2) \u00e9 \\ \".csv"])
@pytest.mark.parametrize("split", ["0", "4"])
def test_another_format(tmp_path: Path, name: str, split: str):
    """The file is read again from its beginning, whatever its name, also where it was split."""
    path = tmp_path / name
    path.write_text("1;2,0\n3;4,0\n5;6,0\n")
    comma = {"csv_header": "false", "csv_names": "x,y", "csv_quote": "none"}
    comma["files_split_bytes"] = split
    semicolon = {**comma, "csv_delimiter": ";", "files_split_bytes": "0"}
    stored: Stored = {}
    run(tmp_path, stored, comma, stop_after=1)

    obey(refused(tmp_path, stored, semicolon), stored, FilesConnector())

    assert 3 == len(run(tmp_path, stored, semicolon))
    assert [] == run(tmp_path, stored, semicolon)


@pytest.mark.parametrize(
    ("offset", "settings"),
    [
        ({"recordCount": 1, "anchor": 8}, {}),
        (
            {"recordCount": 1, "anchor": 8, "header": '["a","b"]', "types": "odd"},
            {"csv_types": "infer"},
        ),
    ],
)
def test_an_offset_without_what_its_header_held(
    tmp_path: Path, offset: SourceOffset, settings: dict[str, str]
):
    """Everything is read again."""
    path = tmp_path / "a.csv"
    path.write_text("a,b\n1,2\n3,4\n")
    stored: Stored = {SourcePartition(filename=str(path)): offset}

    obey(refused(path, stored, settings), stored, FilesConnector())

    assert 2 == len(run(path, stored, settings))


def test_a_file_in_quarantine(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """One that is whole again is read from its beginning, whatever files.changed says."""
    path = tmp_path / "a.txt.gz"
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    damaged: SourceOffset = {"recordCount": 1, "anchor": 4, "skip": 0, "quarantined": "It is cut."}
    stored: Stored = {SourcePartition(filename=str(path)): damaged}
    assert [] == run(path, stored, {"files_changed": "ignore"})
    (told,) = [each for each in caplog.messages if "quarantine" in each]

    obey(told, stored, FilesConnector())

    assert ["one", "two"] == run(path, stored, {"files_changed": "ignore"})


def test_a_mark_that_is_none(store: FilledStore):
    """It is removed, and what was behind it is read."""
    store.put("1", "2")
    played = Played(store, {MARK_OF_STORE: {"at": 1}}, **ORDERED)
    with pytest.raises(TaskFailedError) as caught:
        played.plan()

    obey(str(caught.value), played.stored, FilesConnector())

    assert ["1", "2"] == played.rounds()


def test_a_mark_that_is_honoured(store: FilledStore, caplog: pytest.LogCaptureFixture):
    """Without it all is read again."""
    store.put("1", "2")
    played = Played(store, **ORDERED)
    played.rounds()
    assert [] == played.restart().rounds()
    (told,) = [each for each in caplog.messages if "has left a mark" in each]

    obey(told, played.stored, FilesConnector())

    assert ["1", "2"] == played.restart().rounds()


def test_an_object_that_came_too_late(store: FilledStore, caplog: pytest.LogCaptureFixture):
    """It is read where it is, and only that."""
    store.put("1", "3")
    played = Played(store, **ORDERED)
    played.rounds()
    store.put("2", at=9)
    assert [] == played.restart(**ORDERED).rounds()
    (told,) = [each for each in caplog.messages if "too_late" in each]

    obey(told, played.stored, FilesConnector())

    assert ["2"] == played.rounds()


@pytest.mark.parametrize("position", [9, -1, "x"])
def test_a_line_file_that_is_shorter_than_its_position(tmp_path: Path, position: int | str):
    """And one whose position is none: it is read from its beginning."""
    path = tmp_path / "a"
    path.write_text("one\n")
    props = {"file": str(path), "topic": "t"}
    stored: Stored = {SourcePartition(filename=str(path)): {"position": position}}
    with pytest.raises(TaskFailedError) as caught:
        LocalRun(FileStreamSourceConnector(), props, stored).until_idle()

    obey(str(caught.value), stored, FileStreamSourceConnector())

    found = LocalRun(FileStreamSourceConnector(), props, stored).until_idle()
    assert ["one"] == [each.value for each in found]


def test_objects_of_aivens_source_have_its_names():
    """A command that names ours would be refused."""
    stored: Stored = {}
    sentence = in_peers_words(file_again('s3://b/in "1"/a.csv'))

    obey(sentence, stored, AivenS3Connector())

    named = SourcePartition({"bucket": "b", "objectKey": 'in "1"/a.csv'})
    assert {named: {"recordCount": 0}} == stored


def test_a_log_file_that_is_gone_is_told_with_what_forgets_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """So that another file of its name is read from its beginning."""
    props = {"file": str(tmp_path / "a"), "topic": "t"}
    stored: Stored = {SourcePartition(filename=props["file"]): {"position": 4}}
    with caplog.at_level(logging.WARNING):
        connector = FileStreamSourceConnector()
        connector.start(props)
        connector.has_work(StoredOffsets(stored))
    (told,) = [each for each in caplog.messages if "The file is gone" in each]

    obey(told, stored, FileStreamSourceConnector())

    assert {} == stored
