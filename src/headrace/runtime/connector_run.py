"""One connector while it runs: fence, read offsets, plan, run a micro-batch, and again."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable, Sequence

from headrace.connect.connector import PlannedConnector, PlanRequest, SourceConnector
from headrace.connect.errors import (
    ConnectError,
    ReplanError,
    RetriableError,
    TaskFailedError,
)
from headrace.connect.task import Offsets
from headrace.observe.events import (
    Committed,
    ConnectorFailed,
    ConnectorIdle,
    ConnectorStarted,
    ConnectorStopped,
    MicroBatchEnded,
    MicroBatchStarted,
    Replanned,
    TaskFailed,
    Waiting,
)
from headrace.runtime.batch_run import BatchResult, BatchRun
from headrace.runtime.driver_context import DriverContext
from headrace.runtime.fencing import ids_to_fence
from headrace.runtime.idle_hook import idle_update
from headrace.runtime.micro_batch import MicroBatch
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.planning import checked
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.work import check_room, planned_works, polled_works
from headrace.slot.work import SlotWork
from headrace.storage.protocols import Status, TaskCount

_log = logging.getLogger(__name__)

# A second micro-batch right after a lost one often loses for the same reason.
_FIRST_BACKOFF_SECONDS = 0.25
_LAST_BACKOFF_SECONDS = 10.0


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
        self._dirty = True
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
        connector = self._spec.connector
        try:
            connector.initialize(self._context)
            connector.start(self._spec.props)
            self._put_status(None, "RUNNING")
            self._services.tell(ConnectorStarted(connector=self.name))
            while not self._stopping.is_set():
                self._context.raise_if_failed()
                if self._patiently(self._round):
                    break
            self._leave()
        except Exception as error:  # noqa: BLE001 (whatever it was, the connector's status shows it)
            self._fail(error)
        finally:
            _stop(connector)

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
        if self._dirty:
            self._take_over()
        offsets = self._services.offsets.current(self.name)
        self._context.see(offsets)
        if isinstance(self._spec.connector, PlannedConnector):
            return self._planned_round(self._spec.connector, offsets)
        return self._polled_round(self._spec.connector, offsets)

    def _take_over(self) -> None:
        """Make every earlier owner unable to write, and remember how many there may be of us."""
        services, count = self._services, self._slots()
        stored = services.configs.task_count(self.name)
        if self._spec.exactly_once:
            ids = ids_to_fence(services.group_id, self.name, stored=stored, current=count)
            services.fence(self._spec, ids)
        services.configs.put_task_count(self.name, TaskCount(slots=count, clean=False))
        self._dirty = False

    def _slots(self) -> int:
        return min(self._spec.max_tasks, self._services.capacity.slots)

    def _planned_round(self, connector: PlannedConnector, offsets: OffsetSnapshot) -> bool:
        slots = self._slots()
        plan = checked(
            connector.plan(PlanRequest(slots=slots, offsets=offsets)),
            connector=self.name,
            slots=slots,
        )
        if plan.offsets:
            # Before the work: slots commit on their own, and one of them must not be ahead of these.
            self._commit(plan.offsets)
        if plan.has_work():
            works = planned_works(
                self._spec, plan, group_id=self._services.group_id, timing=self._services.timing
            )
            self._micro_batch(works, offsets, total_bytes=plan.total_bytes)
            return False
        if plan.offsets:
            return False
        return self._services.once or self._idle(offsets)

    def _idle(self, offsets: OffsetSnapshot) -> bool:
        self._services.tell(ConnectorIdle(connector=self.name))
        if self._clock() >= self._flushed_at + self._services.timing.flush_interval:
            self._flushed_at = self._clock()
            update = idle_update(self._spec, offsets)
            if update:
                self._commit(update)
        self._wait_for_work()
        return False

    def _commit(self, offsets: Offsets) -> None:
        # What a failure leaves open is ended by fencing, before offsets are read again.
        self._dirty = True
        self._services.commit_offsets(self._spec, offsets)
        self._dirty = False
        self._services.tell(Committed(connector=self.name, offsets=len(offsets)))

    def _wait_for_work(self) -> None:
        self._woken.wait(self._services.timing.idle_poll)
        if not self._stopping.is_set():
            self._woken.clear()

    def _polled_round(self, connector: SourceConnector, offsets: OffsetSnapshot) -> bool:
        has_work = connector.has_work(offsets)
        probed = has_work is not None
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
        # Whoever can be probed is asked again; of others, an idle end is all that can be known.
        return self._services.once and not probed and result is not None and result.idle()

    def _micro_batch(
        self, works: Sequence[SlotWork], offsets: OffsetSnapshot, *, total_bytes: int | None
    ) -> BatchResult | None:
        if not self._has_room(len(works)):
            return None
        services = self._services
        batch = MicroBatch(works, offsets.known(), run=services.run_id)
        run = BatchRun(self._spec, services, batch, stopping=self._stopping)
        try:
            services.tell(
                MicroBatchStarted(connector=self.name, slots=len(works), total_bytes=total_bytes)
            )
            for work in works:
                self._put_status(work.task, "RUNNING")
            self._dirty = True
            result = run.run()
        finally:
            if not run.has_started:
                services.capacity.give_back(len(works))
        self._dirty = not result.clean
        self._judge(result)
        return result

    def _has_room(self, count: int) -> bool:
        capacity = self._services.capacity
        if capacity.take(count, give_up=lambda: True):
            return True
        self._services.tell(
            Waiting(connector=self.name, reason=f"slots are taken; it needs {count} at once")
        )
        return capacity.take(count, give_up=self._stopping.is_set)

    def _judge(self, result: BatchResult) -> None:
        self._services.tell(
            MicroBatchEnded(connector=self.name, committed_records=result.committed_records)
        )
        failed = result.failed()
        if failed:
            for task, report in failed:
                self._put_status(task, "FAILED", trace=report.trace)
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
        if reason and not self._stopping.is_set():
            self._services.tell(Replanned(connector=self.name, reason=reason))
            self._back_off()

    def _leave(self) -> None:
        """Say that nothing of this connector can write any more, if that is so."""
        try:
            if self._dirty and self._spec.exactly_once:
                self._take_over()
            count = TaskCount(slots=self._slots(), clean=True)
            self._services.configs.put_task_count(self.name, count)
        except RetriableError as error:
            _log.warning("%s The next start of %s does it.", error, self.name)
        self._put_status(None, "UNASSIGNED")
        self._services.tell(ConnectorStopped(connector=self.name))

    def _fail(self, error: Exception) -> None:
        self.failure = error
        trace = "".join(traceback.format_exception(error))
        self._put_status(None, "FAILED", trace=trace)
        # What headrace raises says what is wrong; a trace is for what nobody thought of.
        told = None if isinstance(error, ConnectError) else trace
        self._services.tell(ConnectorFailed(connector=self.name, reason=str(error), trace=told))

    def _put_status(self, task: int | None, state: str, trace: str | None = None) -> None:
        self._services.statuses.put(
            self.name, task, Status(state=state, worker_id=self._services.worker_id, trace=trace)
        )


def _stop(connector: SourceConnector) -> None:
    try:
        connector.stop()
    except Exception:  # noqa: BLE001 (it has ended already; what is left is to tell)
        _log.exception("stop of %s raised", type(connector).__name__)
