"""Runs a connector's tasks in this process, without Spark and Kafka, and stops them after any record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.connect.batch import SourceBatch
from headrace.connect.connector import PlannedConnector, PlanRequest, SourceConnector
from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import ConnectError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.task import Offsets, Polled, SourceTask, Split, TransactionContext
from headrace.task.batching import batches_of as grouped
from headrace.task.offset_updates import checked_update, read_only

Stored = MutableMapping[SourcePartition, SourceOffset]
"""The store of a test: committed offsets by source partition."""

_MOST_ROUNDS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """One record that a run committed."""

    topic: str
    value: Any
    key: Any = None
    partition: SourcePartition
    offset: SourceOffset | None


class StoredOffsets:
    """Committed offsets, read from a mapping; for plans and for tasks."""

    def __init__(self, stored: Mapping[SourcePartition, SourceOffset]) -> None:
        self._stored = dict(stored)

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        return self._stored.get(partition)

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        return {partition: self._stored.get(partition) for partition in partitions}

    def known(self) -> Mapping[SourcePartition, SourceOffset]:
        """See :class:`~headrace.connect.partition.KnownOffsets`."""
        return self._stored


@dataclass(frozen=True, slots=True)
class LocalConnectorContext:
    """A connector's context; an error that it raises is raised on the spot."""

    offsets: StoredOffsets
    target: Mapping[str, str] = field(default_factory=dict[str, str])
    command_options: str = ""

    def request_task_reconfiguration(self) -> None:
        """Nothing to do: every round calls ``task_configs`` or ``plan`` again."""

    def raise_error(self, error: Exception) -> None:
        """See :class:`~headrace.connect.connector.ConnectorContext`."""
        raise error


@dataclass(slots=True, kw_only=True)
class LocalContext:
    """A task's context; ``stopping`` returns ``asked_to_stop``."""

    offsets: StoredOffsets
    splits: Sequence[Split] = ()
    connector: str = "local"
    task: int = 0
    transaction: TransactionContext | None = None
    asked_to_stop: bool = False
    takes_encoded: bool = False

    def stopping(self) -> bool:
        """See :class:`~headrace.connect.task.TaskContext`."""
        return self.asked_to_stop


