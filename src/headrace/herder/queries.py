"""Read-only requests, answered from the stores in the caller's thread, with passwords masked."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.herder.answers import ConnectorInfo, ConnectorStatus, TargetState, TaskId, TaskInfo
from headrace.herder.config_masking import Passwords
from headrace.herder.errors import NotFoundError, RequestError
from headrace.herder.services import LocalServices
from headrace.herder.statuses import connector_status
from headrace.storage.protocols import StoredConnector


class ConnectorQueries:
    """Answers requests about stored connectors. Any thread may call."""

    def __init__(self, local: LocalServices) -> None:
        self._local = local
        self._passwords = Passwords(local.validator, are_masked=local.masks_passwords)
        # Classes that were found; a missing one may be installed later.
        self._sources = set[str]()

    def names(self) -> Sequence[str]:
        """The names of all connectors."""
        return sorted(self._local.configs.connectors())

    def stored(self, name: str, *, unknown: str = "Connector {} not found") -> StoredConnector:
        """The connector; raises ``NotFoundError`` with the message *unknown* when there is none."""
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
        """The states of the connector and its tasks."""
        stored = self.stored(name, unknown="No status found for connector {}")
        return connector_status(self._local, name, type_=self._type(stored))

    def _tasks(self, stored: StoredConnector) -> list[TaskInfo]:
        if stored.target_state == TargetState.STOPPED:
            return []
        configs = self._local.configs.task_configs(stored.name)
        return [
            TaskInfo(
                id=TaskId(connector=stored.name, task=task),
                config={key: value for key, value in masked.items() if value is not None},
            )
            for task, masked in enumerate(
                self._passwords.masked(each, connector=stored.config) for each in configs
            )
        ]

    def _type(self, stored: StoredConnector) -> str:
        named = stored.config.get(CONNECTOR_CLASS) or ""
        if named not in self._sources:
            try:
                self._local.validator.plugin_settings(named)
            except RequestError:
                return "unknown"
            self._sources.add(named)
        return "source"
