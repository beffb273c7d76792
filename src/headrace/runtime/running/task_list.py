"""Which tasks a connector has, told when that has changed."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from headrace.connect.connector import SourceConnector
from headrace.runtime.running.run_watcher import RunWatcher
from headrace.runtime.running.work import task_path, too_many_tasks
from headrace.runtime.services import RunSpec
from headrace.runtime.status_board import StatusBoard

_log = logging.getLogger(__name__)


class TaskList:
    """The tasks of one connector's run. Used by its thread."""

    def __init__(self, spec: RunSpec, statuses: StatusBoard, watcher: RunWatcher) -> None:
        self._spec = spec
        self._statuses = statuses
        self._watcher = watcher
        self._told: Sequence[Mapping[str, str]] | None = None

    def tell(self, connector: SourceConnector, configs: Sequence[Mapping[str, str]]) -> None:
        """The *connector* has a task for each of *configs* now."""
        named = [{**each, "task.class": task_path(connector)} for each in configs]
        if named != self._told:
            self._told = named
            self._watcher.has_tasks(named)
            self._statuses.running(len(named))
            self._warn_of_too_many(len(named))

    def _warn_of_too_many(self, tasks: int) -> None:
        too_many = too_many_tasks(self._spec, tasks)
        if too_many:
            _log.warning(
                "%s This behaviour should be considered a bug and will be disallowed in future releases of "
                "Kafka Connect.",
                too_many,
            )
