"""The threads in which handlers are called: how many, and how long a request waits for its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from headrace.herder.errors import ServerError

REQUEST_SECONDS: Final = 90.0
"""How long Kafka Connect waits for its herder."""

_T = TypeVar("_T")
# More than clients usually have open; each waits in a thread.
_MOST_CALLS: Final = 100


class HandlerThreads:
    """Calls handlers, each in a thread of its own; used from one event loop.

    *stage* says what the worker is doing, for a request that timed out; it must not block. The threads are
    daemons: a call that never returns does not keep the process alive.
    """

    def __init__(
        self, stage: Callable[[], str | None], *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self._stage = stage
        self._seconds = seconds
        self._permits = asyncio.Semaphore(_MOST_CALLS)

    async def call(self, work: Callable[[], _T], *, at_once: bool = False) -> _T:
        """What *work* returns or raises; *at_once* work does not count towards the limit.

        Raises :class:`~headrace.herder.errors.ServerError` when it takes too long. It then continues in
        its thread, and may still take effect.
        """
        try:
            async with asyncio.timeout(self._seconds):
                if not at_once:
                    await self._permits.acquire()
                outcome = await self._started(work, None if at_once else self._permits)
        except TimeoutError:
            raise ServerError(self._too_late()) from None
        return outcome()

    def _started(
        self, work: Callable[[], _T], permit: asyncio.Semaphore | None
    ) -> asyncio.Future[Callable[[], _T]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Callable[[], _T]] = loop.create_future()

        def settle(outcome: Callable[[], _T]) -> None:
            if permit is not None:
                permit.release()
            if not future.done():
                future.set_result(outcome)

        def run() -> None:
            outcome = _outcome(work)
            # The loop is closed after the server has ended: then no one waits for the answer.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, outcome)

        try:
            threading.Thread(target=run, name="headrace-request", daemon=True).start()
        except RuntimeError:
            # The machine has no thread left; another request may use the permit.
            if permit is not None:
                permit.release()
            raise
        return future

    def _too_late(self) -> str:
        stage = self._stage()
        return f"Request timed out. {stage}" if stage else "Request timed out"


def _outcome(work: Callable[[], _T]) -> Callable[[], _T]:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 (raised again where it is waited for)
        raised = error

        def failed() -> _T:
            raise raised

        return failed
    return lambda: result
