"""Counts since the worker began: a listener of events."""

from __future__ import annotations

import math
import operator
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from headrace.observe import events
from headrace.observe.events import Amounts, Event, TaskCounts

_TOTALS = [
    each.name
    for each in fields(TaskCounts)
    if each.name != "task" and not isinstance(each.default, Amounts)
]


_Count = TypeVar("_Count", int, Counter[str])


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTotals:
    """A task's counts *before* and in (*now*) its current or last micro-batch, since the worker began.

    *failed_at_ms* is when its last error was reported, in milliseconds since 1970; 0 for none.
    """

    now: TaskCounts
    before: TaskCounts
    failed_at_ms: int = 0

    def total(self, count: Callable[[TaskCounts], _Count]) -> _Count:
        """One of the counts since the worker began."""
        return count(self.before) + count(self.now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalances:
    """The rebalances of a worker's group: the *last* one that was completed, and how long they took, in seconds, in *times*.

    *seconds_ago* is how long the last one is ago, infinite before the first.
    """

    is_under_way: bool = False
    last: events.Rebalanced | None = None
    times: Amounts = field(default_factory=Amounts)
    seconds_ago: float = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class CountsSnapshot:
    """All counts at one moment; tasks by their connector and number. *rebalances* is ``None`` for a worker without a group."""

    starts: int = 0
    failed_starts: int = 0
    tasks: Mapping[tuple[str, int], TaskTotals] = field(
        default_factory=dict[tuple[str, int], TaskTotals]
    )
    rebalances: Rebalances | None = None


class Counts:
    """Counts events. Any thread may call; a lock guards it, held only for moments.

    *clock* dates errors, and *monotonic*, which never goes back, says how long ago something was.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._rebalances: Rebalances | None = None
        self._rebalanced_at = -math.inf
        self._lock = threading.Lock()
        self._starts = 0
        self._failed_starts = 0
        self._running = set[str]()
        self._tasks = dict[tuple[str, int], TaskTotals]()

    def __call__(self, event: Event) -> None:
        """Count *event*, if it is relevant."""
        with self._lock:
            match event:
                case events.ConnectorStarted():
                    self._starts += 1
                    self._running.add(event.connector)
                case events.ConnectorFailed():
                    # The start of a running connector has succeeded.
                    self._failed_starts += event.connector not in self._running
                    self._running.discard(event.connector)
                case events.ConnectorStopped():
                    self._running.discard(event.connector)
                case events.MicroBatchStarted():
                    self._begin(event.connector)
                case events.SlotProgress():
                    for each in event.tasks:
                        self._progress(event.connector, each)
                case events.OffsetsMoved():
                    self._move(event.connector, event.task, event.offsets)
                case events.TaskFailed():
                    self._fail(event.connector, event.task)
                case events.Rebalancing() | events.Rebalanced():
                    self._rebalance(event)
                case _:
                    pass

    def snapshot(self) -> CountsSnapshot:
        """All counts so far."""
        with self._lock:
            seen = self._rebalances
            ago = self._monotonic() - self._rebalanced_at
            return CountsSnapshot(
                starts=self._starts,
                failed_starts=self._failed_starts,
                tasks=dict(self._tasks),
                rebalances=None if seen is None else replace(seen, seconds_ago=ago),
            )

    def keep(self, connectors: Collection[str]) -> None:
        """Forget the tasks of connectors that are not in *connectors* and do not run."""
        with self._lock:
            kept = self._running.union(connectors)
            self._tasks = {each: done for each, done in self._tasks.items() if each[0] in kept}

    def _begin(self, connector: str) -> None:
        for (name, task), done in self._tasks.items():
            if name == connector:
                # An existing key, so the dictionary may be iterated.
                self._tasks[name, task] = replace(
                    done, before=_summed(done), now=TaskCounts(task=task)
                )

    def _progress(self, connector: str, now: TaskCounts) -> None:
        done = self._task(connector, now.task)
        has_more = _bad(now) > _bad(done.now)
        self._tasks[connector, now.task] = replace(
            done, now=now, failed_at_ms=self._now_ms() if has_more else done.failed_at_ms
        )

    def _move(self, connector: str, task: int, offsets: int) -> None:
        done = self._task(connector, task)
        moved = done.before.moved_offsets + offsets
        self._tasks[connector, task] = replace(
            done, before=replace(done.before, moved_offsets=moved)
        )

    def _fail(self, connector: str, task: int) -> None:
        done = self._task(connector, task)
        self._tasks[connector, task] = replace(done, failed_at_ms=self._now_ms())

    def _rebalance(self, event: events.Rebalancing | events.Rebalanced) -> None:
        before = self._rebalances or Rebalances()
        if isinstance(event, events.Rebalancing):
            self._rebalances = replace(before, is_under_way=True)
            return
        times, seconds = before.times, event.seconds
        times = Amounts(
            count=times.count + 1,
            total=times.total + seconds,
            least=min(times.least, seconds) if times.count else seconds,
            most=max(times.most, seconds),
        )
        self._rebalances = Rebalances(last=event, times=times)
        self._rebalanced_at = self._monotonic()

    def _task(self, connector: str, task: int) -> TaskTotals:
        nothing = TaskCounts(task=task)
        return self._tasks.get((connector, task), TaskTotals(now=nothing, before=nothing))

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)


def _bad(counts: TaskCounts) -> int:
    return counts.skipped + counts.dead_lettered


def _summed(done: TaskTotals) -> TaskCounts:
    """The totals since the worker began; the amounts describe one micro-batch."""
    totals: dict[str, Any] = {name: done.total(operator.attrgetter(name)) for name in _TOTALS}
    return TaskCounts(task=done.now.task, **totals)
