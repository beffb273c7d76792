"""Kafka Connect's config topic: its records, and the connectors and tasks that they add up to. Pure.

Keys and values are those of Kafka Connect 4.3, in the order of its fields, so that its workers can read the topic and go on with it.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, TypeAlias, cast

from headrace.connect.json_document import document
from headrace.kafka.sender import OffsetEntry
from headrace.storage.protocols import SessionKey, StoredConnector, TaskCount
from headrace.storage.topic_records import (
    Content,
    UnreadableRecordError,
    key_text,
    number_of,
    parsed,
    task_of,
)

Properties: TypeAlias = Mapping[str, str | None]


class _Kind(StrEnum):
    """How the keys of each kind of record begin, in the order in which Kafka Connect compares them."""

    TARGET_STATE = "target-state-"
    CONNECTOR = "connector-"
    TASK = "task-"
    COMMIT = "commit-"
    RESTART = "restart-connector-"
    TASK_COUNT = "tasks-fencing-"
    SESSION_KEY = "session-key"
    LOGGER = "logger-cluster-"


_KINDS: Final = tuple(_Kind)
# Workers before 3.5 know only the first field, and not that connectors can be stopped (KIP-875).
_STATES: Final = {
    "RUNNING": {"state": "STARTED", "state.v2": "STARTED"},
    "PAUSED": {"state": "PAUSED", "state.v2": "PAUSED"},
    "STOPPED": {"state": "PAUSED", "state.v2": "STOPPED"},
}
_TARGETS: Final = {"STARTED": "RUNNING", "PAUSED": "PAUSED", "STOPPED": "STOPPED"}


def connector_entry(name: str, config: Properties | None) -> OffsetEntry:
    """The record of a connector's configuration; ``None`` deletes the connector."""
    return _entry(_Kind.CONNECTOR + name, None if config is None else {"properties": dict(config)})


def target_state_entry(name: str, target_state: str | None) -> OffsetEntry:
    """The record of a target state, with the name that :class:`~headrace.storage.protocols.StoredConnector` has for it."""
    return _entry(
        _Kind.TARGET_STATE + name, None if target_state is None else _STATES[target_state]
    )


def task_entries(name: str, configs: Sequence[Mapping[str, str]]) -> list[OffsetEntry]:
    """The records of a connector's tasks, and last the one that puts them in force."""
    tasks = [
        _entry(f"{_Kind.TASK}{name}-{index}", {"properties": dict(config)})
        for index, config in enumerate(configs)
    ]
    return [*tasks, _entry(_Kind.COMMIT + name, {"tasks": len(configs)})]


def task_count_entry(name: str, count: TaskCount) -> OffsetEntry:
    """The record that is written before the first of *count* slots begins (KIP-618)."""
    return _entry(_Kind.TASK_COUNT + name, {"task-count": count.slots})


def session_key_entry(key: SessionKey) -> OffsetEntry:
    """The record of the key with which workers sign their requests to each other (KIP-507)."""
    value = {
        "key": base64.b64encode(key.key).decode(),
        "algorithm": key.algorithm,
        "creation-timestamp": key.created_ms,
    }
    return _entry(_Kind.SESSION_KEY, value)


def logger_entry(logger: str, level: str) -> OffsetEntry:
    """The record that has every worker give *logger*, and those below it, the *level* (KIP-976)."""
    return _entry(_Kind.LOGGER + logger, {"level": level})


def _entry(key: str, value: Mapping[str, object] | None) -> OffsetEntry:
    return key.encode(), None if value is None else document(value).encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorRecords:
    """What the topic says about one connector.

    *config* is ``None`` where it was deleted, or has only other records; *start_number* is another one after each configuration, also if
    the same one was written again, and after each stop: the connector is to be started anew then. *tasks* are in force since their last
    commit; where that named tasks that have no record, *is_inconsistent* is set, and there are none. They were made from *applied*. *is_fenced* once *count*
    was written since then.
    """

    config: Properties | None = None
    start_number: int = 0
    target_state: str | None = None
    tasks: tuple[Mapping[str, str], ...] = ()
    is_inconsistent: bool = False
    applied: Properties | None = None
    count: TaskCount | None = None
    is_fenced: bool = False


