"""What the runtime asks of a data plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headrace.slot.split.between import Between
from headrace.slot.work import SlotTicket


class Engine(Protocol):
    """Runs slots somewhere. Called from several threads at once, one per connector."""

    @property
    def slots(self) -> int:
        """How many slots may run at the same time."""
        ...

    @property
    def is_starting(self) -> bool:
        """Whether the data plane itself is still being started, so that no slot can be expected yet."""
        ...

    def run(self, tickets: Sequence[SlotTicket], between: Between | None = None) -> None:
        """Run one slot per ticket, all at once, and return when every one has returned.

        With *between* each slot is two processes, and what is asked for happens to the records on their way from
        the one to the other; raises :class:`~headrace.connect.errors.TaskFailedError` when that cannot be done.

        How they ended is told over the channel, not here. Raises
        :class:`~headrace.connect.errors.RetriableError` when the job was lost; slots of it may then still be
        running. The engine mends itself before the next call.
        """
        ...

    def close(self) -> None:
        """End the data plane; running slots are left to their leases."""
        ...
