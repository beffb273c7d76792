"""Copies of connectors' own offsets in the worker's store: written after the offsets are committed (KIP-618)."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence

from headrace.connect.errors import ConnectError, RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_codec import decoded_entries

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 5.0

Put = Callable[[str, Offsets], None]
"""Commits offsets of a connector in the worker's store; raises when that failed."""


class GlobalCopies:
    """What connectors with topics of their own leave in the worker's store. Any thread may call.

    Copies of one source partition are written in the order in which they were asked for, and of those that wait
    only the last. A thread writes them; one that fails is told in the log and tried again with the next, at the
    latest after *retry_seconds*.
    """

    def __init__(self, put: Put, *, retry_seconds: float = _RETRY_SECONDS) -> None:
        self._put = put
        self._retry_seconds = retry_seconds
        # Held while one write goes on, so that they keep their order.
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._waiting: dict[str, dict[SourcePartition, SourceOffset | None]] = {}
        self._in_flight: str | None = None
        self._failing = frozenset[str]()
        self._closing = False
        self._thread: threading.Thread | None = None

    def first(self, connector: str, offsets: Offsets) -> None:
        """Write *offsets* now, instead of what waits for the same source partitions; raises when that failed.

        For removals: what is removed elsewhere first would be read from here again.
        """
        if not offsets:
            return
        with self._writing:
            with self._changed:
                waiting = self._waiting.get(connector, {})
                left = {each: waiting[each] for each in waiting if each not in offsets}
                self._keep(connector, left)
                self._changed.notify_all()
            self._put(connector, offsets)

    def finish(self, connector: str) -> None:
        """Write now what waits of *connector*; raises when that failed.

        For one that has no topic of its own any more: a copy that comes later would set newer offsets back.
        """
        with self._writing:
            with self._changed:
                waiting = dict(self._waiting.get(connector, {}))
            if not waiting:
                return
            self._put(connector, waiting)
            with self._changed:
                self._keep(connector, {})
                self._changed.notify_all()

    def later(self, connector: str, offsets: Offsets) -> None:
        """Have *offsets* written soon; returns at once."""
        if not offsets:
            return
        with self._changed:
            self._waiting.setdefault(connector, {}).update(offsets)
            if self._thread is None and not self._closing:
                self._thread = threading.Thread(
                    target=self._work, name="headrace-offset-copies", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()

    def first_entries(self, entries: Sequence[OffsetEntry]) -> None:
        """Like :meth:`first`, for records of an offsets topic; raises ``ValueError`` for unreadable ones."""
        for connector, offsets in decoded_entries(entries).items():
            self.first(connector, offsets)

    def later_entries(self, entries: Sequence[OffsetEntry]) -> None:
        """Like :meth:`later`, for records of an offsets topic; raises ``ValueError`` for unreadable ones."""
        for connector, offsets in decoded_entries(entries).items():
            self.later(connector, offsets)

    def settle(self, connector: str, seconds: float) -> bool:
        """Wait until nothing of *connector* waits any more, at most *seconds*; whether that is so."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._is_waiting(connector), seconds)

    def close(self) -> None:
        """Try once more to write what waits, and end; what is left is written at the connectors' next start."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _is_waiting(self, connector: str) -> bool:
        return connector in self._waiting or connector == self._in_flight

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                is_last = self._closing
            has_failed = self._write_all()
            if is_last:
                return
            if has_failed:
                with self._changed:
                    self._changed.wait_for(lambda: self._closing, self._retry_seconds)

    def _write_all(self) -> bool:
        """Write what waits; whether any of it failed, which waits again then, behind what else waits.

        A store that is away is asked once and not for each connector: whoever has something to remove waits for it.
        """
        with self._changed:
            names = list(self._waiting)
        has_failed = False
        for name in names:
            failure = self._write(name)
            has_failed = has_failed or failure is not None
            if isinstance(failure, RetriableError):
                break
        return has_failed

    def _write(self, connector: str) -> Exception | None:
        """Write what waits of *connector*; why that failed."""
        with self._writing:
            with self._changed:
                taken = self._waiting.pop(connector, {})
                self._in_flight = connector
            failure = self._tried(connector, taken) if taken else None
            with self._changed:
                if failure is not None:
                    self._keep(connector, {**taken, **self._waiting.pop(connector, {})})
                self._in_flight = None
                self._changed.notify_all()
        return failure

    def _tried(self, connector: str, offsets: Offsets) -> Exception | None:
        try:
            self._put(connector, offsets)
        except Exception as error:  # noqa: BLE001 (it is told, and tried again; the offsets are safe elsewhere)
            self._tell(connector, error)
            return error
        if connector in self._failing:
            _log.info("Connector %s: its offsets are copied to the worker's again.", connector)
        self._failing -= {connector}
        return None

    def _tell(self, connector: str, error: Exception) -> None:
        if connector in self._failing:
            return
        self._failing |= {connector}
        _log.warning(
            "Connector %s: its offsets could not be copied to the worker's: %s They are safe in the topic that "
            "offsets.storage.topic names; the copies are tried again.",
            connector,
            error,
            exc_info=None if isinstance(error, ConnectError) else error,
        )

    def _keep(self, connector: str, offsets: Mapping[SourcePartition, SourceOffset | None]) -> None:
        if offsets:
            self._waiting[connector] = dict(offsets)
        else:
            self._waiting.pop(connector, None)
