"""A connector of which one task raises what nobody in the slot catches, after its first commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from headrace.connect.task import SourceTask
from headrace.connectors.files.connector import FilesConnector

RAISE = "HEADRACE_TEST_RAISE"
"""Names a folder: the first task that commits after a file ``wanted`` appears there raises."""


class RaisingTask(FilesConnector.task_class):
    """Lets its Spark task fail in the middle of its work."""

    def commit(self) -> None:
        """Raise if it is the one; not an ``Exception``, because the slot would report that itself."""
        folder = Path(os.environ[RAISE])
        try:
            (folder / "wanted").unlink()
        except FileNotFoundError:
            return
        raise KeyboardInterrupt


class RaisingConnector(FilesConnector):
    """The files connector with such tasks."""

    task_class: ClassVar[type[SourceTask]] = RaisingTask
