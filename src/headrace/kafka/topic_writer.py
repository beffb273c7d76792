"""Records written to compacted topics that headrace reads back, within a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import TypeAlias

from headrace.connect.errors import ConnectError, RetriableError
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.kafka.transaction_coordinator import TransactionCoordinator

TopicRecords: TypeAlias = tuple[str, Sequence[OffsetEntry]]
"""A topic, and records to be written to it."""


class TopicWriter:
    """Writes keys and values that errors name as *what*, such as ``source offsets``. One thread owns it, beside which another one may ``open`` it.

    Its producer is made when it is first needed, which takes at most *open_seconds*, and another one after any failure, so that a
    call may be repeated.
    """

    def __init__(
        self,
        producer: ClientConfig,
        *,
        what: str,
        open_seconds: float,
        clock: Clock = time.monotonic,
    ) -> None:
        self._what = what
        self._clock = clock
        self._deadline = Deadline.after(0, clock)
        # Held while a producer is made: of two with one transactional id, the second fences the first.
        self._making = threading.Lock()
        self._is_overtaken = False
        self._sender: Sender | None = None
        self._sending: Callable[[], Sender] = lambda: make_sender(
            producer,
            owner=f"writer of {what}",
            open_seconds=open_seconds,
            clock=clock,
            waiting=self._give_up_late,
        )
        self._producer = producer

    def write(self, parts: Sequence[TopicRecords], deadline: Deadline) -> None:
        """Write *parts*, durable on return: in one transaction, or without one each acknowledged before the next is sent.

        Raises :class:`~headrace.connect.errors.RetriableError` after *deadline*, and what
        :class:`~headrace.kafka.sender.Sender` raises.
        """
        self._deadline = deadline
        try:
            if self._producer.transactional_id is not None:
                self._write(parts)
            else:
                for part in parts:
                    self._write([part])
        except ConnectError:
            self.close()
            raise

    def take_over(self, deadline: Deadline) -> None:
        """With a transactional id, fence earlier producers, whose open transactions end; later writes use another producer.

        Any thread may call. That takes some milliseconds, where the making of a producer takes half a second: see :meth:`open`. Raises as
        :meth:`write`.
        """
        if self._producer.transactional_id is not None:
            with closing(TransactionCoordinator(self._producer)) as coordinator:
                coordinator.take(self._producer.transactional_id, deadline)
            # By its owner, which may be using it.
            self._is_overtaken = True

    def open(self, deadline: Deadline) -> None:
        """Make the producer now, unless there is one, so that no write has to wait for it; any thread may call. Raises as :meth:`write`."""
        with self._making:
            if self._sender is None:
                self._deadline = deadline
                self._sender = self._opened()

    def close(self) -> None:
        """Release the producer; a later ``write`` makes another one."""
        with self._making:
            if self._sender is not None:
                self._sender.close()
                self._sender = None

    def _write(self, parts: Sequence[TopicRecords]) -> None:
        sender = self._current()
        sender.begin()
        for topic, entries in parts:
            sender.send_offsets(topic, entries)
        sender.commit()

    def _current(self) -> Sender:
        with self._making:
            overtaken, self._is_overtaken = self._is_overtaken, False
            if overtaken and self._sender is not None:
                self._sender.close()
                self._sender = None
            if self._sender is None:
                self._sender = self._opened()
            return self._sender

    def _opened(self) -> Sender:
        self._is_overtaken = False
        sender = self._sending()
        try:
            sender.open()
        except BaseException:
            sender.close()
            raise
        return sender

    def _give_up_late(self, doing: str) -> None:
        """Called by the sender about once a second while it waits."""
        if self._deadline.expired:
            raise RetriableError(
                f"{self._what[:1].upper()}{self._what[1:]} could not be stored in time. The broker is slow or unreachable; "
                f"waited for: {doing}."
            )
