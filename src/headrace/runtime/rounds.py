"""The rounds of a started connector: read offsets, plan, run a micro-batch, or wait for work and move offsets (KIP-910)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.connect.connector import Plan, PlannedConnector, PlanRequest, SourceConnector
from headrace.connect.errors import ConnectError, PartitionError
from headrace.connect.partition import OffsetReader, SourcePartition
from headrace.connect.task import Offsets, SourceTask, Split, TransactionContext
from headrace.observe.events import (
    ConnectorFailedInPart,
    ConnectorIdle,
    ConnectorRecovered,
    OffsetsMoved,
    Waiting,
)
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.assignment import check_room, checked_plan, planned_works, polled_works
from headrace.runtime.backoff import NoProgressGuard, PollBackoff
from headrace.runtime.batch_runner import BatchSupervisor
from headrace.runtime.run_context import RunContext
from headrace.runtime.services import RunSpec
from headrace.task.connector_spec import BoundaryKind
from headrace.task.offset_updates import changed, checked_update, raise_failed_update, read_only
from headrace.task.slot_work import SlotWork
from headrace.task.transaction_boundary import BoundaryRequests

_log = logging.getLogger(__name__)

# Querying the end of the offsets topic costs more than everything else in an idle round. Only this run writes the
# connector's offsets while it owns them, so this only determines how soon an outage is noticed.
_KEEP_SECONDS = 10.0
_NO_PROGRESS = (
    "its last plan was executed without committing a record or an offset, and it plans work again; the pauses between "
    "attempts grow. Check why its tasks find nothing, or why its plan is not empty."
)


class Rounds:
    """The rounds of one connector. Used by its thread."""

    def __init__(self, run_context: RunContext, *, clock: Callable[[], float]) -> None:
        self._run_context = run_context
        self._spec = run_context.spec
        self._services = run_context.services
        self._batches = BatchSupervisor(run_context)
        self._no_progress = NoProgressGuard()
        timing = self._services.timing
        self._poll_backoff = PollBackoff(
            first_seconds=timing.poll_backoff_initial, longest_seconds=timing.poll_backoff_max
        )
        self._clock = clock
        self._flushed_at = clock()
        self._seen_at = clock()
        self._kept: OffsetSnapshot | None = None
        """The offsets that the previous round read, if it was idle."""
        self._failed: Mapping[SourcePartition, PartitionError] = {}
        """The source partitions that the last micro-batch could not read on, and why, until a plan was made without them."""

    def run_next(self) -> bool:
        """Run one round; returns whether the connector is done."""
        ownership = self._run_context.ownership
        if ownership.dirty:
            ownership.take_over(give_up=self._run_context.stopping.is_set)
        ownership.prove_if_due()
        is_kept = self._kept is not None and self._clock() < self._seen_at + _KEEP_SECONDS
        offsets = self._kept if self._kept is not None and is_kept else self._read_offsets()
        # Only an idle round keeps its offsets, and none that ends with an error.
        self._kept = None
        if isinstance(self._spec.connector, PlannedConnector):
            return self._planned(self._spec.connector, offsets, is_kept=is_kept)
        return self._polled(self._spec.connector, offsets, is_kept=is_kept)

    def _read_offsets(self) -> OffsetSnapshot:
        """Read the committed offsets; the connector's context shows them from then on."""
        offsets = self._services.offsets.of(self._spec).current()
        self._run_context.context.see(offsets)
        self._seen_at = self._clock()
        return offsets

    def _have_moved(self, offsets: OffsetSnapshot) -> bool:
        """Whether others have committed since: another process may have replaced this one for a while."""
        # A store makes a new snapshot only when something has changed.
        return self._read_offsets().known() is not offsets.known()

    def _planned(
        self, connector: PlannedConnector, offsets: OffsetSnapshot, *, is_kept: bool
    ) -> bool:
        slots = self._run_context.ownership.slots
        self._run_context.context.answer_requests()
        failed = self._failed
        request = PlanRequest(slots=slots, offsets=offsets, unnamed=offsets.unnamed, failed=failed)
        plan = checked_plan(
            connector.plan(request), connector=self._spec.name, slots=slots, failed=failed
        )
        self._failed = {}
        self._note_failure(plan.failure)
        if is_kept and (plan.offsets or plan.has_work()) and self._have_moved(offsets):
            return False
        if plan.offsets:
            # Before the work, because slots commit on their own, and none of them must be ahead of these offsets.
            self._run_context.ownership.commit(plan.offsets, planned_from=offsets)
        if plan.has_work():
            self._run_plan(plan, offsets)
            return False
        if plan.offsets:
            return False
        if plan.ask_again_after is not None:
            return self._idle(offsets, at_most=plan.ask_again_after)
        return self._services.once or self._idle(offsets)

    def _note_failure(self, failure: ConnectError | None) -> None:
        statuses, name = self._run_context.statuses, self._spec.name
        told = _lines(statuses.failure_in_part)
        if not statuses.fails_in_part(failure):
            return
        if failure is None:
            self._services.emit(ConnectorRecovered(connector=name))
        for line in _lines(statuses.failure_in_part):
            if line not in told:
                self._services.emit(ConnectorFailedInPart(connector=name, reason=line))

    def _placed(self) -> RunSpec:
        """The spec with the current target of its tasks' offsets."""
        target = self._services.offsets.of(self._spec).target(self._spec.offsets)
        return replace(self._spec, offsets=target)

    def _run_plan(self, plan: Plan, offsets: OffsetSnapshot) -> None:
        if self._lacks_progress(offsets):
            return
        planned = planned_works(
            self._placed(),
            plan,
            group_id=self._services.group_id,
            timing=self._services.timing,
        )
        works = self._handed_over(planned)
        seen = self._read_offsets() if plan.offsets or works is not planned else offsets
        if _have_moved_beside(plan, offsets, seen):
            return
        result = self._batches.run(
            works,
            seen,
            total_bytes=plan.total_bytes,
            has_more=plan.has_more,
            objects=plan.objects,
        )
        self._no_progress.ended(result, offsets, followed=plan.followed)
        self._failed = {} if result is None else result.failed_partitions()

    def _handed_over(self, works: Sequence[SlotWork]) -> Sequence[SlotWork]:
        """*works* with their producers' identities; the same, if they get these themselves."""
        ownership = self._run_context.ownership
        return ownership.handed_over(works, give_up=self._run_context.stopping.is_set)

    def _lacks_progress(self, offsets: OffsetSnapshot) -> bool:
        """Whether the last micro-batch changed nothing; if so, pauses before returning."""
        if not self._no_progress.must_wait(offsets):
            return False
        if self._no_progress.is_unreported():
            self._services.emit(Waiting(connector=self._spec.name, reason=_NO_PROGRESS))
        self._run_context.backoff.pause()
        return True

    def _polled(
        self, connector: SourceConnector, offsets: OffsetSnapshot, *, is_kept: bool
    ) -> bool:
        rest = self._poll_backoff.due(offsets)
        if rest is not None:
            return self._pause_while_idle(rest, offsets)
        has_work = connector.has_work(offsets)
        probed = has_work is not None
        self._run_context.context.answer_requests()
        works = polled_works(
            self._placed(),
            group_id=self._services.group_id,
            timing=self._services.timing,
            once=self._services.once,
        )
        # Before they are counted: in a group, another worker may have room for them.
        self._run_context.tasks.report(connector, [work.config for work in works])
        check_room(self._spec.name, len(works), slots=self._services.capacity.slots)
        if not works or (probed and not has_work):
            return self._services.once or self._idle(offsets)
        handed_over = self._handed_over(works)
        if (is_kept or handed_over is not works) and self._have_moved(offsets):
            return False
        result = self._batches.run(handed_over, offsets)
        self._poll_backoff.ended(result, offsets)
        if probed or self._run_context.context.wants_reconfiguration:
            return False
        # A connector with has_work is asked again; for others, only an idle end shows that nothing is left.
        return self._services.once and result is not None and result.idle()

    def _pause_while_idle(self, seconds: float, offsets: OffsetSnapshot) -> bool:
        self._services.emit(ConnectorIdle(connector=self._spec.name))
        until = self._clock() + seconds
        while self._clock() < until:
            if self._move_if_due(offsets):
                offsets = self._read_offsets()
            now = self._clock()
            # A flush interval of milliseconds must not turn the pause into a busy loop.
            until_flush = max(self._services.timing.idle_poll, self._next_flush_at() - now)
            if self._wait_for_work(min(until - now, until_flush)):
                break
        return False

    def _idle(self, offsets: OffsetSnapshot, *, at_most: float = math.inf) -> bool:
        self._run_context.statuses.is_idle()
        self._services.emit(ConnectorIdle(connector=self._spec.name))
        self._kept = None if self._move_if_due(offsets) else offsets
        self._wait_for_work(min(at_most, self._services.timing.idle_poll))
        return False

    def _next_flush_at(self) -> float:
        return self._flushed_at + self._services.timing.flush_interval

    def _move_if_due(self, offsets: OffsetSnapshot) -> bool:
        """Once per flush interval, commit the offsets that idle tasks move; returns whether *offsets* are outdated."""
        if self._clock() < self._next_flush_at():
            return False
        self._flushed_at = self._clock()
        updates = idle_updates(self._spec, offsets, self._task_configs())
        if not updates:
            return False
        self._run_context.ownership.commit(
            {partition: offset for each in updates.values() for partition, offset in each.items()},
            planned_from=offsets,
        )
        for task, each in updates.items():
            self._services.emit(
                OffsetsMoved(connector=self._spec.name, task=task, offsets=len(each))
            )
        return True

    def _task_configs(self) -> Sequence[Mapping[str, str]]:
        connector = self._spec.connector
        if isinstance(connector, PlannedConnector):
            return [self._spec.props]
        return connector.task_configs(self._spec.max_tasks)

    def _wait_for_work(self, seconds: float) -> bool:
        """Wait, unless the run is woken before; returns whether it was."""
        is_woken = self._run_context.woken.wait(max(0.0, seconds))
        if not self._run_context.stopping.is_set():
            self._run_context.woken.clear()
        return is_woken


