"""Trying the same again after a failure that may pass, for as long as the connector allows (KIP-298)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from headrace.connect.errors import RecordError, RetriableError
from headrace.slot.work import ErrorPolicy

_T = TypeVar("_T")

_FIRST_SECONDS = 0.3


class Retrying:
    """Calls what may raise :class:`~headrace.connect.errors.RetriableError`; used by the slot's thread.

    *wait* may return early, when the slot should end. Without ``errors.retry.timeout`` the error passes as it
    is: the work is then planned again, which loses nothing and needs no limit.
    """

    def __init__(
        self,
        policy: ErrorPolicy,
        *,
        wait: Callable[[float], None],
        ending: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = policy.retry_seconds
        self._most_delay = policy.retry_delay_seconds
        self._wait = wait
        self._ending = ending
        self._clock = clock

    def call(self, attempt: Callable[[], _T]) -> _T:
        """What *attempt* returns in the end.

        Raises :class:`~headrace.connect.errors.RecordError` when the time is over, so that ``errors.tolerance``
        decides; ``RetriableError`` when the slot should end before.
        """
        if self._timeout == 0:
            return attempt()
        deadline = None if self._timeout is None else self._clock() + self._timeout
        delay = _FIRST_SECONDS
        while True:
            try:
                return attempt()
            except RetriableError as error:
                left = None if deadline is None else deadline - self._clock()
                if left is not None and left <= 0:
                    raise RecordError(
                        f"{error} It was tried again for {self._timeout:g} s (errors.retry.timeout)."
                    ) from error
                if self._ending():
                    raise
                self._wait(self._pause(delay, left))
                delay *= 2

    def _pause(self, delay: float, left: float | None) -> float:
        """Seconds to wait: *delay* up to the longest, from there on anything below it, as Kafka Connect does."""
        if delay > self._most_delay:
            delay = random.uniform(0, self._most_delay)
        return delay if left is None else min(delay, left)
