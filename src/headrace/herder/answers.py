"""The herder's answers, with Kafka Connect's names of states: values that REST writes as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.setting import HIDDEN, REQUIRED, Setting, SettingType
from headrace.java.numbers import java_double


class TargetState(StrEnum):
    """A connector's target state: stored with its configuration, changed by pause, resume and stop."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class State(StrEnum):
    """The observed state of a connector or a task; a task is never STOPPED."""

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class TaskId:
    """A task of a connector, counted from 0."""

    connector: str
    task: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorInfo:
    """A connector as it was submitted, placeholders unresolved. *type* is ``source`` or ``unknown``."""

    name: str
    config: Mapping[str, str | None] = field(repr=False)
    tasks: Sequence[TaskId]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Created:
    """A connector that was created or changed.

    *is_new* is false for a changed one. *offsets_message* is KIP-995's ``initial_offsets_response``;
    ``None`` when the request had no offsets.
    """

    info: ConnectorInfo
    is_new: bool = True
    offsets_message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskInfo:
    """A task and the configuration that it runs with."""

    id: TaskId
    config: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateInfo:
    """The state of a connector (*task* ``None``) or one of its tasks; FAILED ones have a *trace*."""

    task: int | None = None
    state: State
    worker_id: str
    version: str | None = None
    trace: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStatus:
    """A connector's state and those of its tasks, by their numbers."""

    name: str
    connector: StateInfo
    tasks: Sequence[StateInfo]
    type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffset:
    """A source partition and its committed offset."""

    partition: SourcePartition
    offset: SourceOffset


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """The lag after the offset of a source partition; ``None`` when the connector does not know it."""

    partition: SourcePartition
    offset: SourceOffset
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedOffset:
    """A source partition that a change changed; ``None`` stands for no offset."""

    partition: SourcePartition
    before: SourceOffset | None
    after: SourceOffset | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PastChange:
    """A change of a connector's offsets that was requested.

    *operation* is ``alter``, ``reset``, ``create`` or ``undo``; *who* a user or an address, if that is known;
    *at_ms* is in milliseconds since 1970. *done* is false while the change is under way, and if it failed.
    *undoes* is the change that this one reverted. *of_deleted* says that its connector was deleted since, so that it
    cannot be undone: one of the same name is another connector.
    """

    id: int
    operation: str
    who: str | None
    at_ms: int
    done: bool
    undoes: int | None
    of_deleted: bool = False
    offsets: Sequence[ChangedOffset]


class PluginKind(Enum):
    """The type of a plugin, with Kafka Connect's names and in the order in which it lists them."""

    SOURCE = "source"
    TRANSFORMATION = "transformation"
    PREDICATE = "predicate"
    CONVERTER = "converter"
    HEADER_CONVERTER = "header_converter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """A class that a configuration may name.

    *problem* says why it cannot be used (its module cannot be imported); other plugins are not affected.
    """

    class_name: str
    kind: PluginKind
    version: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigValue:
    """A key's value as text (passwords hidden, ``None`` when there is none), and its errors."""

    name: str
    value: str | None = field(repr=False)
    errors: Sequence[str] = ()
    recommended: Sequence[str] = ()
    visible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedKey:
    """A key of a validated configuration; *definition* is ``None`` for an undefined key."""

    definition: Setting | None
    value: ConfigValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigInfos:
    """The answer of a validation: every key, in Kafka Connect's order."""

    name: str
    error_count: int
    groups: Sequence[str]
    configs: Sequence[CheckedKey]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerInfo:
    """Who this worker is, and which Kafka cluster it writes to; ``None`` while that is not known yet."""

    version: str
    commit: str
    kafka_cluster_id: str | None


class Health(Enum):
    """KIP-1017's answer to ``GET /health``."""

    HEALTHY = "healthy"
    STARTING = "starting"
    UNHEALTHY = "unhealthy"


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerHealth:
    """The worker's health, and a sentence about it."""

    status: Health
    message: str


class WorkerState(StrEnum):
    """What a worker of a group takes: connectors, or none."""

    ACTIVE = "ACTIVE"
    LEAVING = "LEAVING"
    """Hands its connectors over, or has done so, and takes none (KIP-995)."""
    ARRIVING = "ARRIVING"
    """Takes none until its Spark has started."""
    UNREACHABLE = "UNREACHABLE"
    """Leads the group, and does not answer: the others tell what they know without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInfo:
    """A worker of a group, with the *connectors* that it runs, sorted.

    *id* is its name in statuses. Others reach it at *url*, which is empty for a worker that stands alone. *version* is headrace's, empty
    for a worker of Kafka Connect. It runs up to *slots* tasks at once, 0 if that is not known.
    """

    id: str
    url: str
    version: str
    slots: int
    is_leader: bool
    state: WorkerState
    connectors: Sequence[str]


def value_text(value: object, kind: SettingType) -> str | None:
    """*value*, of the type *kind*, as text: lists with commas, passwords hidden; ``None`` if there is none.

    Also accepts the placeholder for the missing default of a required setting. Pure.
    """
    if value is None or value is REQUIRED:
        return None
    if kind is SettingType.PASSWORD:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        items: tuple[object, ...] | list[object] = value
        return ",".join(map(str, items))
    return java_double(float(str(value))) if kind is SettingType.DOUBLE else str(value)
