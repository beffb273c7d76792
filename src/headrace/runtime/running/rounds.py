"""Rounds of a connector that has been started: read offsets, plan, run a micro-batch, or wait for work."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from headrace.connect.connector import PlannedConnector, PlanRequest, SourceConnector
from headrace.observe.events import ConnectorIdle, OffsetsMoved, Waiting
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.running.batch_supervisor import BatchSupervisor
from headrace.runtime.running.idle_hook import idle_updates
from headrace.runtime.running.planning import checked
from headrace.runtime.running.rests import Rests
from headrace.runtime.running.run_parts import RunParts
from headrace.runtime.running.standstill import Standstill
from headrace.runtime.running.work import check_room, planned_works, polled_works

# To ask for the end of the offsets topic costs more than all else that an idle round does. Nobody but this run
# writes the connector's offsets while it has them, so this is only how soon an outage is seen.
_KEEP_SECONDS = 10.0
_STANDS_STILL = (
    "what it planned was done without committing a record or an offset, and it plans work again; each "
    "time it is tried less soon. Look why its tasks find nothing, or its plan is not empty."
)


class Rounds:
    """The rounds of one connector. Used by its thread."""

    def __init__(self, parts: RunParts, *, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._spec = parts.spec
        self._services = parts.services
        self._batches = BatchSupervisor(parts)
        self._standstill = Standstill()
        timing = self._services.timing
        self._rests = Rests(first_seconds=timing.first_rest, longest_seconds=timing.longest_rest)
        self._clock = clock
        self._flushed_at = clock()
        self._seen_at = clock()
        self._kept: OffsetSnapshot | None = None
        """What the round before has seen, if it was idle."""

    def play(self) -> bool:
        """One round; whether the connector is through."""
        ownership = self._parts.ownership
        if ownership.dirty:
            ownership.take_over(give_up=self._parts.stopping.is_set)
        is_kept = self._kept is not None and self._clock() < self._seen_at + _KEEP_SECONDS
        offsets = self._kept if self._kept is not None and is_kept else self._seen()
        # Only an idle round leaves something to keep, and none that ends with an error.
        self._kept = None
        if isinstance(self._spec.connector, PlannedConnector):
            return self._planned(self._spec.connector, offsets, is_kept=is_kept)
        return self._polled(self._spec.connector, offsets, is_kept=is_kept)

    def _seen(self) -> OffsetSnapshot:
        """The committed offsets, now, for the connector as well."""
        offsets = self._services.offsets.of(self._spec).current()
        self._parts.context.see(offsets)
        self._seen_at = self._clock()
        return offsets

    def _have_moved(self, offsets: OffsetSnapshot) -> bool:
        """Whether somebody has committed since: another process may have taken this one's place for a while."""
        # A store makes a new snapshot only when there is something new.
        return self._seen().known() is not offsets.known()

    def _planned(
        self, connector: PlannedConnector, offsets: OffsetSnapshot, *, is_kept: bool
    ) -> bool:
        slots = self._parts.ownership.slots
        self._parts.context.answer_requests()
        plan = checked(
            connector.plan(PlanRequest(slots=slots, offsets=offsets)),
            connector=self._spec.name,
            slots=slots,
        )
        if is_kept and (plan.offsets or plan.has_work()) and self._have_moved(offsets):
            return False
        if plan.offsets:
            # Before the work: slots commit on their own, and one of them must not be ahead of these.
            self._parts.ownership.commit(plan.offsets)
        if plan.has_work():
            if self._stands_still(offsets):
                return False
            works = planned_works(
                self._spec,
                plan,
                group_id=self._services.group_id,
                timing=self._services.timing,
                copies_offsets=self._services.offsets.of(self._spec).are_copied(),
            )
            seen = self._seen() if plan.offsets else offsets
            result = self._batches.run(
                works, seen, total_bytes=plan.total_bytes, has_more=plan.has_more
            )
            self._standstill.ended(result, offsets)
            return False
        if plan.offsets:
            return False
        if plan.ask_again_after is not None:
            return self._idle(offsets, at_most=plan.ask_again_after)
        return self._services.once or self._idle(offsets)

    def _stands_still(self, offsets: OffsetSnapshot) -> bool:
        """Whether the last micro-batch changed nothing; another one has been put off by then."""
        if not self._standstill.must_wait(offsets):
            return False
        if self._standstill.is_news():
            self._services.tell(Waiting(connector=self._spec.name, reason=_STANDS_STILL))
        self._parts.backoff.pause()
        return True

    def _polled(
        self, connector: SourceConnector, offsets: OffsetSnapshot, *, is_kept: bool
    ) -> bool:
        rest = self._rests.due(offsets)
        if rest is not None:
            return self._rest(rest, offsets)
        has_work = connector.has_work(offsets)
        probed = has_work is not None
        self._parts.context.answer_requests()
        works = polled_works(
            self._spec,
            group_id=self._services.group_id,
            timing=self._services.timing,
            once=self._services.once,
            copies_offsets=self._services.offsets.of(self._spec).are_copied(),
        )
        check_room(self._spec.name, len(works), slots=self._services.capacity.slots)
        self._parts.tasks.tell(connector, [work.config for work in works])
        if not works or (probed and not has_work):
            return self._services.once or self._idle(offsets)
        if is_kept and self._have_moved(offsets):
            return False
        result = self._batches.run(works, offsets)
        self._rests.ended(result, offsets)
        if probed or self._parts.context.wants_reconfiguration:
            return False
        # Whoever can be probed is asked again; of others, an idle end is all that can be known.
        return self._services.once and result is not None and result.idle()

    def _rest(self, seconds: float, offsets: OffsetSnapshot) -> bool:
        self._services.tell(ConnectorIdle(connector=self._spec.name))
        until = self._clock() + seconds
        while self._clock() < until:
            if self._move_if_due(offsets):
                offsets = self._seen()
            now = self._clock()
            # A flush interval of milliseconds must not make a rest a busy one.
            until_flush = max(self._services.timing.idle_poll, self._next_flush_at() - now)
            if self._wait_for_work(min(until - now, until_flush)):
                break
        return False

    def _idle(self, offsets: OffsetSnapshot, *, at_most: float = math.inf) -> bool:
        self._services.tell(ConnectorIdle(connector=self._spec.name))
        self._kept = None if self._move_if_due(offsets) else offsets
        self._wait_for_work(min(at_most, self._services.timing.idle_poll))
        return False

    def _next_flush_at(self) -> float:
        return self._flushed_at + self._services.timing.flush_interval

    def _move_if_due(self, offsets: OffsetSnapshot) -> bool:
        """Once per flush interval, commit what idle tasks move; whether *offsets* are old now."""
        if self._clock() < self._next_flush_at():
            return False
        self._flushed_at = self._clock()
        updates = idle_updates(self._spec, offsets, self._task_configs())
        if not updates:
            return False
        self._parts.ownership.commit(
            {partition: offset for each in updates.values() for partition, offset in each.items()}
        )
        for task, each in updates.items():
            self._services.tell(
                OffsetsMoved(connector=self._spec.name, task=task, offsets=len(each))
            )
        return True

    def _task_configs(self) -> Sequence[Mapping[str, str]]:
        connector = self._spec.connector
        if isinstance(connector, PlannedConnector):
            return [self._spec.props]
        return connector.task_configs(self._spec.max_tasks)

    def _wait_for_work(self, seconds: float) -> bool:
        """Wait, unless there is a reason to look sooner; whether there was one."""
        is_woken = self._parts.woken.wait(max(0.0, seconds))
        if not self._parts.stopping.is_set():
            self._parts.woken.clear()
        return is_woken
