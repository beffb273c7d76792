"""The processes of slots, where they run on the driver's own machine."""

from __future__ import annotations

import logging
import os
import platform
import signal
from pathlib import Path
from typing import Protocol

from headrace.runtime.micro_batch import SlotState

_log = logging.getLogger(__name__)


class Processes(Protocol):
    """Looks after the processes in which slots run."""

    def running(self, slot: SlotState) -> bool:
        """Whether the slot's process is known to run still."""
        ...

    def end(self, slot: SlotState) -> None:
        """End the slot's process, whatever it is doing."""
        ...


class LocalProcesses:
    """Knows processes by the id that their slot told when it claimed its work."""

    def running(self, slot: SlotState) -> bool:
        """Whether the process is on this machine and there."""
        if slot.pid is None or slot.host != platform.node():
            return False
        try:
            os.kill(slot.pid, 0)
        except ProcessLookupError:
            return False
        return _is_python_worker(slot.pid)

    def end(self, slot: SlotState) -> None:
        """Send it SIGKILL: it has not heeded its lease, and Spark does not end it."""
        if slot.pid is None or not self.running(slot):
            return
        _log.warning("Ending process %d, which still runs task %d.", slot.pid, slot.work.task)
        os.kill(slot.pid, signal.SIGKILL)


def _is_python_worker(pid: int) -> bool:
    # The id may belong to something else by now; where the system tells, Spark's workers are known.
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return not Path("/proc").exists()
    return b"pyspark" in words and state != "Z"
