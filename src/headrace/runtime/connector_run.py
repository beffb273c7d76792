"""One connector while it runs: fence, read offsets, plan, run a micro-batch, and again."""

from __future__ import annotations

import logging
import math
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace

from headrace.connect.connector import PlannedConnector, PlanRequest, SourceConnector
from headrace.connect.errors import (
    ConnectError,
    ReplanError,
    RetriableError,
    TaskFailedError,
)
from headrace.observe.events import (
    ConnectorFailed,
    ConnectorIdle,
    ConnectorStarted,
    ConnectorStopped,
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    TaskFailed,
    Waiting,
)
from headrace.runtime.batch_run import BatchResult, BatchRun
from headrace.runtime.driver_context import DriverContext
from headrace.runtime.idle_hook import idle_update
from headrace.runtime.micro_batch import MicroBatch
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.ownership import Ownership
from headrace.runtime.planning import checked
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.source_waits import SourceWaits
from headrace.runtime.standstill import Standstill
from headrace.runtime.status_board import StatusBoard
from headrace.runtime.work import check_room, planned_works, polled_works
from headrace.slot.work import SlotWork

_log = logging.getLogger(__name__)

# A second micro-batch right after a lost one often loses for the same reason.
_FIRST_BACKOFF_SECONDS = 0.25
_LAST_BACKOFF_SECONDS = 10.0
_STANDS_STILL = (
    "what it planned was done without committing a record or an offset, and it plans work again; each "
    "time it is tried less soon. Look why its tasks find nothing, or its plan is not empty."
)


