"""What a slot is given to do, and what it says when it has ended; both travel over the channel as JSON."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.slot.topic_groups import TopicGroup


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
"""The reason of a copy whose token another copy has claimed."""


class Outcome(StrEnum):
    """How a slot ended."""

    FINISHED = "finished"
    """Its share of the plan is read and committed."""
    IDLE = "idle"
    """It polled, and there was nothing for a while; what it had is committed."""
    ASKED = "asked"
    """The driver told it to end; what it had is committed."""
    STALE = "stale"
    """It is not the copy that counts, and has written nothing."""
    REPLAN = "replan"
    """It lost its transaction or its lease; the work is to be planned again."""
    FAILED = "failed"
    """A person has to look at the reason."""


class EndReason(StrEnum):
    """Why the driver wants the slots of a micro-batch to end."""

    STOP = "stop"
    """The connector is to stop."""
    SIBLING = "sibling"
    """Another slot has ended before its time, and its work has to be planned again."""
    RECONFIGURATION = "reconfiguration"
    """The connector asked for new tasks."""
    BUDGET = "budget"
    """Others need the slots, an idle sibling ought to poll again, or a new plan is asked for; where it is
    cheap to go on later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """What happens to a record that cannot be read, converted or sent (KIP-298).

    With *tolerate* it is passed over: it goes to the topic *dead_letters*, with headers that tell of it if
    *headers* says so; without a topic it is skipped. *log* tells of each in the log, *log_content* with what
    it holds. *replication* is that of a topic that has to be made. Before that, what may pass is tried again
    for *retry_seconds*, ``None`` without end, with at most *retry_delay_seconds* in between.
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
    """A class by its name, and its own settings."""

    class_name: str
    config: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChoice:
    """A transformation, and the predicate that says to which records it applies, or with *negate*, does not."""

    transform: PluginChoice
    predicate: PluginChoice | None = None
    negate: bool = False

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """All that it names."""
        return (self.transform,) if self.predicate is None else (self.transform, self.predicate)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWork:
    """Everything one slot needs; the answer to a granted claim. Durations are in seconds.

    *offsets_topic* is ``None`` when acknowledged offsets are handed to the driver instead. With *copies_offsets* it
    is the connector's own, and the driver is told what was committed there. Topics that are not
    there are made by a client with the settings *admin* as *topic_groups* say; without any, the broker may make
    them. *transaction_seconds* is how long the broker lets a transaction stay open. *hidden* are secrets of the
    connector, each with what is shown in its place.
    """

    connector: str
    task: int
    task_class: str
    config: Mapping[str, str] = field(repr=False)
    planned: bool
    splits: tuple[Split, ...]
    delivery: Delivery
    producer: Mapping[str, str] = field(repr=False)
    transactional_id: str | None
    offsets_topic: str | None
    copies_offsets: bool = False
    key_converter: PluginChoice
    value_converter: PluginChoice
    header_converter: PluginChoice
    transforms: tuple[StageChoice, ...] = ()
    boundary: BoundaryKind = BoundaryKind.INTERVAL
    commit_seconds: float = 1.0
    lease_seconds: float = 10.0
    grace_seconds: float = 5.0
    transaction_seconds: float = 60.0
    linger_seconds: float | None = None
    once: bool = False
    records_per_second: int | None = None
    errors: ErrorPolicy = ErrorPolicy()
    topic_groups: tuple[TopicGroup, ...] = ()
    admin: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    hidden: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    def as_message(self) -> dict[str, Any]:
        """The work as JSON values."""
        message = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        for name in ("key_converter", "value_converter", "header_converter", "errors"):
            message[name] = dataclasses.asdict(message[name])
        message["topic_groups"] = [dataclasses.asdict(each) for each in self.topic_groups]
        message["transforms"] = [dataclasses.asdict(each) for each in self.transforms]
        message["splits"] = [_split_message(split) for split in self.splits]
        return message

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The work that :meth:`as_message` described."""
        given = dict(message)
        for name in ("key_converter", "value_converter", "header_converter"):
            given[name] = PluginChoice(**given[name])
        given["transforms"] = tuple(_stage(each) for each in given["transforms"])
        given["topic_groups"] = tuple(map(TopicGroup.from_message, given["topic_groups"]))
        given["errors"] = ErrorPolicy(**given["errors"])
        given["splits"] = tuple(_split(each) for each in given["splits"])
        given["delivery"] = Delivery(given["delivery"])
        given["boundary"] = BoundaryKind(given["boundary"])
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
    """How often something came, and how much of it: in all, the least and the most at one time."""

    count: int = 0
    total: float = 0
    least: float = 0
    most: float = 0

    def add(self, amount: float) -> None:
        """Count *amount* as one more time."""
        self.least = min(self.least, amount) if self.count else amount
        self.most = max(self.most, amount)
        self.total += amount
        self.count += 1


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a slot has done so far in this micro-batch. Written by the slot's thread, read by its heartbeat.

    *waiting_for* is what sending or converting waits for, *source_away* why ``poll`` has to be called again. Of
    records that were passed over, *dead_lettered* are in the topic of dead letters and *skipped* are nowhere;
    *quarantined* of them are the rests of objects that are read no further. All three count what is committed, and
    so do *moved_offsets*, which ``update_offsets`` moved without a record. *topics* hold records that are
    committed, sorted.

    *record_errors* are records that could not be read, converted or sent, those that failed the task included,
    and *errors_logged* those of them that the log told; *retries* is how often a record or batch was tried
    again, *letters_refused* how many dead letters could not be written. These count what happened, committed or
    not.

    *polled_records* counts the bad ones, too. *polls* are the seconds of each poll that returned anything and
    *batches* the records of each, *commits* the seconds of each commit and *transaction_sizes* the records of
    each transaction; none of the last in at-least-once.
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
    """A slot's last word.

    *clean* says that it left no transaction open, *surprising* that it ended with an error that nobody
    thought of.
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
        """The report that :meth:`as_message` described."""
        given = dict(message)
        return cls(outcome=Outcome(given.pop("outcome")), **given)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTicket:
    """All that Spark carries to a slot: where the driver listens, and the token of this copy of the work.

    Work and secrets of connectors are fetched over the channel, so that they are in no Spark plan.
    """

    host: str
    port: int
    secret: bytes = field(repr=False)
    token: str

    def for_reading(self) -> SlotTicket:
        """The ticket of the process that reads for this slot, where one of its own does."""
        return dataclasses.replace(self, token=reading_token(self.token))


def reading_token(token: str) -> str:
    """The part of a slot's *token* that the process claims that reads for it. Pure."""
    return f"{token}/read"
