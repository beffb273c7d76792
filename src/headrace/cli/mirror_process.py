"""Runs flows in one process: each a herder on a thread of its own, all of them on one data plane."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

from headrace.cli.mirror_flows import FlowWorker
from headrace.config.config_files import ConnectorFile
from headrace.config.state_file import own_state
from headrace.connect.errors import ConfigError, ConnectError
from headrace.herder.command_line import create_or_update
from headrace.herder.statuses import connector_snapshots
from headrace.herder.worker_herder import WorkerHerder
from headrace.kafka.deadline import Reminder
from headrace.observe.counts import Counts
from headrace.observe.events import EventListener, to_all
from headrace.observe.log_format import naming_in_logs
from headrace.observe.metrics import Metrics
from headrace.plugins import ValidatedConnector
from headrace.rest.config import RestConfig
from headrace.rest.listeners import Binding
from headrace.rest.server import RestServer
from headrace.runtime.engine import DataPlane
from headrace.runtime.runs import LEAVE_SECONDS
from headrace.storage.sqlite import SqliteStorage
from headrace.worker import serving, stored

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 0.2
_REMIND_SECONDS: Final = 600.0


def state_folder(file: Path, chosen: Path | None, environ: Mapping[str, str]) -> Path:
    """The folder of the flows' state files: as *chosen*, or one for each *file* below the user's state directory. Pure."""
    return own_state(file, environ) if chosen is None else chosen


def opened_state_folder(file: Path, chosen: Path | None, environ: Mapping[str, str]) -> Path:
    """The same folder, which is created unless it was *chosen*: that name may be misspelt.

    Raises :class:`~headrace.connect.errors.ConfigError` for one that does not exist, or cannot be created.
    """
    folder = state_folder(file, chosen, environ)
    if chosen is not None and not folder.is_dir():
        told = f"The folder {folder} does not exist. Create it, or correct the path."
        raise ConfigError([("--state", told)], where="The command line")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        told = f"The folder {folder} cannot be created: {error.strerror}. Give another one with --state."
        raise ConfigError([("--state", told)], where="The command line") from error
    return folder


def state_file(folder: Path, flow: str) -> Path:
    """The state file of a flow, whose name may hold any character. Pure."""
    return folder / f"{quote(flow, safe='->+@ ')}.db"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedFlow:
    """A flow with the files and addresses that only one process may have; *binding* is ``None`` if it has no listeners."""

    worker: FlowWorker
    storage: SqliteStorage
    rest: RestConfig | None
    binding: Binding | None


def opened_flows(
    workers: Sequence[FlowWorker], folder: Path, opened: ExitStack, *, once: bool
) -> Sequence[OpenedFlow]:
    """*workers* with their state files and listeners, which *opened* closes.

    Raises :class:`~headrace.connect.errors.ConfigError` when another process has one of them.
    """
    found = list[OpenedFlow]()
    for each in workers:
        storage = opened.enter_context(closing(SqliteStorage(state_file(folder, each.name))))
        rest = RestConfig.parse(each.config.originals) if each.answers and not once else None
        binding = None if rest is None else opened.enter_context(closing(Binding.of(rest)))
        found.append(OpenedFlow(worker=each, storage=storage, rest=rest, binding=binding))
    return found


class RunningFlow:
    """One flow, on a thread of its own, until it is stopped, has failed, or is done (*once*).

    With *retries_start*, one whose target is not reached in time at the start is tried again, until it gives up.
    *command_options* are those by which ``headrace offsets`` reaches its connectors, for sentences that name the command.
    """

    def __init__(
        self,
        flow: OpenedFlow,
        plane: DataPlane,
        emit: EventListener,
        *,
        once: bool,
        retries_start: bool = False,
        command_options: str = "",
    ) -> None:
        self._flow = flow
        self._plane = plane
        self._once = once
        self._retries_start = retries_start
        self._command_options = command_options
        self._counts = Counts()
        self._emit = to_all(emit, self._counts)
        self._stopping = threading.Event()
        self._herder: WorkerHerder | None = None
        # A daemon: what does not end in time is left to its leases.
        self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
        self.failure: str | None = None
        """Why the flow has failed, if it has."""

    @property
    def name(self) -> str:
        """The flow's name."""
        return self._flow.worker.name

    @property
    def grace(self) -> float:
        """How many seconds its tasks may take to end."""
        return self._flow.worker.config.task_shutdown_graceful_timeout_ms / 1e3

    @property
    def has_ended(self) -> bool:
        """Whether nothing of it runs any more."""
        return not self._thread.is_alive()

    @property
    def delay(self) -> Exception | None:
        """Why its target was not reached in time, while that is tried again, and after it has given up."""
        herder = self._herder
        return None if herder is None else herder.delay

    @property
    def failing(self) -> Sequence[str]:
        """Its connectors that do not copy everything, while it runs."""
        herder = self._herder
        return () if herder is None or self.has_ended else herder.failed()

    def start(self) -> None:
        """Start it, and return at once."""
        self._thread.start()

    def give_up(self) -> None:
        """Fail, if its target is being tried again after the start's deadline; otherwise nothing happens."""
        herder = self._herder
        if herder is not None:
            herder.give_up()

    def ask_to_stop(self) -> None:
        """Ask it to end in its grace period; returns at once. Any thread may call."""
        self._stopping.set()
        herder = self._herder
        if herder is not None:
            herder.ask_to_stop()
            herder.refuse_waiting()

    def join(self, seconds: float) -> None:
        """Wait until it has ended, at most *seconds*."""
        self._thread.join(seconds)

    def _run(self) -> None:
        with naming_in_logs(self.name):
            reason: str | None = "its thread has ended for no known reason"
            try:
                reason = self._run_phases()
            except Exception as error:  # noqa: BLE001 (the exit code and the log report any)
                reason = self._reason(error)
            finally:
                if reason is None and self.delay is not None:
                    reason = str(self.delay)
                self.failure = reason
                if reason is not None:
                    self._tell_failed(reason)

    def _tell_failed(self, reason: str) -> None:
        if self._stopping.is_set():
            # What has failed before was an error when it did.
            _log.warning(
                "The flow %s was stopped, and has not copied everything: %s", self.name, reason
            )
        else:
            _log.error("The flow %s has failed, and does not run any more: %s", self.name, reason)

    def _run_phases(self) -> str | None:
        """Run the flow to its end; returns why it has failed, if it has."""
        worker = self._flow.worker
        for connectors in worker.phases if self._once else [worker.connectors]:
            failed = self._ran(connectors)
            if failed:
                return f"its {' and '.join(failed)} failed, as logged above"
        return None

    def _reason(self, error: Exception) -> str | None:
        if isinstance(error, ConnectError):
            if not self._stopping.is_set():
                return str(error)
            # One that is stopped before it has reached Kafka ends with an error, too: a failure only if it has been late.
            _log.info("The flow %s was being stopped when it ended: %s", self.name, error)
            return None
        _log.error("The flow %s has met an error that is not expected", self.name, exc_info=error)
        return f"{type(error).__name__}: {error}"

    def _ran(self, connectors: Sequence[ValidatedConnector]) -> Sequence[str]:
        """Run *connectors* until they end or are stopped; returns the names of those that have failed."""
        flow = self._flow
        with serving(
            flow.worker.config,
            state_file=flow.storage,
            emit=self._emit,
            worker_id=self.name if flow.binding is None else flow.binding.worker_id,
            validated=connectors,
            data_plane=self._plane,
            once=self._once,
            retries_start=self._retries_start,
            command_options=self._command_options,
        ) as herder:
            self._herder = herder
            if self._stopping.is_set():
                return ()
            if flow.rest is not None and flow.binding is not None:
                return self._answers(herder, flow.rest, flow.binding)
            herder.start_only(stored(connectors))
            herder.ready()
            return list(herder.wait_for_end() if self._once else herder.wait_for_failure())

    def _answers(self, herder: WorkerHerder, rest: RestConfig, binding: Binding) -> Sequence[str]:
        """Run the flow and answer requests, by which its connectors can be repaired: only a stop ends it."""
        flow = self._flow
        files = [
            ConnectorFile(name=each.name, config=each.given) for each in flow.worker.connectors
        ]
        metrics = Metrics(self._counts, partial(connector_snapshots, herder))
        server = RestServer(herder, rest, binding=binding, metrics=metrics.text)
        herder.start(only=[each.name for each in files])
        server.start()
        try:
            for sentence in binding.sentences:
                _log.info("%s", sentence)
            create_or_update(files, herder)
            herder.ready()
            while not (self._stopping.wait(_LOOK_SECONDS) or herder.failure):
                pass
            problem = herder.failure
        finally:
            herder.refuse_waiting()
            server.close()
        if problem is not None and not self._stopping.is_set():
            raise problem
        return herder.failed()


