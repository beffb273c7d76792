"""What a connector gets from the runtime on the driver."""

from __future__ import annotations

import threading

from headrace.runtime.connector_offsets import ConnectorOffsets
from headrace.runtime.offset_desk import OffsetSnapshot


class DriverContext:
    """A ``ConnectorContext``; its methods may be called from any thread."""

    def __init__(self, offsets: ConnectorOffsets, woken: threading.Event) -> None:
        self._offsets = offsets
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

    def see(self, snapshot: OffsetSnapshot) -> None:
        """Take newer offsets; called by the connector's run."""
        self._snapshot = snapshot

    def request_task_reconfiguration(self) -> None:
        """Ask for new tasks or a new plan: an open micro-batch ends for it, and the next round asks."""
        self._reconfigure.set()
        self._woken.set()

    def raise_error(self, error: Exception) -> None:
        """Fail the connector with the first error that it reports; an open micro-batch ends for it."""
        if self._error is None:
            self._error = error
        self._woken.set()

    @property
    def has_failed(self) -> bool:
        """Whether the connector has reported an error."""
        return self._error is not None

    @property
    def wants_reconfiguration(self) -> bool:
        """Whether new tasks or a new plan were asked for since :meth:`answer_requests`."""
        return self._reconfigure.is_set()

    def answer_requests(self) -> None:
        """Count requests so far as answered; called by the connector's run directly before it asks."""
        self._reconfigure.clear()

    def raise_if_failed(self) -> None:
        """Raise what the connector reported; called by the connector's run."""
        if self._error is not None:
            raise self._error
