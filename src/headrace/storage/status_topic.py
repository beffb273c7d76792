"""Kafka Connect's status topic: states of connectors and tasks, and the topics that connectors write to. Pure.

Keys and values are those of Kafka Connect 4.3, in the order of its fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from headrace.connect.json_document import document
from headrace.kafka.sender import OffsetEntry
from headrace.storage.protocols import Status
from headrace.storage.topic_records import (
    Content,
    UnreadableRecordError,
    key_text,
    number_of,
    parsed,
    task_of,
)

_CONNECTOR: Final = "status-connector-"
_TASK: Final = "status-task-"
_TOPIC: Final = "status-topic-"
_OF_CONNECTOR: Final = ":connector-"
_OF_AN_END: Final = ("UNASSIGNED", "FAILED")

Task: TypeAlias = int | None
"""The number of a task; ``None`` stands for its connector."""


def status_entry(connector: str, task: Task, status: Status | None) -> OffsetEntry:
    """The record of a status; ``None`` removes it."""
    key = f"{_CONNECTOR}{connector}" if task is None else f"{_TASK}{connector}-{task}"
    if status is None:
        return key.encode(), None
    value = {
        "state": status.state,
        "trace": status.trace,
        "worker_id": status.worker_id,
        "generation": status.generation,
        "version": status.version,
    }
    # A trace may name a file whose name is no text; the escape for its bytes is one in JSON, too.
    return key.encode(), document(value).encode(errors="backslashreplace")


def topic_entry(connector: str, topic: str, *, task: int, at_ms: int) -> OffsetEntry:
    """The record which says that *task* was the first to write to *topic*, in milliseconds since 1970."""
    value = {"name": topic, "connector": connector, "task": task, "discoverTimestamp": at_ms}
    return _topic_key(connector, topic), document({"topic": value}).encode()


def removed_topic_entry(connector: str, topic: str) -> OffsetEntry:
    """The record that removes *topic* from those of *connector*."""
    return _topic_key(connector, topic), None


def _topic_key(connector: str, topic: str) -> bytes:
    return f"{_TOPIC}{topic}{_OF_CONNECTOR}{connector}".encode()


@dataclass(slots=True)
class StatusTopic:
    """What the records of the topic add up to, those of one key in the order in which they were written. One thread applies them."""

    _statuses: dict[str, dict[Task, Status]] = field(default_factory=dict[str, dict[Task, Status]])
    _topics: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def connectors(self) -> Sequence[str]:
        """The names that have any status, sorted."""
        return sorted(self._statuses)

    def statuses(self, connector: str) -> Mapping[Task, Status]:
        """The connector's own status under ``None``, and those of its tasks."""
        return dict(self._statuses.get(connector, {}))

    def topics(self, connector: str) -> Sequence[str]:
        """The topics that the connector writes to, sorted."""
        return sorted(self._topics.get(connector, ()))

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take in the next record.

        Raises :class:`~headrace.storage.topic_records.UnreadableRecordError` for one that has to be passed over.
        """
        text = key_text(key)
        if text.startswith(_CONNECTOR):
            self._put(text.removeprefix(_CONNECTOR), None, _status(value))
        elif text.startswith(_TASK):
            connector, task = task_of(text.removeprefix(_TASK))
            self._put(connector, task, _status(value))
        elif text.startswith(_TOPIC):
            topic, colon, connector = text.removeprefix(_TOPIC).partition(_OF_CONNECTOR)
            if not colon:
                raise UnreadableRecordError(f"its key {text!r} names no connector")
            self._put_topic(connector, topic, is_written=parsed(value) is not None)
        else:
            raise UnreadableRecordError(f"its key {text!r} is not known")

    def _put(self, connector: str, task: Task, status: Status | None) -> None:
        if status is None and task is None:
            # A connector that is gone has no tasks.
            self._statuses.pop(connector, None)
            return
        found = self._statuses.setdefault(connector, {})
        if status is None:
            found.pop(task, None)
        elif not _is_outdated(status, found.get(task), task):
            found[task] = status
        if not found:
            del self._statuses[connector]

    def _put_topic(self, connector: str, topic: str, *, is_written: bool) -> None:
        found = self._topics.setdefault(connector, set())
        (found.add if is_written else found.discard)(topic)
        if not found:
            del self._topics[connector]


def may_replace(status: Status, before: Status | None) -> bool:
    """Whether a worker may write *status* where it last read *before*.

    States that follow from an end, UNASSIGNED and FAILED, are not written over what another worker wrote in a later generation.
    """
    return (
        status.state not in _OF_AN_END
        or before is None
        or before.worker_id == status.worker_id
        or before.generation <= status.generation
    )


def _is_outdated(status: Status, before: Status | None, task: Task) -> bool:
    """Whether a worker gave the task up after another, which got it later, had begun to run it.

    Kafka Connect compares the generations alone; what one worker writes is in the order in which it happened.
    """
    return (
        task is not None
        and before is not None
        and status.state == "UNASSIGNED"
        and before.state == "RUNNING"
        and before.generation >= status.generation
        and before.worker_id != status.worker_id
    )


def _status(value: bytes | None) -> Status | None:
    content = parsed(value)
    if content is None:
        return None
    generation = number_of(content, "generation")
    return Status(
        state=_text(content, "state"),
        worker_id=_text(content, "worker_id"),
        generation=generation,
        version=_optional_text(content, "version"),
        trace=_optional_text(content, "trace"),
    )


def _text(content: Content, name: str) -> str:
    found = _optional_text(content, name)
    if found is None:
        raise UnreadableRecordError(f"its {name} is missing")
    return found


def _optional_text(content: Content, name: str) -> str | None:
    found = content.get(name)
    if not isinstance(found, str | None):
        raise UnreadableRecordError(f"its {name} is no string")
    return found
