"""What a person may set of marks, and which settings go together."""

from __future__ import annotations

import logging

import pytest

from connectors.vetoes import veto
from headrace.connect import (
    ConfigError,
    OffsetsError,
    SourceOffset,
    SourcePartition,
    TaskFailedError,
)
from headrace.connectors.files.aiven.connector import AivenS3Connector
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.tracking.marks import mark_of, mark_partition
from headrace.testing.task_runs import LocalConnectorContext, Stored, StoredOffsets

STORE = SourcePartition(mark="s3://b/")
DISK = SourcePartition(mark="/")


def file(path: str) -> SourcePartition:
    """The source partition of a file."""
    return SourcePartition(filename=path)


def altering(stored: Stored) -> FilesConnector:
    """A connector whose offsets these are."""
    made = FilesConnector()
    made.initialize(LocalConnectorContext(StoredOffsets(stored)))
    return made


@pytest.mark.parametrize(
    ("partition", "offset"),
    [
        (STORE, {"key": "s3://b/in/a"}),
        (STORE, {"key": "s3://b/in/a", "modified": 7}),
        (DISK, {"key": "/in/a", "modified": 0}),
        (STORE, None),
    ],
)
def test_a_mark_may_be_set_and_removed(partition: SourcePartition, offset: SourceOffset | None):
    """As the connector itself writes it."""
    assert None is veto(FilesConnector(), {partition: offset})


@pytest.mark.parametrize(
    ("partition", "offset", "told"),
    [
        ({"mark": "s3://b/in"}, None, "must name one place"),
        ({"mark": "b"}, None, "must name one place"),
        ({"mark": "nope://b/"}, None, "must name one place"),
        ({"mark": 1}, None, "must name one place"),
        ({"mark": "/", "filename": "/a"}, None, "must name one place"),
        ({"mark": "/"}, {"key": "/a", "done": True}, "unknown field 'done'"),
        ({"mark": "/"}, {}, "None under 'key'"),
        ({"mark": "/"}, {"key": 1}, "1 under 'key'"),
        ({"mark": "/"}, {"key": "in/a"}, "'in/a' under 'key'"),
        ({"mark": "s3://b/"}, {"key": "s3://c/a"}, "under 'key'"),
        ({"mark": "s3://b/"}, {"key": "s3://b/"}, "under 'key'"),
        ({"mark": "/"}, {"key": "/a", "modified": -1}, "-1 under 'modified'"),
        ({"mark": "/"}, {"key": "/a", "modified": "x"}, "'x' under 'modified'"),
    ],
)
def test_what_is_no_mark_is_refused(
    partition: dict[str, str | int], offset: SourceOffset | None, told: str
):
    """With the field and what it must be."""
    with pytest.raises(OffsetsError, match=told):
        FilesConnector().validate_offsets({}, {SourcePartition(partition): offset})


def test_to_remove_the_offset_of_a_file_below_the_mark_is_refused():
    """It would count as read all the same; the sentence says what to set."""
    stored: Stored = {STORE: {"key": "s3://b/5"}}

    for path in ("s3://b/5", "s3://b/1"):
        with pytest.raises(OffsetsError, match=r'to \{"recordCount": 0\}'):
            altering(stored).alter_offsets({}, {file(path): None})
    for path in ("s3://b/6", "s3://a/1", "/a"):
        assert not altering(stored).alter_offsets({}, {file(path): None})
    assert not altering(stored).alter_offsets({}, {file("s3://b/1"): {"recordCount": 0}})


def test_a_range_below_the_mark_may_go_with_an_offset_for_the_whole():
    """Alone it would leave nothing that asks for the file."""
    stored: Stored = {STORE: {"key": "s3://b/5"}}
    part = SourcePartition({"filename": "s3://b/1", "from": 0, "to": 9})

    with pytest.raises(OffsetsError, match="would not be read again"):
        altering(stored).alter_offsets({}, {part: None})
    again: SourceOffset = {"recordCount": 0}
    assert not altering(stored).alter_offsets({}, {part: None, file("s3://b/1"): again})


def test_a_mark_that_is_set_with_it_counts():
    """Whatever was stored; this needs no look at the store."""
    both: Stored = {STORE: {"key": "s3://b/5"}}
    one = file("s3://b/1")

    assert not altering(both).alter_offsets({}, {one: None, STORE: {"key": "s3://b/0"}})
    with pytest.raises(OffsetsError, match="s3://b/7"):
        FilesConnector().validate_offsets({}, {one: None, STORE: {"key": "s3://b/7"}})


def test_all_can_be_removed_and_that_is_told(caplog: pytest.LogCaptureFixture):
    """Mark, entries and ranges."""
    stored: Stored = {STORE: {"key": "s3://b/5"}, file("s3://b/6"): {"recordCount": 1}}
    part = SourcePartition({"filename": "s3://b/1", "from": 0, "to": 9})

    with caplog.at_level(logging.WARNING):
        altering(stored).alter_offsets({}, dict.fromkeys((*stored, file("s3://b/1"), part)))

    assert "s3://b/ is removed" in caplog.text


def test_offsets_can_be_altered_before_there_is_a_context():
    """Then only what is set counts."""
    assert not FilesConnector().alter_offsets({}, {file("/a"): None})


def test_a_mark_that_was_written_by_no_one_here_fails_the_connector():
    """It might mean anything."""
    with pytest.raises(TaskFailedError, match="says no key"):
        mark_of({"at": 1}, mark_partition(None))


ORDERED = {"files.path": "in", "topic": "t", "files.tracking": "ordered"}


@pytest.mark.parametrize(
    ("more", "key"),
    [
        ({"files.follow": "true"}, "files.tracking"),
        ({"files.lookback": "0", "files.changed": "fail"}, "files.changed"),
        ({"files.lookback": "0", "files.changed": "reread"}, "files.changed"),
        ({"files.lookback": "0", "files.changed": "tail"}, "files.tracking"),
        ({"files.changed": "tail"}, "files.tracking"),
        ({"files.tracking": "object", "files.lookback": "9"}, "files.lookback"),
        ({"files.tracking": "object", "files.late.check.ms": "9"}, "files.late.check.ms"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(more: dict[str, str], key: str):
    """When the configuration is validated."""
    with pytest.raises(ConfigError) as caught:
        FilesConfig.parse({**ORDERED, **more})

    assert [key] == [each for each, _ in caught.value.problems]


def test_a_refusal_names_the_setting_that_does_not_fit():
    """And not only its value."""
    with pytest.raises(ConfigError, match=r"files\.changed=reread holds for"):
        FilesConfig.parse({**ORDERED, "files.lookback": "0", "files.changed": "reread"})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"files.changed": "reread"},
        {"files.lookback": "0", "files.changed": "ignore"},
        {"files.lookback": "0"},
        {"files.tracking": "object", "files.forget.after.ms": "0"},
    ],
)
def test_settings_that_have_something_to_do_are_not_refused(more: dict[str, str]):
    """There is a look-back for files.changed, or it says what is so without one; objects may be forgotten."""
    assert () == FilesConfig.problems({**ORDERED, **more})


def test_the_offsets_of_aivens_source_have_no_marks():
    """So the setting is refused under its name."""
    props = {
        "aws.s3.bucket.name": "bucket",
        "file.name.template": "{{topic}}-{{partition}}-{{start_offset}}",
        "files.tracking": "ordered",
    }

    assert ["files.tracking"] == [key for key, _ in AivenS3Connector().problems(props)]
