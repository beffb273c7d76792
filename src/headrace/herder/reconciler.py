"""Brings each connector to its target state: starts and stops runs, and writes statuses."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.config.providers import Resolution
from headrace.connect.errors import ConnectorFencedError, RetriableError
from headrace.herder.answers import State, TargetState
from headrace.herder.config_masking import unresolved
from headrace.herder.errors import RequestError, ServerError
from headrace.herder.lifecycle import (
    Act,
    Elsewhere,
    Lifecycle,
    Phase,
    Target,
    done,
    ended,
    has_run,
    next_act,
    renewed,
    wanted,
)
from headrace.herder.request_queue import RequestQueue
from headrace.herder.restarts import AutomaticRestarts
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.statuses import HerderStatuses
from headrace.observe.events import ConnectorFailed
from headrace.observe.secret_masking import Secrets
from headrace.runtime.runs import LEAVE_SECONDS, NewRun, Run
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)
_STATE_SECONDS = 1.0


class TaskSet(NamedTuple):
    """The tasks of a connector, with placeholders as they were submitted, and the connector that they were made from."""

    connector: StoredConnector
    configs: Sequence[Mapping[str, str]]


class Reconciler:
    """The lifecycle of every connector. The herder's thread owns it; runs post messages to the *queue*.

    *store_tasks* has the tasks of a run stored, and returns when they are; it is called on the run's thread.
    """

    def __init__(
        self,
        local: LocalServices,
        queue: RequestQueue,
        new_run: NewRun,
        *,
        store_tasks: Callable[[TaskSet], None],
    ) -> None:
        self.store_tasks = store_tasks
        self._local = local
        self._queue = queue
        self._new_run = new_run
        self._statuses = HerderStatuses(local)
        self._kafka: KafkaServices | None = None
        self._lifecycles: dict[str, Lifecycle] = {}
        self._runs: dict[str, Run] = {}
        self._waiting: dict[str, list[Future[None]]] = {}
        self._restarting: dict[str, Future[Exception | None]] = {}
        self._automatic = AutomaticRestarts()
        self._begun: dict[str, Resolution] = {}
        self._failures: dict[str, Exception] = {}
        # Those whose next action Kafka has not taken.
        self._postponed: set[str] = set()
        self._may_start = False
        self.all_have_ended = threading.Event()
        """Set while connectors may run, and none does."""
        self.one_is_lost = threading.Event()
        """Set once a connector has failed and is not restarted."""
        self._acts = {
            Act.START: self._start,
            Act.ASK_TO_STOP: self._ask_to_stop,
            Act.SHOW_PAUSED: self._statuses.paused,
            Act.SHOW_STOPPED: self._statuses.stopped,
            Act.FORGET: self._forget,
            Act.GIVE_UP: self._give_up,
        }

    def opened(self, kafka: KafkaServices) -> None:
        """Runs may be started from now on."""
        self._kafka = kafka
        self._may_start = True
        for name in list(self._lifecycles):
            self._advance(name)
        self._note_end()

    def close(self) -> Sequence[Run]:
        """Start nothing from now on; returns the runs that have not ended."""
        self._may_start = False
        return self.runs()

    def want(self, name: str, target: TargetState | None, *, again: bool = False) -> None:
        """Set the connector's target, ``None`` for deleted; *again* for a new configuration."""
        self._settle(name)
        self._want(name, target, again=again)

    def give_up(self, name: str) -> Future[None]:
        """Leave the connector to another worker.

        The future is done when nothing of it runs here any more, and its status says so.
        """
        self._settle(name)
        ended = self.quiet(name)
        if name in self._lifecycles:
            self._want(name, Elsewhere.ELSEWHERE, again=False)
        return ended

    def restart(self, name: str, target: TargetState) -> Future[Exception | None]:
        """Start a new run of a connector whose target state is *target*.

        The future is done when the connector has started or need not start, with the error if it could not start; at
        the latest when its target changes.
        """
        answer = Future[Exception | None]()
        self._settle(name)
        self._restarting[name] = answer
        self._want(name, target, again=True)
        if target is not TargetState.RUNNING or self._kafka is None:
            self._settle(name)
        return answer

    def has(self, name: str) -> bool:
        """Whether the connector is managed here, or something of it still runs."""
        return name in self._lifecycles

    def quiet(self, name: str) -> Future[None]:
        """A future that is done when the connector's current run has ended."""
        answer = Future[None]()
        lifecycle = self._lifecycles.get(name)
        if lifecycle is None or not has_run(lifecycle):
            answer.set_result(None)
        else:
            self._waiting.setdefault(name, []).append(answer)
        return answer

    def await_end(self, name: str, ended: Future[None], outcome: str) -> None:
        """Return when a run has *ended*, which :meth:`quiet` promised; ``ServerError`` when that takes too long.

        Waits, so any thread but the herder's may call it. *outcome* begins the error's sentence.
        """
        seconds = self._local.grace + LEAVE_SECONDS
        try:
            ended.result(seconds)
        except TimeoutError as error:
            raise ServerError(
                f"{outcome}, but the tasks of connector {name} have not stopped within {seconds:g} s. They "
                "have been asked to, and stop as soon as their source or Kafka answers."
            ) from error

    def failures(self) -> Mapping[str, Exception]:
        """Why connectors have failed, of those that are not restarted, or do not read a part of their sources.

        Any thread may ask.
        """
        found = {name: self._failure(name, each) for name, each in list(self._lifecycles.items())}
        return {name: failure for name, failure in found.items() if failure is not None}

    def _failure(self, name: str, lifecycle: Lifecycle) -> Exception | None:
        if lifecycle.phase is Phase.FAILED:
            return self._failures.get(name)
        run = self._runs.get(name)
        return run.failure if run is not None and lifecycle.phase is Phase.RUNNING else None

    def runs(self) -> Sequence[Run]:
        """The runs that have not ended, for the end of the process."""
        return list(self._runs.values())

    def begun(self) -> Mapping[str, Resolution]:
        """The values that each connector that is to run, and takes values from files, was last started with."""
        return {
            name: began
            for name, began in self._begun.items()
            if began.files
            and self._lifecycles[name].target is TargetState.RUNNING
            and self._lifecycles[name].phase in (Phase.RUNNING, Phase.FAILED)
        }

    def has_tasks(
        self, watched: WatchedRun, configs: Sequence[Mapping[str, str]]
    ) -> TaskSet | None:
        """A run reports which tasks its connector has; returns them as they are stored, ``None`` from a run that is over."""
        lifecycle, stored = self._lifecycles.get(watched.name), watched.connector
        if lifecycle is None or not watched.is_of(lifecycle):
            return None
        shown = [
            unresolved(
                each,
                submitted=stored.config,
                resolved=watched.resolved,
                secrets=watched.secrets,
            )
            for each in configs
        ]
        return TaskSet(stored, shown)

    def stored_tasks(self, watched: WatchedRun, tasks: int) -> None:
        """The tasks of a run's connector are stored, so many."""
        lifecycle = self._lifecycles.get(watched.name)
        if lifecycle is not None and watched.is_of(lifecycle):
            self._local.statuses.forget(watched.name, from_task=tasks)

    def has_begun(self, watched: WatchedRun) -> None:
        """The connector of a run has started, or waits for a temporary failure to end."""
        lifecycle = self._lifecycles.get(watched.name)
        if lifecycle is not None and watched.is_of(lifecycle):
            self._settle(watched.name)

    def has_ended(self, watched: WatchedRun, failure: Exception | None) -> None:
        """A run is over."""
        name = watched.name
        if watched.is_of(self._lifecycles[name]):
            self._settle(name, failure)
        self._runs.pop(name, None)
        lifecycle = self._ended(name, failure)
        is_fenced = isinstance(failure, ConnectorFencedError)
        if is_fenced:
            # Two workers would take it from each other forever, so changed files do not restart it either.
            self._begun.pop(name, None)
        if lifecycle.phase is Phase.FAILED and (
            is_fenced or not self._plan_restart(name, lifecycle.revision)
        ):
            self.one_is_lost.set()
        try:
            self._advance(name)
        finally:
            for answer in self._waiting.pop(name, ()):
                answer.set_result(None)
            self._note_end()

    def _ended(self, name: str, failure: Exception | None) -> Lifecycle:
        lifecycle = ended(self._lifecycles[name], failed=failure is not None)
        if failure is not None and lifecycle.phase is Phase.FAILED:
            self._failures[name] = failure
        self._lifecycles[name] = lifecycle
        return lifecycle

    def _note_end(self) -> None:
        if self._kafka is not None and not self._runs:
            self.all_have_ended.set()
        else:
            self.all_have_ended.clear()

    def _plan_restart(self, name: str, revision: int) -> bool:
        """Have a connector that has failed restarted later; returns whether it will be."""
        if self._local.once or not self._may_start:
            return False
        seconds = self._automatic.pause_after_failure(name)
        if seconds is None:
            self._log_no_restart(name)
            return False
        _log.warning("Connector %s has failed and is restarted in %g s", name, seconds)
        self._later(seconds, lambda: self._restart_if_failed(name, revision))
        return True

    def _log_no_restart(self, name: str) -> None:
        attempts = self._automatic.attempts(name)
        if attempts:
            _log.warning(
                "Connector %s has failed after the last automatic restart "
                "(headrace.restart.max.attempts is %d): it stays FAILED until it is restarted or its "
                "configuration changes",
                name,
                attempts,
            )

    def _restart_if_failed(self, name: str, revision: int) -> None:
        lifecycle = self._lifecycles.get(name)
        has_failed = lifecycle is not None and lifecycle.phase is Phase.FAILED
        if lifecycle is None or not has_failed or lifecycle.revision != revision:
            return
        if lifecycle.target is TargetState.RUNNING:
            self._lifecycles[name] = renewed(lifecycle)
            self._advance(name)

    def _want(self, name: str, target: Target, *, again: bool) -> None:
        lifecycle = self._lifecycles.get(name)
        if lifecycle is None:
            self._statuses.unassigned(name)
            lifecycle = Lifecycle(target=target)
        elif lifecycle.target is None:
            # Its predecessor of the same name may still be ending.
            self._statuses.unassigned(name)
        if again or target is None:
            self._automatic.forget(name)
        lifecycle = wanted(lifecycle, target)
        self._lifecycles[name] = renewed(lifecycle) if again else lifecycle
        self._advance(name)

    def _advance(self, name: str) -> None:
        while (act := self._next(name)) is not Act.NOTHING:
            before = self._lifecycles[name]
            self._lifecycles[name] = done(before, act)
            try:
                self._acts[act](name)
            except RetriableError as error:
                # Stores in Kafka; nothing was begun or ended by it.
                self._lifecycles[name] = before
                self._advance_later(name, error)
                return

    def _advance_later(self, name: str, error: RetriableError) -> None:
        if name not in self._postponed:
            _log.warning("The state of connector %s is written later: %s", name, error)
            self._postponed.add(name)
            self._later(_STATE_SECONDS, lambda: self._advance_postponed(name))

    def _advance_postponed(self, name: str) -> None:
        self._postponed.discard(name)
        self._advance(name)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, self._queue.post, args=[act])
        timer.daemon = True
        timer.start()

    def _next(self, name: str) -> Act:
        lifecycle = self._lifecycles.get(name)
        if lifecycle is None:
            return Act.NOTHING
        return next_act(lifecycle, can_start=self._may_start)

    def _start(self, name: str) -> None:
        assert self._kafka is not None
        self._failures.pop(name, None)
        stored = self._local.configs.connector(name)
        if stored is None:
            # Another worker has deleted it; this one is told to give it up.
            self._ended(name, None)
            self._settle(name)
            return
        try:
            began = self._begun[name] = self._local.validator.resolved(stored.config)
            spec = self._local.validator.run_spec(began)
            watched = WatchedRun(
                connector=stored,
                revision=self._lifecycles[name].running,
                resolved=spec.props,
                secrets=Secrets(values=began.secrets),
                reconciler=self,
                queue=self._queue,
            )
            self._automatic.begins(name, spec.props)
            run = self._new_run(spec, self._kafka.services, watched)
            run.start()
        except Exception as error:  # noqa: BLE001 (the connector's status shows it)
            self._fail(name, error)
        else:
            self._runs[name] = run

    def _fail(self, name: str, error: Exception) -> None:
        if self._kafka is not None:
            reason = f"It could not be started: {error}"
            self._kafka.services.emit(ConnectorFailed(connector=name, reason=reason))
        self._ended(name, error)
        self.one_is_lost.set()
        self._settle(name, error)
        trace = "".join(traceback.format_exception(error))
        # A restart may have set tasks to RESTARTING.
        self._statuses.unassigned(name)
        self._statuses.put(name, State.FAILED, trace=trace)

    def _settle(self, name: str, failure: Exception | None = None) -> None:
        """Answer the restart that waits for the connector to start, if there is one."""
        answer = self._restarting.pop(name, None)
        if answer is not None:
            answer.set_result(failure)

    def _ask_to_stop(self, name: str) -> None:
        run = self._runs[name]
        run.silence()
        run.ask_to_stop()

    def _give_up(self, name: str) -> None:
        self._statuses.given_up(name)
        self._drop(name)

    def _forget(self, name: str) -> None:
        self._statuses.forget(name)
        self._drop(name)

    def _drop(self, name: str) -> None:
        self._lifecycles.pop(name)
        self._begun.pop(name, None)
        self._failures.pop(name, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedRun:
    """One run of a connector; the run's thread reports its progress here."""

    connector: StoredConnector
    revision: int
    resolved: Mapping[str, str] = field(repr=False)
    secrets: Secrets
    reconciler: Reconciler
    queue: RequestQueue

    @property
    def name(self) -> str:
        """The connector's."""
        return self.connector.name

    def is_of(self, lifecycle: Lifecycle) -> bool:
        """Whether this is the connector's current run, and not one that is ending."""
        return lifecycle.phase is Phase.RUNNING and lifecycle.running == self.revision

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """Return once they are stored; raises ``RetriableError`` when they cannot be."""
        try:
            tasks = self.queue.ask(None, lambda: self.reconciler.has_tasks(self, configs))
            if tasks is not None:
                self.reconciler.store_tasks(tasks)
                self.queue.ask(None, lambda: self.reconciler.stored_tasks(self, len(configs)))
        except RequestError as error:
            raise RetriableError(
                f"Connector {self.name} waits until the group's leader has stored its tasks: {error}"
            ) from error

    def has_begun(self) -> None:
        """Pass it on."""
        self.queue.post(lambda: self.reconciler.has_begun(self))

    def has_ended(self, failure: Exception | None) -> None:
        """Pass it on."""
        self.queue.post(lambda: self.reconciler.has_ended(self, failure))