def run_flows(flows: Sequence[RunningFlow], is_asked_to_stop: Callable[[], bool]) -> bool:
    """Run *flows* side by side until each has ended, or the process is asked to stop; returns whether one has failed.

    One that has failed, also in part, is reported again now and then while others run. One whose target was not reached in time is
    tried again as long as another one runs. Those that are stopped get their grace periods; what does not end in time is
    left to its leases.
    """
    for each in flows:
        each.start()
    try:
        reminder, delays = Reminder(_REMIND_SECONDS), _Delays(flows)
        # What has failed is logged when it does.
        reminder.is_due(time.monotonic())
        while not is_asked_to_stop() and not all(each.has_ended for each in flows):
            # Not an event that the signal handler sets: it may interrupt this thread while it holds the event's lock.
            time.sleep(_LOOK_SECONDS)
            if all(each.has_ended or each.delay for each in flows):
                for each in flows:
                    each.give_up()
                continue
            delays.report()
            if reminder.is_due(time.monotonic()):
                _remind(flows)
    finally:
        for each in flows:
            each.ask_to_stop()
        deadline = time.monotonic() + max(each.grace for each in flows) + LEAVE_SECONDS
        for each in flows:
            each.join(max(0.0, deadline - time.monotonic()))
            if not each.has_ended:
                _log.warning(
                    "The flow %s has not ended in time. What its tasks have not committed is copied again by the next run.",
                    each.name,
                )
    return any(each.failure for each in flows)


class _Delays:
    """Reports which of *flows* wait for their targets after the start's deadline: at once, now and then, and at the end."""

    def __init__(self, flows: Sequence[RunningFlow]) -> None:
        self._flows = flows
        self._late = dict[str, Reminder]()

    def report(self) -> None:
        """Log what has changed, and what lasts; called every moment."""
        for each in self._flows:
            if each.has_ended:
                continue
            delay = each.delay
            if delay is None:
                if self._late.pop(each.name, None):
                    _log.info("The flow %s runs now: its target has been reached.", each.name)
            elif self._late.setdefault(each.name, Reminder(_REMIND_SECONDS)).is_due(
                time.monotonic()
            ):
                _log.error(
                    "The flow %s does not run: %s It is tried again as long as another flow runs.",
                    each.name,
                    delay,
                )


def _remind(flows: Sequence[RunningFlow]) -> None:
    for each in flows:
        if each.failure is not None:
            _log.error("The flow %s does not run: %s", each.name, each.failure)
        elif each.failing:
            _log.error(
                "The flow %s does not copy everything: %s failed, as logged above",
                each.name,
                " and ".join(each.failing),
            )
