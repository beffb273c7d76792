"""Trying the same again after a failure that may pass, for as long as the connector allows (KIP-298)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from headrace.connect.errors import RecordError, RetriableError
from headrace.slot.frames import Place
from headrace.slot.lease import Lease
from headrace.slot.work import ErrorPolicy, Progress, SlotWork

_T = TypeVar("_T")

Wait = Callable[[float, Place | None], None]
"""Waits so many seconds before the next try; the place is where the first row comes from that waits."""

_FIRST_SECONDS = 0.3


class Retrying:
    """Calls what may raise :class:`~headrace.connect.errors.RetriableError`; used by the slot's thread.

    *wait* may return early, when the slot should end. *progress* tells what is waited for, and how often it was
    tried again. Without ``errors.retry.timeout`` the error passes as it is: the work is then planned again, which
    loses nothing and needs no limit.
    """

    def __init__(
        self,
        policy: ErrorPolicy,
        progress: Progress,
        *,
        wait: Wait,
        ending: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = policy.retry_seconds
        self._progress = progress
        self._most_delay = policy.retry_delay_seconds
        self._wait = wait
        self._ending = ending
        self._clock = clock

    def call(self, attempt: Callable[[], _T], waits_from: Callable[[], Place | None]) -> _T:
        """What *attempt* returns in the end; no row from the place *waits_from* on is written yet.

        Raises :class:`~headrace.connect.errors.RecordError` of the first row when the time is over, so that
        ``errors.tolerance`` decides; ``RetriableError`` when the slot should end before.
        """
        if self._timeout == 0:
            return attempt()
        deadline = None if self._timeout is None else self._clock() + self._timeout
        delay = _FIRST_SECONDS
        while True:
            try:
                done = attempt()
            except RetriableError as error:
                self._wait(self._pause(error, delay, deadline), waits_from())
                self._progress.retries += 1
                delay *= 2
            else:
                if delay > _FIRST_SECONDS:
                    self._progress.waiting_for = None
                return done

    def _pause(self, error: RetriableError, delay: float, deadline: float | None) -> float:
        """Seconds to wait behind *error*, which is told meanwhile; raises where nothing is tried again."""
        left = None if deadline is None else deadline - self._clock()
        if left is not None and left <= 0:
            raise RecordError(
                f"{error} It was tried again for {self._timeout:g} s (errors.retry.timeout).", row=0
            ) from error
        if self._ending():
            raise error
        self._progress.waiting_for = str(error) or type(error).__name__
        delay = self._bounded(delay)
        return delay if left is None else min(delay, left)

    def _bounded(self, delay: float) -> float:
        """*delay* up to the longest, from there on anything below it, as Kafka Connect does."""
        return delay if delay <= self._most_delay else random.uniform(0, self._most_delay)


def retrying_in(
    work: SlotWork, lease: Lease, progress: Progress, meanwhile: Callable[[Place | None], object]
) -> Retrying:
    """What a slot with *work* tries again, until its *lease* ends it.

    *meanwhile* is called before each wait, with the place of the first row that waits.
    """

    def wait(seconds: float, waits_from: Place | None) -> None:
        meanwhile(waits_from)
        lease.wait(seconds)

    return Retrying(work.errors, progress, wait=wait, ending=lease.should_end)
