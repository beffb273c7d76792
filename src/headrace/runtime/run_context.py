"""What the parts of one connector's run share, and the context that the connector itself gets on the driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from headrace.offsets.connector_stores import ConnectorOffsets
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.backoff import Backoff
from headrace.runtime.fencing import Ownership
from headrace.runtime.services import RunSpec, Services
from headrace.runtime.task_status import StatusBoard, TaskList


class DriverContext:
    """A ``ConnectorContext``; its methods may be called from any thread."""

    def __init__(
        self,
        offsets: ConnectorOffsets,
        woken: threading.Event,
        target: Mapping[str, str] = MappingProxyType({}),
        command_options: str = "",
    ) -> None:
        self._offsets = offsets
        self._target = target
        self._command_options = command_options
        self._woken = woken
        self._snapshot: OffsetSnapshot | None = None
        self._error: Exception | None = None
        self._reconfigure = threading.Event()

    @property
    def offsets(self) -> OffsetSnapshot:
        """The committed offsets as of the last round; read from the store before the first."""
        if self._snapshot is None:
            self._snapshot = self._offsets.current()
        return self._snapshot

    @property
    def target(self) -> Mapping[str, str]:
        """Settings of an admin client of the cluster that the connector's tasks write to."""
        return self._target

    @property
    def command_options(self) -> str:
        """The options by which ``headrace`` commands reach the worker."""
        return self._command_options

    def see(self, snapshot: OffsetSnapshot) -> None:
        """Show newer offsets from now on; called by the connector's run."""
        self._snapshot = snapshot

    def request_task_reconfiguration(self) -> None:
        """Request new tasks or a new plan: an open micro-batch ends, and the next round asks the connector for them."""
        self._reconfigure.set()
        self._woken.set()

    def raise_error(self, error: Exception) -> None:
        """Fail the connector with the first error that it reports; an open micro-batch ends."""
        if self._error is None:
            self._error = error
        self._woken.set()

    @property
    def has_failed(self) -> bool:
        """Whether the connector has reported an error."""
        return self._error is not None

    @property
    def wants_reconfiguration(self) -> bool:
        """Whether new tasks or a new plan were requested since :meth:`answer_requests`."""
        return self._reconfigure.is_set()

    def answer_requests(self) -> None:
        """Mark requests so far as answered; called by the connector's run directly before it asks the connector."""
        self._reconfigure.clear()

    def raise_if_failed(self) -> None:
        """Raise what the connector reported; called by the connector's run."""
        if self._error is not None:
            raise self._error


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What the parts of one run share. Used by the run's thread.

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
        """Whether there is no next round: the run should stop, or the connector has reported an error."""
        return self.stopping.is_set() or self.context.has_failed
