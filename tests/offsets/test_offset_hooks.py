"""The connectors that come with headrace judge offsets with their own sentences, through every way of change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doubles.puppets import PolledPuppet
from headrace.connect.connector import SourceConnector
from headrace.connect.partition import SourcePartition
from headrace.connectors.file_stream import FileStreamSourceConnector
from headrace.connectors.files.connector import FilesConnector
from headrace.herder.errors import RequestError
from headrace.offsets.connector_stores import NamedConnector
from headrace.runtime.services import RunSpec
from offsets.changing import STORED, Asked, Stage, change, memory_stage

LINES = SourcePartition(filename="/a")
OBJECT = SourcePartition(filename="/d/1")
MARK = SourcePartition(mark="/")
NO_FILE = "Partition objects should contain the key 'filename'"
NO_LONG = "The value for the 'position' key in the offset is expected to be a Long value"


def lines(stage: Stage) -> RunSpec:
    """Kafka Connect's file source."""
    return replace(stage.spec, connector=FileStreamSourceConnector(), props={"file": "/a"})


def files(stage: Stage) -> RunSpec:
    """The connector of many files."""
    return replace(stage.spec, connector=FilesConnector(), props={})


@pytest.mark.parametrize(
    ("partition", "offset", "told"),
    [
        (None, {"position": 1}, "Partition objects cannot be null"),
        ({}, {"position": 1}, NO_FILE),
        ({"file": "/a"}, {"position": 1}, NO_FILE),
        (LINES, {"position": 2.0}, NO_LONG),
        (LINES, {"position": "3"}, NO_LONG),
        (LINES, {"position": None}, NO_LONG),
        (LINES, {"position": True}, NO_LONG),
        (
            LINES,
            {"position": -1},
            "The value for the 'position' key in the offset should be a non-negative value",
        ),
        (
            LINES,
            {},
            "Offset objects should either be null or contain the key 'position'",
        ),
    ],
)
def test_the_file_source_refuses_as_kafka_connects(partition: object, offset: object, told: str):
    """All of its refusals are 500, in a dry run, too."""
    stage = memory_stage()
    for dry_run in (True, False):
        with pytest.raises(RequestError) as caught:
            stage.changes().alter(
                lines(stage), [change(partition, offset)], who=None, dry_run=dry_run
            )
        assert (500, told) == (caught.value.status, str(caught.value))


@pytest.mark.parametrize("filename", [None, 7, True, ""])
def test_the_file_source_accepts_odd_names(filename: object):
    """As Kafka Connect's does; and an entry with nothing in it."""
    stage = memory_stage()
    answer = stage.changes().alter(
        lines(stage),
        [change({"filename": filename}, {"position": 1}), change(None, None)],
        who=None,
    )

    assert answer == "The offsets for this connector have been altered successfully"
    assert [{"position": 1}] == list(stage.known().values())


def test_standard_input_has_no_offsets():
    """Its hook refuses them, presets among them, and a reset."""
    stage = memory_stage()
    spec = replace(lines(stage), props={})
    changes = stage.changes()

    with pytest.raises(RequestError, match=r"^Offsets cannot be modified if the 'file'"):
        changes.reset(spec, who=None)
    with pytest.raises(RequestError, match=r"failed at step 2: validating the offsets\)$"):
        changes.create(spec, STORED, [change(LINES, {"position": 1})], who=None)


def test_a_file_is_read_again_from_a_count_of_zero():
    """Also below the mark, where a null offset is refused with that advice."""
    stage = memory_stage()
    stage.put({MARK: {"key": "/d/5"}})
    changes = stage.changes()

    with pytest.raises(RequestError, match="recordCount"):
        changes.alter(files(stage), [change(OBJECT, None)], who=None)
    changes.alter(files(stage), [change(OBJECT, {"recordCount": 0})], who=None)

    assert {MARK: {"key": "/d/5"}, OBJECT: {"recordCount": 0}} == stage.known()


def test_a_mark_is_moved_and_a_reset_takes_all():
    """Marks are offsets like others: listed, altered, reset."""
    stage = memory_stage()
    stage.put({MARK: {"key": "/d/5"}, OBJECT: {"recordCount": 3}})
    changes = stage.changes()
    changes.alter(files(stage), [change(MARK, {"key": "/d/2"})], who=None)

    assert {MARK, OBJECT} == {each.partition for each in changes.read(NamedConnector(name="c"))}
    assert {"key": "/d/2"} == stage.known()[MARK]
    changes.reset(files(stage), who=None)
    assert stage.known() == {}


@pytest.mark.parametrize("offset", [{"rows": 1}, {"recordCount": "3"}, {"recordCount": -1}])
def test_unknown_fields_and_wrong_types_of_a_file_are_vetoed(offset: object):
    """Nothing is written."""
    stage = memory_stage()
    with pytest.raises(RequestError) as caught:
        stage.changes().alter(files(stage), [change(OBJECT, offset)], who=None)

    assert caught.value.status == 500
    assert stage.known() == {}


class ActsOnly(PolledPuppet):
    """A connector as Kafka Connect has them: one hook, which acts."""

    alter_offsets = Asked.alter_offsets  # pyright: ignore[reportAssignmentType]


@pytest.mark.parametrize(
    ("connector", "verdict"),
    [
        (FilesConnector(), "The connector accepts these offsets."),
        (
            ActsOnly(),
            (
                "It is unknown whether the connector accepts these offsets: it validates them only when they "
                "are about to be written."
            ),
        ),
        (PolledPuppet(), "The connector does not validate offsets."),
    ],
)
def test_a_dry_run_says_what_the_connector_knows(connector: SourceConnector, verdict: str):
    """A hook that acts is not called, so its silence says nothing."""
    stage = memory_stage()
    told = stage.changes().alter(
        replace(stage.spec, connector=connector),
        [change(OBJECT, {"recordCount": 1})],
        who=None,
        dry_run=True,
    )

    assert told.endswith(f". {verdict}")
