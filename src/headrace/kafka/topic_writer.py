"""Records written to compacted topics that headrace reads back, within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeAlias

from headrace.connect.errors import ConnectError, RetriableError
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sender import OffsetEntry, Sender

TopicRecords: TypeAlias = tuple[str, Sequence[OffsetEntry]]
"""A topic, and records to be written to it."""


class TopicWriter:
    """Writes keys and values that errors name as *what*, such as ``source offsets``. One thread owns it.

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
        self._sender: Sender | None = None
        self._sending: Callable[[], Sender] = lambda: make_sender(
            producer,
            owner=f"writer of {what}",
            open_seconds=open_seconds,
            clock=clock,
            waiting=self._give_up_late,
        )
        self._is_atomic = producer.transactional_id is not None

    def write(self, parts: Sequence[TopicRecords], deadline: Deadline) -> None:
        """Write *parts*, durable on return: in one transaction, or without one each acknowledged before the next is sent.

        Raises :class:`~headrace.connect.errors.RetriableError` after *deadline*, and what
        :class:`~headrace.kafka.sender.Sender` raises.
        """
        self._deadline = deadline
        try:
            if self._is_atomic:
                self._write(parts)
            else:
                for part in parts:
                    self._write([part])
        except ConnectError:
            self.close()
            raise

    def open_anew(self, deadline: Deadline) -> None:
        """Make another producer now: with a transactional id, earlier ones are fenced and their open transactions end.

        Raises as :meth:`write`.
        """
        self._deadline = deadline
        self.close()
        try:
            self._opened()
        except ConnectError:
            self.close()
            raise

    def close(self) -> None:
        """Release the producer; a later ``write`` makes another one."""
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _write(self, parts: Sequence[TopicRecords]) -> None:
        sender = self._opened()
        sender.begin()
        for topic, entries in parts:
            sender.send_offsets(topic, entries)
        sender.commit()

    def _opened(self) -> Sender:
        if self._sender is None:
            self._sender = self._sending()
            self._sender.open()
        return self._sender

    def _give_up_late(self, doing: str) -> None:
        """Called by the sender about once a second while it waits."""
        if self._deadline.expired:
            raise RetriableError(
                f"{self._what[:1].upper()}{self._what[1:]} could not be stored in time. The broker is slow or unreachable; "
                f"waited for: {doing}."
            )
