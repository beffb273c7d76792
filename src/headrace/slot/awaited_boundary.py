"""The end of a transaction that only the connector may place: how long reading goes on for it."""

from __future__ import annotations

import time
from collections.abc import Callable

from headrace.connect.errors import TaskFailedError
from headrace.slot.frames import DeadLetter, Frame, Records
from headrace.slot.lease import Lease
from headrace.slot.outliving import never_ended
from headrace.slot.work import EndReason


class AwaitedBoundary:
    """Knows of the transaction that a task has open, and waits for its end. Used by the reading half.

    A slot that is to end goes on for *grace_seconds*; one whose time is only over because others wait goes on
    for as long as the transaction may be open, because a long one would be begun anew for ever.
    """

    def __init__(
        self,
        lease: Lease,
        *,
        grace_seconds: float,
        transaction_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lease = lease
        self._grace_seconds = grace_seconds
        self._transaction_seconds = transaction_seconds
        self._clock = clock
        self._open_since: float | None = None
        self._asked_at: float | None = None

    @property
    def is_open(self) -> bool:
        """Whether something was read since the connector last ended its transaction."""
        return self._open_since is not None

    def read(self, frame: Frame) -> None:
        """*frame* goes into the transaction, or is its end."""
        if not isinstance(frame, Records | DeadLetter):
            self.ended()
        elif self._open_since is None:
            self._open_since = self._clock()

    def ended(self) -> None:
        """The connector has ended its transaction."""
        self._open_since = None

    def keeps_reading(self) -> bool:
        """Whether a slot that should end goes on until the transaction ends.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when it has been open for as long as it may be.
        """
        if self._open_since is None or not self._lease.asked_to_end:
            return False
        if self._lease.asked_to_end == EndReason.BUDGET:
            self._lease.check()
            self._check_time(self._clock() - self._open_since)
            return True
        if self._asked_at is None:
            self._asked_at = self._clock()
        return self._grace_left(self._asked_at) > 0

    def wait(self, seconds: float) -> None:
        """Wait until the next poll, also in the time that a slot that should end goes on."""
        if self._asked_at is None:
            self._lease.wait(seconds)
        else:
            self._lease.pause(max(0.0, min(seconds, self._grace_left(self._asked_at))))

    def _check_time(self, open_seconds: float) -> None:
        if open_seconds >= self._transaction_seconds:
            raise TaskFailedError(never_ended(open_seconds, self._transaction_seconds))

    def _grace_left(self, asked_at: float) -> float:
        return asked_at + self._grace_seconds - self._clock()
