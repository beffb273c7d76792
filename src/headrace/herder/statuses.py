"""Statuses of connectors and tasks: those that requests and metrics read, and those that the herder itself writes.

Connectors' runs write the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.herder.answers import ConnectorStatus, State, StateInfo
from headrace.herder.errors import NotFoundError
from headrace.herder.protocol import Herder
from headrace.herder.services import LocalServices
from headrace.observe.metrics import ConnectorSnapshot
from headrace.storage.protocols import Status


class HerderStatuses:
    """Statuses of connectors that do not run. Used by the herder's thread."""

    def __init__(self, local: LocalServices) -> None:
        self._local = local

    def put(
        self, name: str, state: State, *, task: int | None = None, trace: str | None = None
    ) -> None:
        """Write the state of a task, or of the connector itself."""
        status = Status(
            state=state.value,
            worker_id=self._local.worker_id,
            version=self._version(name),
            trace=trace,
        )
        self._local.statuses.put(name, task, status)

    def unassigned(self, name: str, *, trace: str | None = None) -> None:
        """It does not run at the moment: it is new, or an earlier process ran it, or the *trace* says why."""
        for task in self._local.statuses.statuses(name):
            if task is not None:
                self.put(name, State.UNASSIGNED, task=task)
        self.put(name, State.UNASSIGNED, trace=trace)

    def given_up(self, name: str) -> None:
        """It does not run here any more: of what this worker has run of it, which alone it knows about."""
        found = self._local.statuses.statuses(name)
        # A worker of Kafka Connect may have begun with a task that is new since then, in the same generation of the group.
        own = [task for task, each in found.items() if each.worker_id == self._local.worker_id]
        if self._local.configs.connector(name) is not None:
            for task in own:
                self.put(name, State.UNASSIGNED, task=task)
        elif len(own) == len(found):
            # They may have come after whoever deleted the connector removed all; no other one of its name has any yet.
            self._local.statuses.forget(name)

    def paused(self, name: str) -> None:
        """It is paused, with the tasks that it has."""
        tasks = len(self._local.configs.task_configs(name))
        self._local.statuses.forget(name, from_task=tasks)
        for task in range(tasks):
            self.put(name, State.PAUSED, task=task)
        self.put(name, State.PAUSED)

    def stopped(self, name: str) -> None:
        """It is stopped, and has no tasks."""
        self._local.statuses.forget(name, from_task=0)
        self.put(name, State.STOPPED)

    def restarting(self, name: str, *, connector: bool, tasks: Iterable[int]) -> None:
        """These parts of it are about to be restarted."""
        for task in tasks:
            self.put(name, State.RESTARTING, task=task)
        if connector:
            self.put(name, State.RESTARTING)

    def forget(self, name: str) -> None:
        """It is deleted; statuses that its run still wrote are deleted as well."""
        self._local.statuses.forget(name)
        self._local.topics.forget(name)

    def _version(self, name: str) -> str | None:
        stored = self._local.configs.connector(name)
        named = None if stored is None else stored.config.get(CONNECTOR_CLASS)
        return None if named is None else self._local.validator.connector_version(named)


def connector_status(local: LocalServices, name: str, *, type_: str) -> ConnectorStatus:
    """The states of the connector, which has been stored and is of this *type_*, and of its tasks."""
    statuses = local.statuses.statuses(name)
    return ConnectorStatus(
        name=name,
        connector=_state_info(local, statuses.get(None), None),
        tasks=[
            _state_info(local, status, task)
            for task, status in statuses.items()
            if task is not None
        ],
        type=type_,
    )


def _state_info(local: LocalServices, status: Status | None, task: int | None) -> StateInfo:
    if status is None:
        # It is being created, or deleted.
        return StateInfo(state=State.UNASSIGNED, worker_id=local.worker_id, task=task)
    return StateInfo(
        task=task,
        state=State(status.state),
        worker_id=status.worker_id,
        version=status.version,
        trace=status.trace,
    )


def connector_snapshots(
    herder: Herder, *, worker_id: str | None = None
) -> Sequence[ConnectorSnapshot]:
    """The current state of every connector of *herder*, or of those whose last state is from the worker *worker_id*.

    Called on the thread that collects metrics.
    """
    return list(_connector_snapshots(herder, worker_id))


def _connector_snapshots(herder: Herder, worker_id: str | None) -> Iterator[ConnectorSnapshot]:
    for name in herder.connectors():
        try:
            status, info = herder.status(name), herder.info(name)
        except NotFoundError:
            # Deleted since its name was read.
            continue
        if worker_id not in (None, status.connector.worker_id):
            continue
        yield ConnectorSnapshot(
            name=name,
            type=status.type,
            class_name=info.config.get(CONNECTOR_CLASS) or "",
            state=status.connector.state.value,
            version=status.connector.version,
            tasks={each.task: each.state.value for each in status.tasks if each.task is not None},
        )
