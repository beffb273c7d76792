"""`headrace` as the pages' reader types it; slots run in processes where the page is not about Spark."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

# As a program it has no path but that of its own folder.
sys.path.append(str(Path(__file__).parents[1]))

from doubles.process_engine import ProcessEngine
from headrace.__main__ import main
from headrace.config.worker_config import WorkerConfig
from headrace.connect.config import Problem
from headrace.task.sql.step import SqlStage


class Processes(ProcessEngine):
    """Finds authors' modules as the reader's processes do, by ``PYTHONPATH``."""

    def warm_up(self) -> None:
        """Processes start when there is work."""

    def require(self, modules: Iterable[str], *, sql: bool = False) -> None:
        """They are there."""

    def sql_problems(self, sql_stage: SqlStage) -> Sequence[Problem]:
        """Nobody knows without Spark."""
        return ()


def on_processes(config: WorkerConfig, *_: object) -> Processes:
    """In place of Spark."""
    return Processes(slots=config.slots)


if __name__ == "__main__":
    if os.environ["HEADRACE_TEST_ENGINE"] == "processes":
        module = importlib.import_module("headrace.worker.data_plane")
        assert hasattr(module, "spark_engine")
        module.spark_engine = on_processes
    main()
