"""Calls of blocking work from the server's event loop, with a limit to how long a request waits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Final, TypeVar

from headrace.runtime.herder.errors import ServerError

REQUEST_SECONDS: Final = 90.0
"""How long Kafka Connect waits for its herder."""

_T = TypeVar("_T")
# More than clients have open at one time; each waits in a thread.
_AT_ONE_TIME: Final = 100


class Calls:
    """Makes calls in threads of their own; used from one event loop.

    *stage* says what the worker is doing, for a request that took too long; it must not block. The threads
    are daemons: what a herder never answers keeps no process alive.
    """

    def __init__(
        self, stage: Callable[[], str | None], *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self._stage = stage
        self._seconds = seconds
        self._turns = asyncio.Semaphore(_AT_ONE_TIME)

    async def made(self, work: Callable[[], _T], *, at_once: bool = False) -> _T:
        """What *work* returns or raises; *at_once* work does not wait for its turn.

        Raises :class:`~headrace.runtime.herder.errors.ServerError` when it takes too long. It goes on in
        its thread then, and may still take effect.
        """
        try:
            async with asyncio.timeout(self._seconds):
                if not at_once:
                    await self._turns.acquire()
                outcome = await self._started(work, None if at_once else self._turns)
        except TimeoutError:
            raise ServerError(self._too_late()) from None
        return outcome()

    def _started(
        self, work: Callable[[], _T], turn: asyncio.Semaphore | None
    ) -> asyncio.Future[Callable[[], _T]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Callable[[], _T]] = loop.create_future()

        def settle(outcome: Callable[[], _T]) -> None:
            if turn is not None:
                turn.release()
            if not future.done():
                future.set_result(outcome)

        def run() -> None:
            outcome = _outcome(work)
            # The loop is closed when the server has gone: nobody waits for the answer then.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, outcome)

        try:
            threading.Thread(target=run, name="headrace-request", daemon=True).start()
        except RuntimeError:
            # The machine has no thread left; the turn is another request's.
            if turn is not None:
                turn.release()
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