class LocalRun:
    """Runs *connector*, started with *props*, against *stored*, committing after each poll.

    With *stop_after* it ends like a process that dies: that many records are committed, and the others that the
    task returned are lost; in the middle of a poll, ``update_offsets`` is not called, as in a slot. An error of a task
    ends the run in the same way. *wait* is called with the seconds that an empty plan wants to wait, for example to
    move the connector's clock; without it such a plan ends the run. A task that follows its share ends with the first poll
    without records after which it is idle.
    """

    def __init__(
        self,
        connector: SourceConnector,
        props: Mapping[str, str],
        stored: Stored,
        *,
        slots: int = 1,
        stop_after: int | None = None,
        wait: Callable[[float], None] | None = None,
    ) -> None:
        self._connector = connector
        self._wait = wait
        self._planned = False
        self._followed = False
        self._failure: ConnectError | None = None
        self._props = props
        self._stored = stored
        self._slots = slots
        self._left = stop_after
        self.delivered: list[Delivered] = []
        """What was committed so far, also after an error."""

    def until_idle(self) -> list[Delivered]:
        """Run micro-batches until there is nothing to do; returns what was committed.

        A planned connector has nothing to do when its plan is empty, a polled one when a micro-batch has
        moved no offset. Raises ``AssertionError`` when there is always something to do, and the ``failure`` of the last
        plan, as a worker's run ends with it, when nothing else is left.
        """
        self._connector.initialize(LocalConnectorContext(StoredOffsets(self._stored)))
        self._connector.start(self._props)
        try:
            for _ in range(_MOST_ROUNDS):
                if not self._round():
                    break
            else:
                raise AssertionError(f"still something to do after {_MOST_ROUNDS} rounds")
        finally:
            self._connector.stop()
        if self._failure is not None and self._left != 0:
            raise self._failure
        return self.delivered

    def _round(self) -> bool:
        """One micro-batch; whether there may be more to do."""
        before = dict(self._stored)
        self._planned = False
        for task in list(self._tasks()):
            self._drain(task)
            if self._left == 0:
                return False
        # Planned work counts even if it changes nothing: a worker would plan it again for ever.
        return self._planned or before != self._stored

    def _tasks(self) -> Iterator[SourceTask]:
        offsets = StoredOffsets(self._stored)
        if not isinstance(self._connector, PlannedConnector):
            self._connector.context = LocalConnectorContext(offsets)
            for config in self._connector.task_configs(self._slots):
                yield self._started(config, LocalContext(offsets=offsets))
            return
        plan = self._connector.plan(PlanRequest(slots=self._slots, offsets=offsets))
        self._store(plan.offsets)
        self._planned = plan.has_work() or bool(plan.offsets)
        self._followed, self._failure = plan.followed, plan.failure
        if self._wait and plan.ask_again_after is not None and not plan.has_work():
            self._wait(plan.ask_again_after)
            self._planned = True
        offsets = StoredOffsets(self._stored)
        for share in filter(None, plan.shares):
            yield self._started(self._props, LocalContext(offsets=offsets, splits=share))

    def _started(self, config: Mapping[str, str], context: LocalContext) -> SourceTask:
        task = self._connector.task_class()
        task.initialize(context)
        task.start(config)
        return task

    def _drain(self, task: SourceTask) -> None:
        try:
            while self._left != 0:
                polled = task.poll()
                if polled is None:
                    self._store(updated(task, {}))
                    task.commit()
                    return
                batches = batches_of(polled)
                self._commit(task, batches)
                if self._followed and not any(map(len, batches)) and task.is_idle():
                    return
        finally:
            task.stop()

    def _commit(self, task: SourceTask, batches: Sequence[SourceBatch]) -> None:
        offsets = dict[SourcePartition, SourceOffset | None]()
        is_cut = False
        for batch in batches:
            count = len(batch) if self._left is None else min(self._left, len(batch))
            self._left = None if self._left is None else self._left - count
            is_cut |= count < len(batch)
            taken = batch.slice(0, count)
            self.delivered += records_of(taken)
            if count:
                offsets[batch.source_partition] = taken.offset_at(-1)
        # Not in the middle of a poll, because a task may return its own position.
        update = {} if is_cut else updated(task, offsets)
        self._store({**offsets, **update})
        task.commit()

    def _store(self, offsets: Offsets) -> None:
        for partition, offset in offsets.items():
            if offset is None:
                self._stored.pop(partition, None)
            else:
                self._stored[partition] = offset


def updated(task: SourceTask, offsets: Offsets) -> Offsets:
    """The update of *task* for the commit of *offsets*, which it gets read-only as in a slot."""
    return checked_update(task.update_offsets(read_only(offsets)))


def batches_of(polled: Polled) -> Sequence[SourceBatch]:
    """What ``poll`` returned, as batches; raises ``TypeError`` for encoded ones, which only a sender can read."""
    if isinstance(polled, SourceBatch):
        return [polled]
    if isinstance(polled, EncodedBatches):
        raise TypeError("poll returned encoded batches, but context.takes_encoded is false.")
    batches = [each for each in polled or () if isinstance(each, SourceBatch)]
    records = [each for each in polled or () if isinstance(each, SourceRecord)]
    return batches or [batch for batch, _ in grouped(records)]


def records_of(batch: SourceBatch) -> list[Delivered]:
    """The records of *batch*, one by one."""
    return [
        Delivered(
            topic=batch.topic,
            value=value,
            key=None if batch.keys is None else batch.keys[row].as_py(),
            partition=batch.source_partition,
            offset=batch.offset_at(row),
        )
        for row, value in enumerate(batch.values.to_pylist())
    ]
