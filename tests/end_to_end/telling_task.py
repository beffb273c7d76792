"""A connector of standard input whose task logs, so that a slot's lines can be looked at."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import ClassVar

from headrace.connect.task import SourceTask
from headrace.connectors.file_stream import FileStreamSourceConnector, FileStreamSourceTask

TOLD = "The task begins"
PRINTED = "printed by the task:"

_log = logging.getLogger(__name__)


class TellingTask(FileStreamSourceTask):
    """Tells that it starts, and prints its configuration."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        _log.warning(TOLD)
        print(PRINTED, dict(config))  # noqa: T201 (as authors do)
        super().start(config)


class TellingConnector(FileStreamSourceConnector):
    """``file_stream`` with such a task."""

    task_class: ClassVar[type[SourceTask]] = TellingTask
