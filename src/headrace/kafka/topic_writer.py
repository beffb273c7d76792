"""Records written to a compacted topic that headrace reads back, each call within a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence

from headrace.connect.errors import ConnectError, RetriableError
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.sender import OffsetEntry, Sender


class TopicWriter:
    """Writes records to *topic*, whose kind errors name as *what*, such as ``source offsets``. One thread owns it.

    Its producer is made when it is first needed, and another one after any failure, so that a call may be retried. With a
    transactional id each step of a call is atomic; without, its records are acknowledged one by one, in their order within a
    partition. A call gives up after *seconds*.
    """

    def __init__(
        self,
        topic: str,
        producer: ClientConfig,
        *,
        what: str,
        seconds: float,
        clock: Clock = time.monotonic,
    ) -> None:
        self._topic = topic
        self._what = what
        self._seconds = seconds
        self._clock = clock
        self._deadline = Deadline.after(0, clock)
        self._sender: Sender | None = None
        self._sending: Callable[[], Sender] = lambda: make_sender(
            producer,
            owner=f"writer of {topic!r}",
            open_seconds=seconds,
            clock=clock,
            waiting=self._give_up_late,
        )
        self.is_atomic = producer.transactional_id is not None

    def write(self, steps: Iterable[Sequence[OffsetEntry]]) -> None:
        """Write *steps*, the records of each acknowledged before the next; durable on return.

        Raises :class:`~headrace.connect.errors.RetriableError` when the broker did not answer in time, and what
        :class:`~headrace.kafka.sender.Sender` raises.
        """
        self._deadline = Deadline.after(self._seconds, self._clock)
        try:
            for step in steps:
                sender = self._opened()
                sender.begin()
                sender.send_offsets(self._topic, step)
                sender.commit()
        except ConnectError:
            self.close()
            raise

    def close(self) -> None:
        """Release the producer; a later ``write`` makes another one."""
        if self._sender is not None:
            self._sender.close()
            self._sender = None

    def _opened(self) -> Sender:
        if self._sender is None:
            self._sender = self._sending()
            self._sender.open()
        return self._sender

    def _give_up_late(self, doing: str) -> None:
        """Called by the sender about once a second while it waits."""
        if self._deadline.expired:
            raise RetriableError(
                f"{self._what.capitalize()} could not be stored in topic {self._topic!r} in time. The broker is slow "
                f"or unreachable; waited for: {doing}."
            )
