"""The statuses of a run's connector and its tasks, in the store, and the list of its tasks."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from headrace.config.aliases import task_name
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConnectError
from headrace.herder.answers import State
from headrace.observe.secret_masking import Secrets, without_secrets
from headrace.runtime.assignment import task_path, too_many_tasks
from headrace.runtime.runs import RunWatcher
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import Status
from headrace.task.slot_report import SlotReport

_log = logging.getLogger(__name__)


class StatusBoard:
    """Writes one run's statuses, in the states and at the times of Kafka Connect.

    The run's thread writes; any thread may silence it. *secrets* are masked in traces.
    """

    def __init__(
        self,
        connector: str,
        services: Services,
        *,
        version: str | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._connector = connector
        self._services = services
        self._version = version
        self._secrets = secrets or Secrets()
        self._failed = set[int]()
        self._tasks = 0
        self._begun = set[int]()
        self._refused: dict[int, str] = {}
        self._is_silent = False
        self.failure_in_part: Exception | None = None
        """Why a part of the source is not read, as the last plan says."""
        # So that nothing is written after `silence` has returned.
        self._guard = threading.Lock()

    def silence(self) -> None:
        """Write nothing from now on: the caller writes the connector's status."""
        with self._guard:
            self._is_silent = True

    def put(self, task: int | None, state: State, trace: str | None = None) -> None:
        """Write the state of *task*, or of the connector itself."""
        status = Status(
            state=state.value,
            worker_id=self._services.worker_id,
            version=self._version,
            trace=None if trace is None else self._secrets.masked(trace),
        )
        with self._guard:
            if not self._is_silent:
                self._services.statuses.put(self._connector, task, status)

    def fails_in_part(self, failure: ConnectError | None) -> bool:
        """Note why a part of the source is not read, ``None`` if all of it is; returns whether that has changed.

        As in Kafka Connect after ``raiseError``, the connector is FAILED, and its tasks are what they are.
        """
        shown = None if failure is None else without_secrets(self._secrets, failure)
        before, self.failure_in_part = self.failure_in_part, shown
        if (before and str(before)) == (shown and str(shown)):
            return False
        if shown is None:
            self.put(None, State.RUNNING)
        else:
            self.put(None, State.FAILED, trace="".join(traceback.format_exception(shown)))
        return True

    def has_tasks(self, tasks: int) -> None:
        """Note that the connector has so many *tasks*; those that have not begun in this run are UNASSIGNED."""
        self._tasks = tasks
        for task in range(tasks):
            state = State.RUNNING if task in self._begun else State.UNASSIGNED
            self.put(task, state, trace=self._refused.get(task))

    def has_begun(self, task: int, *, among: Collection[int]) -> None:
        """Note that the slot of *task* has begun; tasks that are not *among* those with work count as running, too."""
        self._run({task, *range(self._tasks)} - (set(among) - {task}))

    def is_refused(self, task: int, reason: str) -> None:
        """Note that the slot of *task* was given no work, and the *reason*, which its status says until it begins."""
        if self._refused.get(task) != reason:
            self._refused[task] = reason
            self._begun.discard(task)
            self.put(task, State.UNASSIGNED, trace=reason)

    def is_idle(self) -> None:
        """Note that no task has work: all of them count as running, without a slot."""
        self._run(set(range(self._tasks)))

    def _run(self, tasks: AbstractSet[int]) -> None:
        for task in sorted(tasks - self._begun):
            self._begun.add(task)
            self._refused.pop(task, None)
            self.put(task, State.RUNNING)

    def failed(self, task: int, report: SlotReport) -> None:
        """Note that *task* has failed, which it stays until it runs again."""
        self._failed.add(task)
        self.put(task, State.FAILED, trace=report.trace)

    def unassign_tasks(self) -> None:
        """Set every task to UNASSIGNED, except those that failed in this run."""
        for task in self._services.statuses.statuses(self._connector):
            if task is not None and task not in self._failed:
                self.put(task, State.UNASSIGNED)


class TaskList:
    """The tasks of one connector's run. Used by its thread."""

    def __init__(self, spec: RunSpec, statuses: StatusBoard, watcher: RunWatcher) -> None:
        self._spec = spec
        self._statuses = statuses
        self._watcher = watcher
        self._reported: Sequence[Mapping[str, str]] | None = None

    def report(self, connector: SourceConnector, configs: Sequence[Mapping[str, str]]) -> None:
        """Publish that the *connector* has a task for each of *configs*, if that has changed.

        Raises :class:`~headrace.connect.errors.RetriableError` when that cannot be stored.
        """
        shown = task_name(task_path(connector))
        named = [{**each, "task.class": shown} for each in configs]
        if named != self._reported:
            self._watcher.has_tasks(named)
            self._reported = named
            self._statuses.has_tasks(len(named))
            self._warn_of_too_many(len(named))

    def _warn_of_too_many(self, tasks: int) -> None:
        too_many = too_many_tasks(self._spec, tasks)
        if too_many:
            _log.warning(
                "%s This behaviour should be considered a bug and will be disallowed in future releases of "
                "Kafka Connect.",
                too_many,
            )