class ConnectorRun:
    """Runs one connector on a thread of its own until it is stopped, has failed, or is through (*once*)."""

    def __init__(
        self, spec: RunSpec, services: Services, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec = spec
        self._services = services
        self._clock = clock
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._context = DriverContext(spec.name, services.offsets, self._woken)
        self._waits = SourceWaits()
        self._standstill = Standstill()
        self._connector: SourceConnector | None = None
        self._ownership = Ownership(spec, services, clock=clock)
        self._statuses = StatusBoard(spec.name, services)
        self._backoff = 0.0
        self._flushed_at = clock()
        # A daemon: a stop during an outage must not hold the process beyond its time.
        self._thread = threading.Thread(target=self._run, name=f"headrace-{spec.name}", daemon=True)
        self.failure: Exception | None = None

    @property
    def name(self) -> str:
        """The connector's name."""
        return self._spec.name

    def start(self) -> None:
        """Start the connector's thread."""
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the connector to stop; returns at once."""
        self._stopping.set()
        self._woken.set()

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the connector has ended; whether it has."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                if self._patiently(self._start_connector):
                    break
            while not self._stopping.is_set():
                self._context.raise_if_failed()
                if self._patiently(self._round):
                    break
            self._context.raise_if_failed()
            self._leave()
        except Exception as error:  # noqa: BLE001 (whatever it was, the connector's status shows it)
            self._fail(error)
        finally:
            self._stop_connector()

    def _start_connector(self) -> bool:
        """Start the connector; always true. One that has to be started later will be a new instance."""
        self._services.prepare(self._spec)
        connector = self._connector = self._spec.connector
        try:
            connector.initialize(self._context)
            connector.start(self._spec.props)
        except (RetriableError, ReplanError):
            self._stop_connector()
            # What the old one's own threads still say is nobody's business.
            self._context = DriverContext(self.name, self._services.offsets, self._woken)
            self._spec = replace(self._spec, connector=type(connector)())
            raise
        self._statuses.put(None, "RUNNING")
        self._services.tell(ConnectorStarted(connector=self.name))
        return True

    def _stop_connector(self) -> None:
        connector, self._connector = self._connector, None
        try:
            if connector is not None:
                connector.stop()
        except Exception:  # noqa: BLE001 (it has ended already; what is left is to tell)
            _log.exception("stop of %s raised", type(connector).__name__)

    def _patiently(self, act: Callable[[], bool]) -> bool:
        try:
            return act()
        except (RetriableError, ReplanError) as error:
            self._services.tell(Waiting(connector=self.name, reason=str(error)))
            self._back_off()
            return False

    def _back_off(self) -> None:
        self._backoff = min(max(self._backoff * 2, _FIRST_BACKOFF_SECONDS), _LAST_BACKOFF_SECONDS)
        self._stopping.wait(self._backoff)

    def _round(self) -> bool:
        """One round; whether the connector is through."""
        if self._ownership.dirty:
            self._ownership.take_over(give_up=self._stopping.is_set)
        offsets = self._seen()
        if isinstance(self._spec.connector, PlannedConnector):
            return self._planned_round(self._spec.connector, offsets)
        return self._polled_round(self._spec.connector, offsets)

    def _seen(self) -> OffsetSnapshot:
        """The committed offsets, now, for the connector as well."""
        offsets = self._services.offsets.current(self.name)
        self._context.see(offsets)
        return offsets

    def _planned_round(self, connector: PlannedConnector, offsets: OffsetSnapshot) -> bool:
        slots = self._ownership.slots
        self._context.answer_requests()
        plan = checked(
            connector.plan(PlanRequest(slots=slots, offsets=offsets)),
            connector=self.name,
            slots=slots,
        )
        if plan.offsets:
            # Before the work: slots commit on their own, and one of them must not be ahead of these.
            self._ownership.commit(plan.offsets)
        if plan.has_work():
            if self._stands_still(offsets):
                return False
            works = planned_works(
                self._spec, plan, group_id=self._services.group_id, timing=self._services.timing
            )
            seen = self._seen() if plan.offsets else offsets
            result = self._micro_batch(
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
            self._services.tell(Waiting(connector=self.name, reason=_STANDS_STILL))
        self._back_off()
        return True

    def _idle(self, offsets: OffsetSnapshot, *, at_most: float = math.inf) -> bool:
        self._services.tell(ConnectorIdle(connector=self.name))
        if self._clock() >= self._flushed_at + self._services.timing.flush_interval:
            self._flushed_at = self._clock()
            update = idle_update(self._spec, offsets)
            if update:
                self._ownership.commit(update)
        self._wait_for_work(min(at_most, self._services.timing.idle_poll))
        return False

    def _wait_for_work(self, seconds: float) -> None:
        self._woken.wait(seconds)
        if not self._stopping.is_set():
            self._woken.clear()

    def _polled_round(self, connector: SourceConnector, offsets: OffsetSnapshot) -> bool:
        has_work = connector.has_work(offsets)
        probed = has_work is not None
        self._context.answer_requests()
        works = polled_works(
            self._spec,
            group_id=self._services.group_id,
            timing=self._services.timing,
            linger=self._services.timing.linger if probed or self._services.once else None,
        )
        check_room(self.name, len(works), slots=self._services.capacity.slots)
        if not works or has_work is False:
            return self._services.once or self._idle(offsets)
        result = self._micro_batch(works, offsets, total_bytes=None)
        if probed or self._context.wants_reconfiguration:
            return False
        # Whoever can be probed is asked again; of others, an idle end is all that can be known.
        return self._services.once and result is not None and result.idle()

    def _micro_batch(
        self,
        works: Sequence[SlotWork],
        offsets: OffsetSnapshot,
        *,
        total_bytes: int | None,
        has_more: bool = False,
    ) -> BatchResult | None:
        if not self._has_room(len(works)):
            return None
        services = self._services
        batch = MicroBatch(works, offsets.known(), run=services.run_id)
        run = BatchRun(
            self._spec,
            services,
            batch,
            stopping=self._stopping,
            context=self._context,
            waits=self._waits,
        )
        try:
            services.tell(
                MicroBatchStarted(
                    connector=self.name,
                    slots=len(works),
                    total_bytes=total_bytes,
                    has_more=has_more or None,
                )
            )
            for work in works:
                self._statuses.put(work.task, "RUNNING")
            self._ownership.dirty = True
            result = run.run()
        finally:
            if not run.has_started:
                services.capacity.give_back(len(works))
        self._ownership.dirty = not result.clean
        self._judge(result, has_more=has_more)
        return result

    def _has_room(self, count: int) -> bool:
        capacity = self._services.capacity
        if capacity.take(count, give_up=lambda: True):
            return True
        self._services.tell(Queued(connector=self.name, slots=count))
        return capacity.take(count, give_up=self._is_ending)

    def _is_ending(self) -> bool:
        """Whether there is no next round: it is to stop, or the connector has reported an error."""
        return self._stopping.is_set() or self._context.has_failed

    def _judge(self, result: BatchResult, *, has_more: bool) -> None:
        self._services.tell(
            MicroBatchEnded(
                connector=self.name,
                committed_records=result.committed_records,
                has_more=has_more or None,
                dead_lettered=result.dead_lettered or None,
                skipped=result.skipped or None,
                quarantined=result.quarantined or None,
            )
        )
        failed = result.failed()
        if failed:
            for task, report in failed:
                self._statuses.failed(task, report)
                self._services.tell(
                    TaskFailed(
                        connector=self.name,
                        task=task,
                        reason=report.reason or "",
                        trace=report.trace if report.surprising else None,
                    )
                )
            task, report = failed[0]
            raise TaskFailedError(f"Task {self.name}-{task} failed: {report.reason}")
        reason = result.wants_new_plan()
        if result.committed_records:
            self._backoff = 0.0
        if reason and not self._is_ending():
            self._services.tell(Replanned(connector=self.name, reason=reason))
            self._back_off()

    def _leave(self) -> None:
        try:
            self._ownership.let_go()
        except RetriableError as error:
            _log.warning("%s The next start of %s does it.", error, self.name)
        self._statuses.unassign_tasks()
        self._statuses.put(None, "UNASSIGNED")
        self._services.tell(ConnectorStopped(connector=self.name))

    def _fail(self, error: Exception) -> None:
        self.failure = error
        trace = "".join(traceback.format_exception(error))
        # What headrace raises says what is wrong; a trace is for what nobody thought of.
        told = None if isinstance(error, ConnectError) else trace
        self._services.tell(ConnectorFailed(connector=self.name, reason=str(error), trace=told))
        try:
            self._statuses.unassign_tasks()
            self._statuses.put(None, "FAILED", trace=trace)
        except Exception as also:  # noqa: BLE001 (the reason has been told; this must not take its place)
            _log.warning("The status of %s could not be written: %s", self.name, also)
        try:
            self._ownership.let_go()
        except Exception as also:  # noqa: BLE001 (as above)
            _log.warning("%s The next start of %s does it.", also, self.name)
