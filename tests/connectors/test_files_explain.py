"""What is told of each file before anything runs: what would be read, and why the rest is not."""

from __future__ import annotations

import logging
import os
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files_steps import Steps
from connectors.test_files_store_selection import OBJECT, ListedStore, selection
from headrace.connect import Explained, SourceOffset, SourcePartition
from headrace.connect.connector import PlanRequest
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.explaining import Explaining
from headrace.connectors.files.naming.destinations import Destinations
from headrace.connectors.files.selecting.round import Round
from headrace.sources.sharing import shared
from headrace.testing.task_runs import LocalRun, StoredOffsets


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of many fates."""
    for name in ("a.jsonl", "b.jsonl", ".hidden.jsonl", "c.unknown"):
        (tmp_path / name).write_text("1\n")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "d.jsonl").write_text("1\n")
    return tmp_path


def reasons(rows: dict[str, Explained]) -> dict[str, str]:
    """The reasons of those that have one."""
    return {name: each.reason for name, each in rows.items() if each.reason}


def test_what_is_read_is_told_with_slot_topic_format_and_size(folder: Path):
    """As the plan would have it."""
    (folder / "c.unknown").unlink()
    steps = Steps(folder, topic="t-{{filename}}", files_partition="3")

    rows = steps.explained(slots=2)

    read = {name: each for name, each in rows.items() if each.slots}
    assert {
        name: Explained(
            name=str(folder / name),
            slots=(slot,),
            topic=f"t-{name}",
            partition=3,
            form="jsonl",
            size=2,
        )
        for name, slot in (("a.jsonl", 0), ("b.jsonl", 1))
    } == {name: replace(each, slots=tuple(each.slots)) for name, each in read.items()}


def test_everything_else_is_told_with_its_reason(folder: Path):
    """And what would fail the connector does not hide the rest."""
    rows = dict(Steps(folder).explained())
    (folder / "b.unknown").write_text("1\n")
    failing = Steps(f"{folder},{folder}/b.unknown").explained()

    told = reasons(rows)
    assert {"c.unknown", ".hidden.jsonl", "below"} == told.keys()
    assert told["c.unknown"].startswith("Its extension does not identify the format")
    assert "begins with a dot" in told[".hidden.jsonl"]
    assert "files.recursive" in told["below"]
    assert ["b.unknown"] == [name for name, each in failing.items() if each.fails]


def test_what_was_read_is_told_to_be_done(folder: Path):
    """With the number of its records; what was overwritten since fails the connector."""
    (folder / "c.unknown").unlink()
    steps = Steps(folder)
    LocalRun(steps.connector, steps.props, steps.stored).until_idle()
    (folder / "b.jsonl").write_text("2\n")

    rows = steps.explained()

    assert "It was read to its end: 1 records." == rows["a.jsonl"].reason
    assert rows["b.jsonl"].fails
    assert "replaced" in str(rows["b.jsonl"].reason)


def test_what_waits_is_told(folder: Path):
    """Because it is too young, or for a later round."""
    young = Steps(folder / "a.jsonl", files_min_age_ms="60000", files_headers="last").explained()
    later = Steps(folder / "*.jsonl", files_max_objects_per_round="1").explained()

    assert "too young" in str(young["a.jsonl"].reason)
    assert (0,) == tuple(later["a.jsonl"].slots)
    assert "later round" in str(later["b.jsonl"].reason)


def test_names_and_times_out_of_scope_are_told(folder: Path):
    """Each with the setting."""
    os.utime(folder / "b.jsonl", (1, 1))
    props = {"files_start_after": str(folder / "a.jsonl"), "files_modified_since": "2020-01-01"}

    told = reasons(dict(Steps(folder, **props).explained()))
    named = reasons(dict(Steps(folder, files_name_regex="/b").explained()))

    assert "files.start.after" in told["a.jsonl"]
    assert "files.modified.since" in told["b.jsonl"]
    assert "files.name.regex" in named["a.jsonl"]


def test_what_is_half_read_and_gone_is_told(folder: Path):
    """As it would fail the connector; what is there and not selected is left as it is."""
    (folder / "c.unknown").unlink()
    begun = {"recordCount": 1, "anchor": 2, "skip": 0}
    stored: dict[SourcePartition, SourceOffset] = {
        SourcePartition({"filename": str(folder / name)}): begun
        for name in ("gone.jsonl", "below/d.jsonl")
    }

    rows = Steps(folder, stored).explained()

    assert rows["gone.jsonl"].fails
    assert not rows["d.jsonl"].fails
    assert "not selected any more" in str(rows["d.jsonl"].reason)


def test_folders_on_the_way_to_what_is_read_are_not_told(folder: Path):
    """They were looked into."""
    rows = Steps(folder / "**" / "d.jsonl").explained()

    assert (0,) == tuple(rows["d.jsonl"].slots)
    assert "below" not in rows


def test_a_folder_that_a_glob_matches_is_told_to_be_one(folder: Path):
    """And what no glob matches, that none does."""
    os.mkfifo(folder / "bytes")

    told = reasons(dict(Steps(folder / "b*").explained()))

    assert "is a folder" in told["below"]
    assert "files.recursive=true" in told["below"]
    assert "It is a FIFO, and only regular files are read." == told["bytes"]
    assert "No glob of files.path matches it." == told["a.jsonl"]


def test_nothing_is_changed(folder: Path):
    """Explaining does not count as having looked: the plan behind it is the same."""
    (folder / "c.unknown").unlink()
    asked, unasked = Steps(folder), Steps(folder)

    asked.explained()

    assert unasked.plan() == asked.plan()


def test_objects_of_a_store_are_told_in_the_same_way():
    """By what one listing says of them."""
    store = ListedStore(
        OBJECT,
        *(replace(OBJECT, key=key, size=size) for key, size in (("in/", 0), ("in/b.jsonl", 1))),
    )
    config = FilesConfig.parse({"files.path": "s3://b/", "topic": "t"})
    explaining = Explaining(config, selection(store), Destinations(config), share_out=shared)

    rows = list(explaining.objects(PlanRequest(slots=1, offsets=StoredOffsets({})), Round()))

    told = {each.name: each.reason for each in rows}
    assert [True, False, False] == [bool(each.slots) for each in rows]
    assert "only shows a folder" in str(told["s3://b/in/"])
    assert "It lies in a folder below the prefix, and files.recursive is false." == str(
        told["s3://b/in/b.jsonl"]
    )


def explained_one(path: Path, stored: dict[SourcePartition, SourceOffset], **more: str) -> str:
    """What is told of the only file."""
    (row,) = Steps(path, stored, **more).explained().values()
    return str(row.reason)


@pytest.mark.parametrize(("name", "form"), [("a.jsonl", "auto"), ("a.bin", "bytes")])
def test_an_empty_file_is_told_to_be_empty(tmp_path: Path, name: str, form: str):
    """Whether a slot opens it or not."""
    (tmp_path / name).touch()

    told = explained_one(tmp_path, {}, files_format=form)
    assert "It is empty: it is done without a record." == told


def test_what_a_young_file_waits_for_is_told(tmp_path: Path):
    """Its age, or the end of its last record, which a followed file has to get."""
    path, old = tmp_path / "a.jsonl", {"files_min_age_ms": "60000"}
    path.write_text("1")

    unended = explained_one(tmp_path, {}, **old)
    followed = explained_one(tmp_path, {}, files_follow="true")
    path.write_text("1\n")
    young = explained_one(tmp_path, {}, files_headers="last", **old)

    assert "Its last record is not complete" in unended
    assert unended.endswith("or when it has been untouched for files.min.age.ms.")
    assert followed.endswith("it is read when its line end is there.")
    assert young.startswith("It is too young")


def test_a_file_that_goes_on_by_tail_is_told_to(tmp_path: Path):
    """Though not at each plan; one that is new is not."""
    path = tmp_path / "a.jsonl"
    path.write_text("1\n")
    steps = Steps(tmp_path, files_changed="tail")
    assert "None" == explained_one(tmp_path, {}, files_changed="tail")
    LocalRun(steps.connector, steps.props, steps.stored).until_idle()
    path.write_text("1\n2\n")

    told = explained_one(tmp_path, steps.stored, files_changed="tail")
    assert "read on from where it was read to, as files.changed=tail says." in told


@pytest.mark.parametrize("marker", ["{name}.done", "_SUCCESS"])
def test_what_is_explained_is_not_logged_as_well(
    folder: Path, caplog: pytest.LogCaptureFixture, marker: str
):
    """Only what belongs to no object is."""
    props = {"files_complete_marker": marker, "files_recursive": "true"}
    steps = Steps(f"{folder},{folder}/none*", **props)

    with caplog.at_level(logging.WARNING):
        told = reasons(dict(steps.explained()))

    waits = f"It waits for its marker {marker.format(name='b.jsonl')} (files.complete.marker)."
    assert waits == told["b.jsonl"]
    (record,) = caplog.records
    assert "No file matches this pattern" in record.getMessage()
    steps.plan()
    assert "waits for its marker" in caplog.text


def test_why_a_file_of_the_future_waits_is_told(tmp_path: Path):
    """With what can be done about it."""
    (tmp_path / "a.jsonl").write_text("1")
    os.utime(tmp_path / "a.jsonl", (4e9, 4e9))

    assert "changed in the future" in explained_one(tmp_path, {})
