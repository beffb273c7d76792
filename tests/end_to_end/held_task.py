"""A connector whose first task waits, between its claim and its producer, until it is let go."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import ClassVar

from headrace.connect.task import SourceTask
from headrace.connectors.files.connector import FilesConnector

HOLD = "HEADRACE_TEST_HOLD"
"""Names a folder: the first task made after a file ``wanted`` appears there is held."""

_SECONDS = 60.0


class HeldTask(FilesConnector.task_class):
    """Made after the claim and before ``init_transactions``; waits there if it is the one."""

    def __init__(self) -> None:
        super().__init__()
        folder = Path(os.environ[HOLD])
        try:
            (folder / "wanted").rename(folder / f"held-{os.getpid()}")
        except FileNotFoundError:
            return
        ticks = threading.Event()
        for _ in range(int(_SECONDS / 0.05)):
            if (folder / "released").exists():
                return
            ticks.wait(0.05)


class HeldConnector(FilesConnector):
    """The files connector with such tasks."""

    task_class: ClassVar[type[SourceTask]] = HeldTask
