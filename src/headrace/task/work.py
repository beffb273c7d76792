"""The work of a slot and its final report; both are sent over the channel as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.observe.secret_masking import Secrets
from headrace.offsets.target import OffsetTarget, target_message, target_of
from headrace.task.topic_creation import TopicGroup


class Delivery(StrEnum):
    """The guarantee that a connector runs with."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class BoundaryKind(StrEnum):
    """Where transactions end (KIP-618)."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


STALE = "stale"
"""The reason reported by a copy of a slot whose token another copy has claimed."""


class Outcome(StrEnum):
    """How a slot ended."""

    FINISHED = "finished"
    """Its share of the plan is read and committed."""
    IDLE = "idle"
    """Its polls returned nothing for a while; everything before is committed."""
    ASKED = "asked"
    """The driver asked it to end; everything that it read is committed."""
    STALE = "stale"
    """Its token is invalid, or another copy has claimed it; it has written nothing."""
    REPLAN = "replan"
    """It lost its transaction or its lease; the work is to be planned again."""
    FAILED = "failed"
    """It failed for a reason that an operator has to look at."""


class EndReason(StrEnum):
    """Why the driver wants the slots of a micro-batch to end."""

    STOP = "stop"
    """The connector is to stop."""
    SIBLING = "sibling"
    """Another slot ended early, and its work has to be planned again."""
    RECONFIGURATION = "reconfiguration"
    """The connector asked for new tasks."""
    BUDGET = "budget"
    """Others need the slots, an idle sibling should poll again, or a new plan was requested; the slot ends where
    resuming later is cheap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """What happens to a record that cannot be read, converted or sent (KIP-298).

    Retriable errors are retried for *retry_seconds* (``None`` means forever), at most *retry_delay_seconds* apart.
    With *tolerate* the record is then sent to the topic *dead_letters*, with headers that describe the error if
    *headers* is set; without a topic it is skipped. *log* logs each error, *log_content* with the record's content.
    *replication* is the replication factor of a dead letter topic that has to be created.
    """

    tolerate: bool = False
    dead_letters: str | None = None
    replication: int = 3
    headers: bool = False
    log: bool = False
    log_content: bool = False
    retry_seconds: float | None = 0.0
    retry_delay_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginChoice:
    """A plugin class by its name, with its settings."""

    class_name: str
    config: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChoice:
    """A transformation, and the predicate that selects the records to which it applies; *negate* inverts it."""

    transform: PluginChoice
    predicate: PluginChoice | None = None
    negate: bool = False

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """The transformation, and the predicate if there is one."""
        return (self.transform,) if self.predicate is None else (self.transform, self.predicate)


@dataclass(frozen=True, kw_only=True)
class ConnectorSpec:
    """The effective, fully resolved settings of a connector in JSON-able form. Durations are in seconds.

    Made by validation (:mod:`headrace.plugins.connectors`), read by the herder, the driver and each task. Tasks commit
    offsets to *offsets*. *hidden* are the secrets in *props*, which must not appear in logs, errors or answers. Missing
    topics are created as *topic_groups* say, by a client with the settings *admin*; without groups, the broker may
    create them. *enforces_max_tasks* is ``tasks.max.enforce``.
    """

    name: str
    props: Mapping[str, str] = field(repr=False)
    max_tasks: int
    enforces_max_tasks: bool = True
    delivery: Delivery
    producer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    offsets: OffsetTarget
    key_converter: PluginChoice = field(repr=False)
    value_converter: PluginChoice = field(repr=False)
    header_converter: PluginChoice = field(repr=False)
    transforms: tuple[StageChoice, ...] = field(default=(), repr=False)
    boundary: BoundaryKind = BoundaryKind.INTERVAL
    commit_seconds: float = 1.0
    records_per_second: int | None = None
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    topic_groups: tuple[TopicGroup, ...] = ()
    hidden: Secrets = field(default_factory=Secrets, repr=False)

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """All plugins of its tasks: converters, transformations, predicates."""
        stages = (one for each in self.transforms for one in each.plugins)
        return (self.key_converter, self.value_converter, self.header_converter, *stages)

    @property
    def exactly_once(self) -> bool:
        """Whether its tasks write in transactions."""
        return self.delivery is Delivery.EXACTLY_ONCE

    def as_message(self) -> dict[str, Any]:
        """The settings as JSON values, without those that its tasks do not need."""
        message = {
            each.name: getattr(self, each.name) for each in dataclasses.fields(ConnectorSpec)
        }
        for name in ("key_converter", "value_converter", "header_converter", "errors"):
            message[name] = dataclasses.asdict(message[name])
        message["offsets"] = target_message(self.offsets)
        message["topic_groups"] = [dataclasses.asdict(each) for each in self.topic_groups]
        message["transforms"] = [dataclasses.asdict(each) for each in self.transforms]
        message["hidden"] = dict(self.hidden.values)
        message["admin"] = dict(self.admin) if self.topic_groups else {}
        return message

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The settings from what :meth:`as_message` returned."""
        given = dict(message)
        for name in ("key_converter", "value_converter", "header_converter"):
            given[name] = PluginChoice(**given[name])
        given["offsets"] = target_of(given["offsets"])
        given["transforms"] = tuple(_stage(each) for each in given["transforms"])
        given["topic_groups"] = tuple(map(TopicGroup.from_message, given["topic_groups"]))
        given["errors"] = ErrorPolicy(**given["errors"])
        given["delivery"] = Delivery(given["delivery"])
        given["boundary"] = BoundaryKind(given["boundary"])
        given["hidden"] = Secrets(values=given["hidden"])
        return cls(**given)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWork:
    """Everything that one slot needs: its connector's *spec* and its own settings; the answer to a granted claim.

    Durations are in seconds. *config* is the task's configuration, *splits* are its share of a plan.
    *transaction_seconds* is how long the broker lets a transaction stay open.
    """

    spec: ConnectorSpec
    task: int
    task_class: str
    config: Mapping[str, str] = field(repr=False)
    planned: bool
    splits: tuple[Split, ...]
    transactional_id: str | None
    lease_seconds: float = 10.0
    grace_seconds: float = 5.0
    transaction_seconds: float = 60.0
    linger_seconds: float | None = None
    once: bool = False

    def as_message(self) -> dict[str, Any]:
        """The work as JSON values."""
        message = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        message["spec"] = self.spec.as_message()
        message["splits"] = [_split_message(split) for split in self.splits]
        return message

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The work from what :meth:`as_message` returned."""
        given = dict(message)
        given["spec"] = ConnectorSpec.from_message(given["spec"])
        given["splits"] = tuple(_split(each) for each in given["splits"])
        return cls(**given)


