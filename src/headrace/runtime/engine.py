"""The runtime's view of a data plane: the engine that runs micro-batches, its capacity, its processes on this machine."""

from __future__ import annotations

import logging
import platform
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from headrace.connect.errors import RetriableError
from headrace.pids import identity_of, send
from headrace.runtime.micro_batch import SlotState
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2


class OtherVersionError(RetriableError):
    """Slots were not run, as their processes have another version of headrace; *found* has the machine and its version for each."""

    def __init__(self, found: Mapping[int, tuple[str, str]]) -> None:
        super().__init__(f"Slots have another version of headrace: {sorted(found.values())}.")
        self.found = found


class Engine(Protocol):
    """Runs slots. Called from several threads at once, one per connector."""

    @property
    def slots(self) -> int:
        """How many slots may run at the same time."""
        ...

    @property
    def is_starting(self) -> bool:
        """Whether the data plane itself is still starting, so that no slot can be expected yet."""
        ...

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Run one slot per ticket, all at once, and return when every one has returned.

        With *sql_stage* each slot is two processes, and the SQL stage is applied to the records between the two;
        raises :class:`~headrace.connect.errors.TaskFailedError` when that is not possible.

        Slots report how they ended over the channel, not here. Raises
        :class:`~headrace.connect.errors.RetriableError` when the job was lost; its slots may then still be
        running. The engine recovers before the next call. It is an :class:`OtherVersionError` when all have ended, but some have
        another version of headrace.
        """
        ...

    def close(self) -> None:
        """End the data plane; running slots are left to their leases."""
        ...


class Processes(Protocol):
    """Access to the processes in which slots run."""

    def running(self, slot: SlotState) -> bool:
        """Whether the slot's process is known to be still running."""
        ...

    def end(self, slot: SlotState) -> None:
        """Kill the slot's process."""
        ...


class LocalProcesses:
    """Identifies processes by the pid and the identity that the slot sent when it claimed its work."""

    def running(self, slot: SlotState) -> bool:
        """Whether the process runs on this machine, is a Python worker of Spark, and has the same identity."""
        if slot.pid is None or slot.identity is None or slot.host != platform.node():
            return False
        return identity_of(slot.pid) == slot.identity and _is_python_worker(slot.pid)

    def end(self, slot: SlotState) -> None:
        """Send it SIGKILL: it continues without a lease, and Spark does not end it."""
        if slot.pid is None or slot.identity is None or not self.running(slot):
            return
        _log.warning("Ending process %d, which still runs task %d.", slot.pid, slot.work.task)
        send(signal.SIGKILL, pid=slot.pid, identity=slot.identity)


def _is_python_worker(pid: int) -> bool:
    # Other engines may run slots in this very process; where there is a /proc, Spark's workers can be recognised.
    try:
        return b"pyspark" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc").exists()


class Capacity:
    """The slots of one worker, shared by its connectors; used from their threads.

    First come, first served: small micro-batches that arrive later do not starve a large one.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._free = slots
        self._queue: list[object] = []
        self._changed = threading.Condition()

    def take(self, count: int, *, give_up: Callable[[], bool]) -> bool:
        """Take *count* slots when they are free; ``False`` when *give_up* returns true before.

        Raises ``ValueError`` when there are fewer than *count* slots in all.
        """
        if count > self.slots:
            raise ValueError(f"{count} slots were requested, but there are only {self.slots}.")
        place = object()
        with self._changed:
            self._queue.append(place)
            try:
                while not (self._queue[0] is place and self._free >= count):
                    if give_up():
                        return False
                    self._changed.wait(_LOOK_SECONDS)
                self._free -= count
                return True
            finally:
                self._queue.remove(place)
                self._changed.notify_all()

    def give_back(self, count: int) -> None:
        """Return *count* slots."""
        with self._changed:
            self._free += count
            self._changed.notify_all()

    def others_wait(self) -> bool:
        """Whether a micro-batch is waiting for slots."""
        with self._changed:
            return bool(self._queue)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPlane:
    """What runs a worker's slots; several workers of one process may have the same.

    *capacity* counts the slots that are free, of all of them together. Whoever makes a shared one closes its engine, and not
    the workers.
    """

    engine: Engine
    capacity: Capacity
    processes: Processes = field(default_factory=LocalProcesses)
    is_shared: bool = False

    @classmethod
    def of(cls, engine: Engine, processes: Processes | None = None) -> DataPlane:
        """The data plane of one worker, which closes *engine*."""
        return cls(
            engine=engine,
            capacity=Capacity(engine.slots),
            processes=processes or LocalProcesses(),
        )

    @classmethod
    def shared(cls, engine: Engine) -> DataPlane:
        """The data plane of several workers; its maker closes *engine*."""
        return cls(engine=engine, capacity=Capacity(engine.slots), is_shared=True)

    def close(self) -> None:
        """End the engine, unless others use it."""
        if not self.is_shared:
            self.engine.close()
