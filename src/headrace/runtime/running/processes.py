"""The processes of slots, where they run on the driver's own machine."""

from __future__ import annotations

import logging
import platform
import signal
from pathlib import Path
from typing import Protocol

from headrace.pids import identity_of, send
from headrace.runtime.running.micro_batch import SlotState

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
    """Knows processes by the pid and the identity that their slot told when it claimed its work."""

    def running(self, slot: SlotState) -> bool:
        """Whether the process is on this machine, one of Spark's workers, and that very one."""
        if slot.pid is None or slot.identity is None or slot.host != platform.node():
            return False
        return identity_of(slot.pid) == slot.identity and _is_python_worker(slot.pid)

    def end(self, slot: SlotState) -> None:
        """Send it SIGKILL: it has not heeded its lease, and Spark does not end it."""
        if slot.pid is None or slot.identity is None or not self.running(slot):
            return
        _log.warning("Ending process %d, which still runs task %d.", slot.pid, slot.work.task)
        send(signal.SIGKILL, pid=slot.pid, identity=slot.identity)


def _is_python_worker(pid: int) -> bool:
    # An engine of another kind may run slots in this very process; where the system tells, Spark's
    # workers are known.
    try:
        return b"pyspark" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc").exists()
