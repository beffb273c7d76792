"""A connector of which one task raises what no one in the slot catches, after its first commit."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

from end_to_end.player import FOLDER
from headrace.connect.task import SourceTask
from headrace.connectors.files.connector import FilesConnector

WANTED = "raise-wanted"
"""The first task that commits after a file of that name appears in the player's folder raises."""


class RaisingTask(FilesConnector.task_class):
    """Lets its Spark task fail in the middle of its work."""

    def commit(self) -> None:
        """Raise if it is the one; not an ``Exception``, because the slot would report that itself."""
        try:
            (Path(os.environ[FOLDER]) / WANTED).unlink()
        except FileNotFoundError:
            return
        raise KeyboardInterrupt


class RaisingConnector(FilesConnector):
    """The files connector with such tasks."""

    task_class: ClassVar[type[SourceTask]] = RaisingTask