def _stage(message: Mapping[str, Any]) -> StageChoice:
    predicate = message["predicate"]
    return StageChoice(
        transform=PluginChoice(**message["transform"]),
        predicate=None if predicate is None else PluginChoice(**predicate),
        negate=message["negate"],
    )


def _split_message(split: Split) -> list[Any]:
    offset = None if split.offset is None else dict(split.offset)
    return [dict(split.partition), offset, dict(split.details)]


def _split(message: Sequence[Any]) -> Split:
    partition, offset, details = message
    return Split(partition=SourcePartition(partition), offset=offset, details=details)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Count, sum, minimum and maximum of some amounts."""

    count: int = 0
    total: float = 0
    least: float = 0
    most: float = 0

    def add(self, amount: float) -> None:
        """Add one *amount*."""
        self.least = min(self.least, amount) if self.count else amount
        self.most = max(self.most, amount)
        self.total += amount
        self.count += 1


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a slot has done so far in this micro-batch. Written by the slot's thread, read by its heartbeat.

    *waiting_for* is what sending or converting waits for, *source_away* why ``poll`` has to be called again. Of the
    records with tolerated errors, *dead_lettered* are in the dead letter topic and *skipped* are not;
    *quarantined* of them each stand for the unread rest of an object. All three count committed records, and
    *moved_offsets* counts committed offsets that ``update_offsets`` moved without a record. *topics* are those with
    committed records, sorted.

    *record_errors* are records that could not be read, converted or sent, including those that failed the task,
    and *errors_logged* those that were logged; *retries* is how often a record or batch was retried,
    *letters_refused* how many dead letters could not be written. These count what happened, committed or not.

    *polled_records* includes bad records. *polls* are the seconds of each poll that returned something and
    *batches* the number of its records, *commits* the seconds of each commit and *transaction_sizes* the number of
    records of each transaction; the last is empty with at-least-once.
    """

    records: int = 0
    bytes: int = 0
    committed_records: int = 0
    committed_bytes: int = 0
    transactions: int = 0
    dead_lettered: int = 0
    skipped: int = 0
    quarantined: int = 0
    moved_offsets: int = 0
    record_errors: int = 0
    retries: int = 0
    errors_logged: int = 0
    letters_refused: int = 0
    waiting_for: str | None = None
    source_away: str | None = None
    stopping_task: bool = False
    topics: Sequence[str] = ()
    polled_records: int = 0
    polls: Tally = field(default_factory=Tally)
    batches: Tally = field(default_factory=Tally)
    commits: Tally = field(default_factory=Tally)
    transaction_sizes: Tally = field(default_factory=Tally)

    def as_message(self) -> dict[str, Any]:
        """What was done, as JSON values."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotReport:
    """A slot's final report.

    *clean* says that it left no transaction open, *surprising* that it ended with an unexpected error, which is no
    ``ConnectError``.
    """

    outcome: Outcome
    clean: bool = True
    surprising: bool = False
    reason: str | None = None
    trace: str | None = None
    progress: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_message(self) -> dict[str, Any]:
        """The report as JSON values."""
        return dataclasses.asdict(self)

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The report from what :meth:`as_message` returned."""
        given = dict(message)
        return cls(outcome=Outcome(given.pop("outcome")), **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTicket:
    """What Spark carries to a slot: the driver's address, and the token of the work.

    The work itself and secrets of connectors are fetched over the channel, so that no Spark plan contains them.
    """

    host: str
    port: int
    secret: bytes = field(repr=False)
    token: str

    def for_reading(self) -> SlotTicket:
        """The ticket of the process that reads for this slot, if that is a separate one."""
        return dataclasses.replace(self, token=reading_token(self.token))


def reading_token(token: str) -> str:
    """The token of the process that reads for the slot of *token*. Pure."""
    return f"{token}/read"
