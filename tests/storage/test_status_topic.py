"""The records of Kafka Connect's status topic, and what they add up to."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headrace.storage.protocols import Status
from headrace.storage.status_topic import (
    StatusTopic,
    removed_topic_entry,
    status_entry,
    topic_entry,
)
from headrace.storage.topic_records import UnreadableRecordError

RUNNING = Status(state="RUNNING", worker_id="10.0.0.5:8083", generation=3)


def topic_of(*entries: tuple[bytes, bytes | None]) -> StatusTopic:
    """What these records add up to."""
    topic = StatusTopic()
    for entry in entries:
        topic.apply(*entry)
    return topic


def test_records_are_those_of_kafka_connect() -> None:
    """With the version of the plugin as their last field."""
    failed = Status(state="FAILED", worker_id="w", trace="it\nbroke", version="1.0")

    assert [
        (
            b"status-connector-c",
            b'{"state":"RUNNING","trace":null,"worker_id":"10.0.0.5:8083","generation":3,"version":null}',
        ),
        (
            b"status-task-c-0",
            b'{"state":"FAILED","trace":"it\\nbroke","worker_id":"w","generation":0,"version":"1.0"}',
        ),
        (b"status-task-c-0", None),
        (
            b"status-topic-t:connector-c",
            b'{"topic":{"name":"t","connector":"c","task":0,"discoverTimestamp":1698200000000}}',
        ),
        (b"status-topic-t:connector-c", None),
    ] == [
        status_entry("c", None, RUNNING),
        status_entry("c", 0, failed),
        status_entry("c", 0, None),
        topic_entry("c", "t", task=0, at_ms=1_698_200_000_000),
        removed_topic_entry("c", "t"),
    ]


def test_a_trace_may_name_a_file_whose_name_is_no_text() -> None:
    """Python holds the bytes of such a name as characters that no UTF-8 may have."""
    failed = replace(RUNNING, state="FAILED", trace="/in/\udcff.csv cannot be read")
    entry = status_entry("c", None, failed)

    assert b'"trace":"/in/\\udcff.csv cannot be read"' in (entry[1] or b"")
    assert {None: failed} == topic_of(entry).statuses("c")


def test_a_connector_that_is_removed_has_no_tasks() -> None:
    """Nor has one whose statuses were all removed."""
    topic = topic_of(
        status_entry("c", None, RUNNING),
        status_entry("c", 0, RUNNING),
        status_entry("c", None, None),
        status_entry("d", 0, RUNNING),
        status_entry("d", 0, None),
    )

    assert [] == topic.connectors()
    assert {} == topic.statuses("c")


@pytest.mark.parametrize(
    ("generation", "worker", "expected"),
    [
        (2, "other", "RUNNING"),
        (3, "other", "RUNNING"),
        (4, "other", "UNASSIGNED"),
        (3, RUNNING.worker_id, "UNASSIGNED"),
    ],
)
def test_the_worker_that_had_a_task_before_does_not_unassign_it(
    generation: int, worker: str, expected: str
) -> None:
    """Its record may be written after that of the one which runs it now."""
    gone = Status(state="UNASSIGNED", worker_id=worker, generation=generation)
    topic = topic_of(status_entry("c", 0, RUNNING), status_entry("c", 0, gone))

    assert expected == topic.statuses("c")[0].state
    topic.apply(*status_entry("c", 0, replace(gone, state="FAILED")))
    assert "FAILED" == topic.statuses("c")[0].state


def test_a_version_may_be_missing() -> None:
    """Workers before it was added wrote four fields."""
    topic = StatusTopic()
    topic.apply(
        b"status-connector-c", b'{"state":"RUNNING","trace":null,"worker_id":"w","generation":1}'
    )

    assert {None: Status(state="RUNNING", worker_id="w", generation=1)} == topic.statuses("c")


def test_topics_are_those_that_were_not_removed() -> None:
    """The name of a connector may have colons; that of a topic may not."""
    topic = topic_of(
        topic_entry("a:b", "t2", task=0, at_ms=1),
        topic_entry("a:b", "t1", task=0, at_ms=1),
        topic_entry("a:b", "t3", task=0, at_ms=1),
        removed_topic_entry("a:b", "t3"),
        removed_topic_entry("a:b", "t4"),
    )

    assert ["t1", "t2"] == topic.topics("a:b")
    assert [] == topic.topics("b")


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (None, b"{}", "it has no key"),
        (b"status-c", b"{}", "its key 'status-c' is not known"),
        (b"status-task-c", b"{}", "does not end with the number of a task"),
        (b"status-topic-t", b"{}", "its key 'status-topic-t' names no connector"),
        (b"status-connector-c", b"7", "its value is no JSON object"),
        (b"status-connector-c", b'{"generation":"1"}', "its generation is no number"),
        (b"status-connector-c", b'{"generation":1}', "its state is missing"),
        (
            b"status-connector-c",
            b'{"generation":1,"state":"RUNNING","worker_id":1}',
            "its worker_id is no string",
        ),
    ],
)
def test_what_cannot_be_read_changes_nothing(key: bytes | None, value: bytes, said: str) -> None:
    """The error says what is wrong with the record."""
    topic = topic_of(status_entry("c", None, RUNNING))
    with pytest.raises(UnreadableRecordError, match=said):
        topic.apply(key, value)

    assert {None: RUNNING} == topic.statuses("c")
