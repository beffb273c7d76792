"""Connectors whose behaviour a test writes as functions; for slots in the test's own process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from headrace import __version__
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.config import Config
from headrace.connect.connector import (
    ConnectorContext,
    ExactlyOnceSupport,
    Plan,
    PlannedConnector,
    PlanRequest,
    SourceConnector,
)
from headrace.connect.partition import OffsetReader, SourcePartition
from headrace.connect.record import RecordMetadata, SourceRecord
from headrace.connect.task import Offsets, Polled, SourceTask, Split

SOURCE = SourcePartition(source="puppet")
"""The source partition of :func:`numbered`."""

PLANNED = "doubles.puppets:PlannedPuppet"
POLLED = "doubles.puppets:PolledPuppet"
TELLING = "doubles.puppets:TellingPuppet"


@dataclass(kw_only=True)
class Puppet:
    """What a connector does; *stop* is its tasks' own.

    *placed* fills with what ``commit_record`` is told, where that is overridden.
    """

    plan: Callable[[PlanRequest], Plan] = lambda _: Plan()
    probe: Callable[[OffsetReader], bool | None] = lambda _: None
    poll: Callable[[SourceTask], Polled] = lambda _: None
    update: Callable[[Offsets], Offsets | None] = lambda _: None
    stop: Callable[[], None] = lambda: None
    started: Callable[[ConnectorContext], None] = lambda _: None
    tasks: int = 1
    placed: list[tuple[SourceRecord, RecordMetadata | None]] = field(
        default_factory=list[tuple[SourceRecord, RecordMetadata | None]]
    )


_puppets: dict[str, Puppet] = {}


def puppet(connector: str, behaviour: Puppet) -> Puppet:
    """Let the connector of that name do as *behaviour* says, from now on."""
    _puppets[connector] = behaviour
    return behaviour


def numbered(
    topic: str, first: int, count: int, *, source: SourcePartition = SOURCE
) -> SourceBatch:
    """*count* rows with the numbers from *first* on as text; the offset is the number behind a row."""
    return SourceBatch(
        topic=topic,
        values=pa.array([str(number) for number in range(first, first + count)], pa.utf8()),
        source_partition=source,
        offsets=BatchOffsets(
            columns={"next": pa.array(range(first + 1, first + count + 1), pa.int64())}
        ),
    )


def next_number(offsets: OffsetReader, source: SourcePartition = SOURCE) -> int:
    """Where :func:`numbered` goes on."""
    stored = (offsets.offset(source) or {}).get("next", 0)
    assert isinstance(stored, int)
    return stored


def reading(topic: str, total: int, *, at_once: int = 10) -> Puppet:
    """A planned source of *total* numbers."""

    def plan(request: PlanRequest) -> Plan:
        at = next_number(request.offsets)
        split = Split(partition=SOURCE, offset={"next": at})
        return Plan(shares=[[split]]) if at < total else Plan()

    def poll(task: SourceTask) -> Polled:
        memory = memory_of(task)
        at = memory.setdefault("at", next_number(task.context.offsets))
        count = min(at_once, total - at)
        memory["at"] = at + count
        return numbered(topic, at, count) if count else None

    return Puppet(plan=plan, poll=poll)


def endless(topic: str, *, at_once: int = 10) -> Puppet:
    """A polled source that always has more."""
    ticks = threading.Event()

    def poll(task: SourceTask) -> Polled:
        memory = memory_of(task)
        at = memory.setdefault("at", next_number(task.context.offsets))
        memory["at"] = at + at_once
        ticks.wait(0.02)
        return numbered(topic, at, at_once)

    return Puppet(poll=poll)


def memory_of(task: SourceTask) -> dict[str, int]:
    """What this instance of a puppet's task remembers."""
    assert isinstance(task, PuppetTask)
    return task.memory


class PuppetConfig(Config):
    """No settings."""


class PuppetTask(SourceTask):
    """Does as its connector's puppet says; *memory* is the puppet's to use."""

    def start(self, config: Mapping[str, str]) -> None:
        """Find the puppet."""
        self.puppet = _puppets[config["name"]]
        self.memory: dict[str, int] = {}

    def poll(self) -> Polled:
        """As the puppet says."""
        return self.puppet.poll(self)

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """As the puppet says."""
        return self.puppet.update(offsets)

    def stop(self) -> None:
        """As the puppet says."""
        self.puppet.stop()


class TellingTask(PuppetTask):
    """Wants to know each record's place."""

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Remember it."""
        self.puppet.placed.append((record, metadata))


class PolledPuppet(SourceConnector):
    """A polled connector."""

    version = __version__

    config_class: ClassVar[type[Config]] = PuppetConfig
    task_class: ClassVar[type[SourceTask]] = PuppetTask

    def start(self, props: Mapping[str, str]) -> None:
        """Find the puppet."""
        self._props = props
        self._puppet = _puppets[props["name"]]
        self._puppet.started(self.context)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """As many as the puppet wants."""
        return [self._props] * self._puppet.tasks

    def has_work(self, offsets: OffsetReader) -> bool | None:
        """As the puppet says."""
        return self._puppet.probe(offsets)

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """Always."""
        return True


class TellingPuppet(PolledPuppet):
    """A polled connector that wants to know each record's place."""

    task_class: ClassVar[type[SourceTask]] = TellingTask


class PlannedPuppet(PlannedConnector):
    """A planned connector."""

    version = __version__

    config_class: ClassVar[type[Config]] = PuppetConfig
    task_class: ClassVar[type[SourceTask]] = PuppetTask

    def start(self, props: Mapping[str, str]) -> None:
        """Find the puppet."""
        self._puppet = _puppets[props["name"]]
        self._puppet.started(self.context)

    def plan(self, request: PlanRequest) -> Plan:
        """As the puppet says."""
        return self._puppet.plan(request)

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """Always."""
        return True
