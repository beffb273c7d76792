"""Processes that end themselves with SIGKILL between a commit in a connector's own topic and its copy.

As a program it is ``headrace`` with slots in its own threads.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from doubles.thread_engine import ThreadEngine
from headrace.cli import run
from headrace.cli.main import outcome
from headrace.connect.task import Offsets, SourceTask
from headrace.connectors.files.connector import FilesConnector
from headrace.task.transactions import DriverOffsetCopier
from headrace.worker import DataPlane, serving

if TYPE_CHECKING:
    from end_to_end.scene import Scene

MARK = "test.copies.mark"
"""Setting: the file that says that the slot has died. It dies once."""
CHOSEN = "HEADRACE_TEST_DIES_WITHOUT_COPY"


class DyingFilesTask(FilesConnector.task_class):
    """Reads files; its slot dies behind a commit."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        if MARK in config:
            _die_before_copies(Path(config[MARK]))
        super().start(config)


class DyingFiles(FilesConnector):
    """The files connector with such tasks."""

    task_class: ClassVar[type[SourceTask]] = DyingFilesTask


def armed(scene: Scene, victim: str) -> Path:
    """Have the *victim* die: a slot of *scene*, or the worker of :func:`run_until_death`; what will be there then."""
    mark = scene.folder / "died"
    if victim == "slot":
        scene.connector[MARK] = str(mark)
    return mark


def run_until_death(scene: Scene) -> int:
    """Run the connector in a worker that dies; how it ended."""
    paths = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        CHOSEN: str(scene.folder / "died"),
        "PYTHONPATH": os.pathsep.join(paths),
    }
    command = [sys.executable, __file__, "run", *scene.write_configs()]
    return subprocess.run(command, env=environment, cwd=scene.folder, check=False).returncode


def _die_before_copies(mark: Path) -> None:
    """Die at a copy that a slot of this process is about to hand over, unless that has been."""
    if not mark.exists():
        DriverOffsetCopier.later = _dying(DriverOffsetCopier.later, mark)


def _dying(call: Callable[..., Any], mark: Path) -> Callable[..., Any]:
    def die(copies: DriverOffsetCopier, offsets: Offsets) -> object:
        # No later commit tells of a file that is done, so only catching up can.
        if any(each and each.get("done") for each in offsets.values()):
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return call(copies, offsets)

    return die


def main() -> int:
    """Run the command line."""
    _die_before_copies(Path(os.environ[CHOSEN]))
    run.serving = partial(serving, data_plane=DataPlane.of(ThreadEngine()))
    return outcome(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
