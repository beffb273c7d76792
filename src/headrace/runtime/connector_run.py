"""One connector while it runs, on a thread of its own: it is started, plays rounds, and leaves or fails."""

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
from headrace.observe.log_format import hide_in_logs
from headrace.observe.secret_masking import hiding, without_secrets
from headrace.runtime.fencing import Ownership
from headrace.runtime.rounds import Rounds
from headrace.runtime.run_context import Backoff, DriverContext, RunContext
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.task_status import NoRunWatcher, RunWatcher, StatusBoard, TaskList

_log = logging.getLogger(__name__)


class ConnectorRun:
    """Runs one connector on a thread of its own until it is stopped, has failed, or is through (*once*)."""

    def __init__(
        self,
        spec: RunSpec,
        services: Services,
        *,
        watcher: RunWatcher | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._watcher = watcher or NoRunWatcher()
        self._parts = _parts(spec, services, self._watcher, clock)
        self._clock = clock
        self._connector: SourceConnector | None = None
        # A daemon: a stop during an outage must not hold the process beyond its time.
        self._thread = threading.Thread(target=self._run, name=f"headrace-{spec.name}", daemon=True)
        self.failure: Exception | None = None

    @property
    def name(self) -> str:
        """The connector's name."""
        return self._parts.spec.name

    def start(self) -> None:
        """Start the connector's thread."""
        hide_in_logs(self._parts.spec.hidden.values)
        self._thread.start()

    def ask_to_stop(self) -> None:
        """Ask the connector to stop; returns at once."""
        self._parts.stopping.set()
        self._parts.woken.set()

    def silence(self) -> None:
        """Let the run write no status from now on; whoever asks it to end says how the connector is."""
        self._parts.statuses.silence()

    def join(self, timeout_seconds: float | None = None) -> bool:
        """Wait until the connector has ended; whether it has."""
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._until(self._start_connector)
            if not self._parts.stopping.is_set():
                self._until(Rounds(self._parts, clock=self._clock).play)
            self._parts.context.raise_if_failed()
            self._leave()
        except Exception as error:  # noqa: BLE001 (whatever it was, the connector's status shows it)
            self._fail(error)
        finally:
            self._stop_connector()
            self._watcher.has_ended(self.failure)

    def _until(self, act: Callable[[], bool]) -> None:
        """Do it again until it is through, waiting out what passes, or until the run is to stop."""
        while not self._parts.stopping.is_set():
            self._parts.context.raise_if_failed()
            if self._patiently(act):
                return

    def _patiently(self, act: Callable[[], bool]) -> bool:
        try:
            return act()
        except (RetriableError, ReplanError) as error:
            self._watcher.has_begun()
            self._parts.services.emit(Waiting(connector=self.name, reason=str(error)))
            self._parts.backoff.pause()
            return False

    def _start_connector(self) -> bool:
        """Start the connector; always true. One that has to be started later will be a new instance."""
        parts = self._parts
        parts.services.prepare(parts.spec)
        connector = self._connector = parts.spec.connector
        try:
            connector.initialize(parts.context)
            connector.start(parts.spec.props)
        except (RetriableError, ReplanError):
            self._stop_connector()
            self._parts = _again(parts)
            raise
        parts.statuses.put(None, State.RUNNING)
        parts.services.emit(ConnectorStarted(connector=self.name))
        self._watcher.has_begun()
        if isinstance(connector, PlannedConnector):
            parts.tasks.report(connector, [parts.spec.props] * parts.ownership.slots)
        return True

    def _stop_connector(self) -> None:
        connector, self._connector = self._connector, None
        try:
            if connector is not None:
                connector.stop()
        except Exception:  # noqa: BLE001 (it has ended already; what is left is to tell)
            _log.exception("stop of %s raised", type(connector).__name__)

    def _leave(self) -> None:
        try:
            self._parts.ownership.let_go()
        except RetriableError as error:
            _log.warning("%s The next start of %s does it.", error, self.name)
        self._parts.statuses.unassign_tasks()
        self._parts.statuses.put(None, State.UNASSIGNED)
        self._parts.services.emit(ConnectorStopped(connector=self.name))

    def _fail(self, error: Exception) -> None:
        error = self.failure = without_secrets(self._parts.spec.hidden, error)
        trace = "".join(traceback.format_exception(error))
        # What headrace raises says what is wrong; a trace is for what no one thought of.
        told = None if isinstance(error, ConnectError) else trace
        self._parts.services.emit(
            ConnectorFailed(connector=self.name, reason=str(error), trace=told)
        )
        try:
            self._parts.statuses.unassign_tasks()
            self._parts.statuses.put(None, State.FAILED, trace=trace)
        except Exception as also:  # noqa: BLE001 (the reason has been told; this must not take its place)
            _log.warning("The status of %s could not be written: %s", self.name, also)
        try:
            self._parts.ownership.let_go()
        except Exception as also:  # noqa: BLE001 (as above)
            _log.warning("%s The next start of %s does it.", also, self.name)


def _parts(
    spec: RunSpec, services: Services, watcher: RunWatcher, clock: Callable[[], float]
) -> RunContext:
    services = replace(services, emit=hiding(services.emit, spec.hidden))
    stopping, woken = threading.Event(), threading.Event()
    version = connector_version(type(spec.connector))
    statuses = StatusBoard(spec.name, services, version=version, hidden=spec.hidden)
    return RunContext(
        spec=spec,
        services=services,
        context=DriverContext(services.offsets.of(spec), woken),
        ownership=Ownership(spec, services, clock=clock),
        statuses=statuses,
        tasks=TaskList(spec, statuses, watcher),
        backoff=Backoff(stopping),
        stopping=stopping,
        woken=woken,
    )


def _again(parts: RunContext) -> RunContext:
    """With a new instance of the connector; what the old one's own threads still say is no one's business."""
    spec = parts.spec
    return replace(
        parts,
        spec=replace(spec, connector=type(spec.connector)()),
        context=DriverContext(parts.services.offsets.of(spec), parts.woken),
    )