def _lines(failure: Exception | None) -> list[str]:
    return [] if failure is None else str(failure).splitlines()


def _have_moved_beside(plan: Plan, before: OffsetSnapshot, now: OffsetSnapshot) -> bool:
    """Whether an offset at which a share of *plan* begins has changed; *plan*.offsets are of other partitions."""
    partitions = (split.partition for share in plan.shares for split in share)
    return before is not now and any(before.offset(each) != now.offset(each) for each in partitions)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleContext:
    """A ``TaskContext`` of a task that is only asked for ``update_offsets``, never polled."""

    connector: str
    offsets: OffsetReader
    task: int
    transaction: TransactionContext | None = None
    splits: tuple[Split, ...] = ()
    takes_encoded: bool = False

    def stopping(self) -> bool:
        """Always ``False``: the task gets only one call."""
        return False


def idle_updates(
    spec: RunSpec, offsets: OffsetSnapshot, configs: Sequence[Mapping[str, str]]
) -> Mapping[int, Offsets]:
    """The offsets that each of the connector's tasks moves while nothing is read; tasks that move none are left out.

    There is one task for each of *configs*. It is started and stopped for the call, unless its class does not
    override the hook. If the connector defines the transaction boundaries, the hook is called only if the task
    requests a boundary while it is started. Values that *offsets* has already are left out. An exception of the
    hook is raised with exactly-once, and logged otherwise.
    """
    if spec.connector.task_class.update_offsets is SourceTask.update_offsets:
        return {}
    updates: dict[int, Offsets] = {}
    for task, config in enumerate(configs):
        requests = BoundaryRequests() if spec.boundary is BoundaryKind.CONNECTOR else None
        context = IdleContext(connector=spec.name, offsets=offsets, task=task, transaction=requests)
        asked = _asked(spec, context, config, requests)
        moved = changed(asked, offsets.offsets(asked))
        if moved:
            updates[task] = moved
    return updates


def _asked(
    spec: RunSpec,
    context: IdleContext,
    config: Mapping[str, str],
    requests: BoundaryRequests | None,
) -> Offsets:
    task = spec.connector.task_class()
    task.initialize(context)
    try:
        task.start(config)
        return _update(spec, task) if requests is None or requests.take_any() else {}
    finally:
        task.stop()


def _update(spec: RunSpec, task: SourceTask) -> Offsets:
    try:
        return checked_update(task.update_offsets(read_only({})))
    except Exception as error:  # noqa: BLE001 (raised again, or logged and retried)
        if spec.exactly_once:
            raise_failed_update(error)
        _log.exception("update_offsets of %s raised; it is called again later", spec.name)
        return {}
