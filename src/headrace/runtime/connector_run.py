"""The run of one connector, on a thread of its own: start, rounds, and a stop or a failure."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections.abc import Callable
from dataclasses import replace

from headrace.config.connector_config import connector_version
from headrace.connect.connector import PlannedConnector, SourceConnector
from headrace.connect.errors import ConnectError, ReplanError, RetriableError
from headrace.herder.answers import State
from headrace.observe.events import ConnectorFailed, ConnectorStarted, ConnectorStopped, Waiting
from headrace.observe.log_format import hide_in_logs, in_log_context
from headrace.observe.secret_masking import masking_listener, without_secrets
from headrace.runtime.backoff import Backoff
from headrace.runtime.fencing import Ownership
from headrace.runtime.rounds import Rounds
from headrace.runtime.run_context import DriverContext, RunContext
from headrace.runtime.runs import RunWatcher
from headrace.runtime.services import MembershipError, RunSpec, Services
from headrace.runtime.task_status import StatusBoard, TaskList
from headrace.task.connector_spec import SenderKind

_log = logging.getLogger(__name__)

_SENT_BY_CLIENT = (
    "Connector %s: the client library's producer sends its records, because headrace's own sender cannot have all of the "
    "producer's settings (%s). To send with headrace's own, which needs less CPU for each record, leave them out; to send with "
    "the client library without this line, set headrace.sender to client."
)
_NOT_FOR_GROUPS = (
    "Connector %s: settings of its producer have no effect (%s). Its positions are a consumer group on the target, and only "
    "headrace's own sender commits those: leave the settings out."
)


class ConnectorRun:
    """Runs one connector on a thread of its own until it is stopped, has failed, or is done (*once*)."""

    def __init__(
        self,
        spec: RunSpec,
        services: Services,
        *,
        watcher: RunWatcher,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watcher = watcher
        self._run_context = _make_run_context(spec, services, self._watcher, clock)
        self._clock = clock
        self._connector: SourceConnector | None = None
        # A daemon: a stop during an outage must not keep the process alive.
        self._thread = threading.Thread(
            target=in_log_context(self._run), name=f"headrace-{spec.name}", daemon=True
        )
        self._failure: Exception | None = None

    @property
    def name(self) -> str:
        """See ``ConnectorSpec.name``."""
        return self._run_context.spec.name

    @property
    def failure(self) -> Exception | None:
        """Why the connector has failed, or why it does not read a part of its source while it runs."""
        return self._failure or self._run_context.statuses.failure_in_part

    def start(self) -> None:
        """Start the connector's thread."""
        spec = self._run_context.spec
        hide_in_logs(spec.secrets.values)
        if spec.not_by_wire is not None:
            by_wire = spec.sender is SenderKind.WIRE
            _log.log(
                logging.WARNING if by_wire else logging.INFO,
                _NOT_FOR_GROUPS if by_wire else _SENT_BY_CLIENT,
                spec.name,
                spec.secrets.masked(spec.not_by_wire),
            )
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the connector to stop; returns at once."""
        self._run_context.stopping.set()
        self._run_context.woken.set()

    def silence(self) -> None:
        """Make the run write no status from now on: the caller writes the connector's status."""
        self._run_context.statuses.silence()

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the connector has ended; returns whether it has."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._until(self._start_connector)
            if not self._run_context.stopping.is_set():
                self._until(Rounds(self._run_context, clock=self._clock).run_next)
            self._run_context.context.raise_if_failed()
            self._raise_if_failed_in_part()
            self._finish()
        except Exception as error:  # noqa: BLE001 (the connector's status shows any error)
            self._fail(error)
        finally:
            self._stop_connector()
            self._watcher.has_ended(self.failure)

    def _raise_if_failed_in_part(self) -> None:
        """Raise why a part of the source was not read, unless the run is stopped before its end."""
        failure = self._run_context.statuses.failure_in_part
        if failure is not None and not self._run_context.stopping.is_set():
            raise failure

    def _until(self, act: Callable[[], bool]) -> None:
        """Repeat *act* until it is done, with pauses after retriable errors, or until the run is to stop."""
        while not self._run_context.stopping.is_set():
            self._run_context.context.raise_if_failed()
            if self._try(act):
                return

    def _try(self, act: Callable[[], bool]) -> bool:
        try:
            return act()
        except (RetriableError, ReplanError) as error:
            self._watcher.has_begun()
            waiting = Waiting(
                connector=self.name,
                reason=str(error),
                is_shared=isinstance(error, MembershipError),
            )
            self._run_context.services.emit(waiting)
            self._run_context.backoff.pause()
            return False

    def _start_connector(self) -> bool:
        """Start the connector; always returns ``True``. After a retriable error the next try uses a new instance."""
        run_context = self._run_context
        run_context.services.prepare(run_context.spec)
        connector = self._connector = run_context.spec.connector
        try:
            connector.initialize(run_context.context)
            connector.start(run_context.spec.props)
            if isinstance(connector, PlannedConnector):
                run_context.tasks.report(
                    connector, [run_context.spec.props] * run_context.ownership.tasks
                )
        except (RetriableError, ReplanError):
            self._stop_connector()
            self._run_context = _with_new_connector(run_context)
            raise
        run_context.statuses.put(None, State.RUNNING)
        run_context.services.emit(ConnectorStarted(connector=self.name))
        self._watcher.has_begun()
        return True

    def _stop_connector(self) -> None:
        connector, self._connector = self._connector, None
        try:
            if connector is not None:
                connector.stop()
        except Exception:  # noqa: BLE001 (the run has ended already; the error can only be logged)
            _log.exception("stop of %s raised", type(connector).__name__)

    def _finish(self) -> None:
        try:
            self._run_context.ownership.release()
        except RetriableError as error:
            _log.warning("%s The next start of %s will fence.", error, self.name)
        self._run_context.statuses.unassign_tasks()
        self._run_context.statuses.put(None, State.UNASSIGNED)
        self._run_context.services.emit(ConnectorStopped(connector=self.name))

    def _fail(self, error: Exception) -> None:
        error = self._failure = without_secrets(self._run_context.spec.secrets, error)
        trace = "".join(traceback.format_exception(error))
        # A ConnectError says what is wrong; only unexpected errors need a trace.
        shown_trace = None if isinstance(error, ConnectError) else trace
        self._run_context.services.emit(
            ConnectorFailed(connector=self.name, reason=str(error), trace=shown_trace)
        )
        try:
            self._run_context.statuses.unassign_tasks()
            self._run_context.statuses.put(None, State.FAILED, trace=trace)
        except Exception as also:  # noqa: BLE001 (the failure is already reported and must not be replaced)
            _log.warning("The status of %s could not be written: %s", self.name, also)
        try:
            self._run_context.ownership.release()
        except Exception as also:  # noqa: BLE001 (as above)
            _log.warning("%s The next start of %s will fence.", also, self.name)


def _make_run_context(
    spec: RunSpec, services: Services, watcher: RunWatcher, clock: Callable[[], float]
) -> RunContext:
    services = replace(services, emit=masking_listener(services.emit, spec.secrets))
    stopping, woken = threading.Event(), threading.Event()
    version = connector_version(type(spec.connector))
    statuses = StatusBoard(spec.name, services, version=version, secrets=spec.secrets)
    return RunContext(
        spec=spec,
        services=services,
        context=_context(spec, services, woken),
        ownership=Ownership(spec, services, clock=clock),
        statuses=statuses,
        tasks=TaskList(spec, statuses, watcher),
        backoff=Backoff(stopping),
        stopping=stopping,
        woken=woken,
    )


def _with_new_connector(run_context: RunContext) -> RunContext:
    """*run_context* with a new connector instance; what threads of the old one still report is ignored."""
    spec = run_context.spec
    return replace(
        run_context,
        spec=replace(spec, connector=type(spec.connector)()),
        context=_context(spec, run_context.services, run_context.woken),
    )


def _context(spec: RunSpec, services: Services, woken: threading.Event) -> DriverContext:
    return DriverContext(services.offsets.of(spec), woken, spec.target, services.command_options)