@dataclass(slots=True)
class ConfigTopic:
    """What the records of the topic add up to, in the order in which they were written. One thread applies them."""

    session_key: SessionKey | None = None
    """The key with which workers sign their requests to each other; ``None`` before one was written."""
    on_level: Callable[[str, str], object] = lambda _logger, _level: None
    """Called with a logger and its level for each record that sets one; raises ``ValueError`` for a word that is no level."""
    _starts: int = 0
    _found: dict[str, ConnectorRecords] = field(default_factory=dict[str, ConnectorRecords])
    # The tasks' records of each connector since its last commit.
    _uncommitted: dict[str, _Tasks] = field(default_factory=dict[str, "_Tasks"])

    def connectors(self) -> dict[str, StoredConnector]:
        """The connectors that have a configuration, by name."""
        stored = ((name, self.connector(name)) for name in list(self._found))
        return {name: each for name, each in stored if each is not None}

    def connector(self, name: str) -> StoredConnector | None:
        """The connector of that name."""
        records = self.records(name)
        if records.config is None:
            return None
        return StoredConnector(
            name=name, config=records.config, target_state=records.target_state or "RUNNING"
        )

    def records(self, name: str) -> ConnectorRecords:
        """All that the topic says about the connector of that name."""
        return self._found.get(name, _NOTHING)

    def apply(self, key: bytes | None, value: bytes | None) -> None:
        """Take in the next record.

        Raises :class:`~headrace.storage.topic_records.UnreadableRecordError` for one that has to be passed over.
        """
        kind, name = _kind_of(key_text(key))
        if kind is _Kind.SESSION_KEY:
            self.session_key = _session_key(parsed(value))
        elif kind is _Kind.TASK:
            self._apply_task(name, value)
        elif kind is _Kind.LOGGER:
            self._apply_level(name, parsed(value))
        elif kind is not _Kind.RESTART:
            self._apply_to_connector(kind, name, value)

    def _apply_to_connector(self, kind: _Kind, name: str, value: bytes | None) -> None:
        before = self.records(name)
        # Nothing that is read here is kept in part: a record counts as a whole, or is passed over.
        match kind, parsed(value):
            case _Kind.TARGET_STATE, content:
                after = _with_target_state(before, content)
                if after.target_state == "STOPPED":
                    # Whoever sees only that it runs again starts it anew all the same: its tasks are not stored any more.
                    self._starts += 1
                    after = replace(after, start_number=self._starts)
            case _Kind.CONNECTOR, None:
                # What its slots may have left must still be fenced.
                after = ConnectorRecords(target_state=before.target_state, count=before.count)
                self._uncommitted.pop(name, None)
            case _Kind.CONNECTOR, content:
                config = _properties(content)
                self._starts += 1
                after = replace(before, config=config, start_number=self._starts)
            case _, None:
                return
            case _Kind.COMMIT, content:
                count = _number(content, "tasks")
                after = _with_commit(before, count, self._uncommitted.pop(name, {}))
            case _, content:
                count = TaskCount(slots=_number(content, "task-count"))
                after = replace(before, count=count, is_fenced=True)
        if after == _NOTHING:
            self._found.pop(name, None)
        else:
            self._found[name] = after

    def _apply_task(self, task: str, value: bytes | None) -> None:
        name, index = task_of(task)
        content = parsed(value)
        if content is not None:
            config = cast("Mapping[str, str]", _properties(content))
            self._uncommitted.setdefault(name, {})[index] = config

    def _apply_level(self, logger: str, content: Content | None) -> None:
        level = None if content is None else content.get("level")
        if not (logger and isinstance(level, str)):
            raise UnreadableRecordError("it has no logger, or no level")
        try:
            self.on_level(logger, level)
        except ValueError as error:
            raise UnreadableRecordError(f"its level {level!r} is not known") from error


_Tasks: TypeAlias = dict[int, Mapping[str, str]]
_NOTHING: Final = ConnectorRecords()


def _with_target_state(records: ConnectorRecords, value: Content | None) -> ConnectorRecords:
    if value is None:
        return replace(records, target_state=None)
    state = value.get("state.v2", value.get("state"))
    target = _TARGETS.get(state) if isinstance(state, str) else None
    if target is None:
        raise UnreadableRecordError(f"its state {state!r} is not known")
    return replace(records, target_state=target)


def _with_commit(records: ConnectorRecords, count: int, uncommitted: _Tasks) -> ConnectorRecords:
    if records.config is None:
        # What compaction left of a connector that was deleted (KAFKA-16838).
        return records
    is_complete = all(index in uncommitted for index in range(count))
    return replace(
        records,
        tasks=tuple(uncommitted[index] for index in range(count)) if is_complete else (),
        is_inconsistent=not is_complete,
        applied=records.config if is_complete else records.applied,
        is_fenced=False,
    )


def _kind_of(text: str) -> tuple[_Kind, str]:
    for kind in _KINDS:
        if text == kind if kind is _Kind.SESSION_KEY else text.startswith(kind):
            return kind, text.removeprefix(kind)
    raise UnreadableRecordError(f"its key {text!r} is not known")


def _session_key(value: Content | None) -> SessionKey:
    # None of the errors shows the value, which is the secret of the group.
    content = value or {}
    encoded, algorithm = content.get("key"), content.get("algorithm")
    if not (isinstance(encoded, str) and isinstance(algorithm, str)):
        raise UnreadableRecordError("it has no key, or no algorithm")
    created_ms = number_of(content, "creation-timestamp")
    try:
        key = base64.b64decode(encoded, validate=True)
    except ValueError:
        key = b""
    if not key:
        raise UnreadableRecordError("its key is empty, or not base64")
    return SessionKey(key=key, algorithm=algorithm, created_ms=created_ms)


def _properties(value: Content) -> Properties:
    found = value.get("properties")
    if not isinstance(found, dict):
        raise UnreadableRecordError("it has no properties")
    kept = dict[str, str | None]()
    for name, each in cast("dict[str, object]", found).items():
        if each is None:
            kept[name] = None
        elif isinstance(each, str):
            # Most names and values are those of a thousand other records, too.
            kept[sys.intern(name)] = sys.intern(each)
        else:
            raise UnreadableRecordError(f"its property {name!r} is no string")
    return kept


def _number(value: Content, name: str) -> int:
    found = value.get(name)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise UnreadableRecordError(f"its {name!r} is no number of tasks")
    return found
