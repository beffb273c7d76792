"""What the parts of one connector's run have in common."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from headrace.runtime.backoff import Backoff
from headrace.runtime.running.driver_context import DriverContext
from headrace.runtime.running.ownership import Ownership
from headrace.runtime.running.task_list import TaskList
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.status_board import StatusBoard


@dataclass(frozen=True, slots=True, kw_only=True)
class RunParts:
    """Used by the run's thread.

    Any thread may set *stopping*, which ends the run, and *woken*, which ends a wait for work.
    """

    spec: RunSpec = field(repr=False)
    services: Services
    context: DriverContext
    ownership: Ownership
    statuses: StatusBoard
    tasks: TaskList
    backoff: Backoff
    stopping: threading.Event
    woken: threading.Event

    def is_ending(self) -> bool:
        """Whether there is no next round: it is to stop, or the connector has reported an error."""
        return self.stopping.is_set() or self.context.has_failed
