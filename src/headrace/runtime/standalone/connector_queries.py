"""Answers that change nothing, read from the stores in the thread of whoever asks."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.runtime.herder.answers import (
    ConnectorInfo,
    ConnectorStatus,
    Standing,
    TaskId,
    TaskInfo,
)
from headrace.runtime.herder.errors import NotFoundError, RequestError
from headrace.runtime.herder.states import State, TargetState
from headrace.runtime.standalone.parts import LocalParts
from headrace.runtime.standalone.passwords import Passwords
from headrace.runtime.standalone.submitted_configs import texts
from headrace.storage.protocols import Status, StoredConnector


class ConnectorQueries:
    """What is known of connectors. Any thread may call."""

    def __init__(self, local: LocalParts) -> None:
        self._local = local
        self._passwords = Passwords(local.admission, are_masked=local.masks_passwords)
        # Classes that were found once; one that is missing may be installed later.
        self._sources = set[str]()

    def names(self) -> Sequence[str]:
        """The names of all connectors."""
        return sorted(self._local.configs.connectors())

    def stored(self, name: str, *, unknown: str = "Connector {} not found") -> StoredConnector:
        """The connector; raises ``NotFoundError`` in these words when there is none."""
        stored = self._local.configs.connector(name)
        if stored is None:
            raise NotFoundError(unknown.format(name))
        return stored

    def info(self, name: str) -> ConnectorInfo:
        """The connector as it was submitted."""
        return self.shown(self.stored(name))

    def shown(self, stored: StoredConnector) -> ConnectorInfo:
        """*stored* with the tasks that it has now."""
        return ConnectorInfo(
            name=stored.name,
            config=self._passwords.masked(stored.config, connector=stored.config),
            tasks=[each.id for each in self._tasks(stored)],
            type=self._type(stored),
        )

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """The connector's tasks with their configurations."""
        return self._tasks(self.stored(name))

    def status(self, name: str) -> ConnectorStatus:
        """How the connector and its tasks are."""
        stored = self.stored(name, unknown="No status found for connector {}")
        statuses = self._local.statuses.statuses(name)
        own = statuses.get(None)
        return ConnectorStatus(
            name=name,
            connector=self._standing(own, None),
            tasks=[
                self._standing(status, task)
                for task, status in statuses.items()
                if task is not None
            ],
            type=self._type(stored),
        )

    def _tasks(self, stored: StoredConnector) -> list[TaskInfo]:
        if stored.target_state == TargetState.STOPPED:
            return []
        configs = self._local.configs.task_configs(stored.name)
        return [
            TaskInfo(
                id=TaskId(connector=stored.name, task=task),
                config=texts(self._passwords.masked(config, connector=stored.config)),
            )
            for task, config in enumerate(configs)
        ]

    def _standing(self, status: Status | None, task: int | None) -> Standing:
        if status is None:
            # It is being created, or deleted.
            return Standing(state=State.UNASSIGNED, worker_id=self._local.worker_id, task=task)
        return Standing(
            task=task,
            state=State(status.state),
            worker_id=status.worker_id,
            version=status.version,
            trace=status.trace,
        )

    def _type(self, stored: StoredConnector) -> str:
        named = stored.config.get("connector.class") or ""
        if named not in self._sources:
            try:
                self._local.admission.plugin_settings(named)
            except RequestError:
                return "unknown"
            self._sources.add(named)
        return "source"
