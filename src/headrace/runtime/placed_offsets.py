"""Offsets in a topic that is called as the worker's and may be the worker's: which of the two, its cluster tells."""

from __future__ import annotations

from collections.abc import Callable

from headrace.connect.task import Offsets
from headrace.runtime.connector_offsets import ConnectorOffsets, Write
from headrace.runtime.offset_desk import OffsetSnapshot


class PlacedOffsets:
    """``ConnectorOffsets`` that are the *worker*'s where *is_worker_s*, and otherwise the connector's *own*.

    Asked at each call, which may block on brokers and raise what they do: nothing is written before it is known.
    """

    def __init__(
        self,
        is_worker_s: Callable[[], bool],
        *,
        own: ConnectorOffsets,
        worker: ConnectorOffsets,
    ) -> None:
        self._is_worker_s = is_worker_s
        self._own = own
        self._worker = worker

    def are_copied(self) -> bool:
        """As where they are."""
        return self._place().are_copied()

    def current(self) -> OffsetSnapshot:
        """As where they are."""
        return self._place().current()

    def foreign(self) -> Offsets:
        """As where they are."""
        return self._place().foreign()

    def put(self, offsets: Offsets) -> None:
        """As where they are."""
        self._place().put(offsets)

    def commit(self, offsets: Offsets, write: Write) -> None:
        """As where they are."""
        self._place().commit(offsets, write)

    def catch_up(self) -> None:
        """As where they are."""
        self._place().catch_up()

    def settle(self, seconds: float) -> bool:
        """As for those of its own: there are no copies otherwise, and a connector that ends asks no broker."""
        return self._own.settle(seconds)

    def _place(self) -> ConnectorOffsets:
        return self._worker if self._is_worker_s() else self._own
