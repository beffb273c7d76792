"""An engine without Spark: each slot in a Python process of its own, which a test may stop, wake or kill."""

from __future__ import annotations

import atexit
import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.context import ForkServerProcess
from multiprocessing.forkserver import _forkserver  # pyright: ignore[reportPrivateUsage]

from doubles.thread_engine import refuse_sql
from headrace.connect.errors import RetriableError
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from headrace.task.worker_task import run_slot

# Not forks of the test's process, which has threads and a Kafka client: those of a server that has nothing but
# the imports, and spares each slot most of its start.
_processes = multiprocessing.get_context("forkserver")
# With what slots of files import, which takes them ten times as long as all else that they do.
_PRELOADED = ["__main__", __name__, "headrace.connectors.files.connector", "pandas"]
_processes.set_forkserver_preload(_PRELOADED)
# By itself it takes a moment longer than this process, and is left behind for whoever looks then.
atexit.register(_forkserver._stop)  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]


class ProcessEngine:
    """Implements ``Engine``. *python_path* is put in front of the children's module search path.

    Like Spark, it loses the whole job as soon as one slot's process dies, and leaves the others running. A *program* that has
    one tells its module's name: else each slot imports anew what the program does.
    """

    def __init__(
        self, *, slots: int = 4, python_path: Sequence[str] = (), program: str | None = None
    ) -> None:
        self.slots = slots
        self.is_starting = False
        self._python_path = list(python_path)
        self._lock = threading.Lock()
        self._children: list[ForkServerProcess] = []
        if program is not None:
            _processes.set_forkserver_preload([*_PRELOADED, program])

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Run one process per ticket; raises ``RetriableError`` when one of them dies."""
        refuse_sql(sql_stage)
        left = [self._started(ticket) for ticket in tickets]
        while left:
            for child in list(left):
                child.join(0.05)
                if child.exitcode is None:
                    continue
                left.remove(child)
                if child.exitcode:
                    raise RetriableError(
                        f"The process {child.pid} of a slot ended with {child.exitcode}."
                    )

    def close(self) -> None:
        """Kill what is left."""
        with self._lock:
            for child in self._children:
                child.kill()
                child.join()
            self._children.clear()

    def _started(self, ticket: SlotTicket) -> ForkServerProcess:
        path = [*self._python_path, *sys.path]
        child = _processes.Process(target=_run, args=(ticket, path, dict(os.environ)), daemon=True)
        # The server's start is not for several threads, and neither is the list.
        with self._lock:
            _start_server()
            child.start()
            self._children.append(child)
        return child


def _start_server() -> None:
    """Start it, if it does not run, with this process's search path: before Python 3.13 it finds nothing of the tests otherwise."""
    before = os.environ.get("PYTHONPATH")
    # A program's own folder comes last: its modules have names that others may have, too.
    os.environ["PYTHONPATH"] = os.pathsep.join([*sys.path[1:], sys.path[0]])
    try:
        _forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def _run(ticket: SlotTicket, path: Sequence[str], environment: Mapping[str, str]) -> None:
    sys.path[:] = path
    os.environ.clear()
    os.environ.update(environment)
    run_slot(ticket)
