"""The lease of a slot: a heartbeat to the driver, whose answers say whether the slot may continue."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.observe.log_format import LogForm
from headrace.task.channel import ChannelClient, Message
from headrace.task.logs import Follow
from headrace.task.slot_report import Progress
from headrace.task.slot_work import EndReason

_log = logging.getLogger(__name__)

_BEAT_SECONDS = 1.0


class Lease:
    """A slot's right to write. A thread of its own reports progress once a second and receives instructions.

    It is lost for good when the driver says that the token is no longer valid, or has not answered for
    *lease_seconds*. This is measured at each check, so that a process that was suspended finds the lease lost as
    soon as it resumes. The slot's thread checks before each poll, each send and each commit. *follow_log* is called
    with the worker's log settings at each answer.
    """

    def __init__(
        self,
        client: ChannelClient,
        progress: Progress,
        *,
        lease_seconds: float,
        beat_seconds: float = _BEAT_SECONDS,
        follow_log: Follow | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._progress = progress
        self._lease_seconds = lease_seconds
        self._beat_seconds = min(beat_seconds, lease_seconds / 3)
        self._clock = clock
        self._follow_log = follow_log
        self._answered_at = clock()
        self._withdrawn = False
        self._asked_to_end: str | None = None
        self._closed = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="headrace-lease", daemon=True)

    def start(self) -> None:
        """Start the heartbeat."""
        self._thread.start()

    def close(self) -> None:
        """End the heartbeat and its connection."""
        self._closed.set()
        self._ending.set()
        self._thread.join()
        self._client.close()

    @property
    def asked_to_end(self) -> str | None:
        """Why the driver wants the slot to end, or ``None``."""
        return self._asked_to_end

    def should_end(self) -> bool:
        """Whether the slot should end: the driver asked for it, or the lease is lost."""
        return self._asked_to_end is not None or self._lost() is not None

    def check(self) -> None:
        """Raise :class:`~headrace.connect.errors.StaleTokenError` when the lease is lost."""
        lost = self._lost()
        if lost:
            raise StaleTokenError(lost)

    def wait(self, seconds: float) -> None:
        """Wait; return early when the slot should end."""
        self._ending.wait(seconds)

    def pause(self, seconds: float) -> None:
        """Wait the whole time, even when the slot should end."""
        self._closed.wait(seconds)

    def end(self) -> None:
        """Make the slot end as if the driver had asked for it; the heartbeat continues."""
        self._note_answer(EndReason.SIBLING, valid=True)
        self._ending.set()

    def _lost(self) -> str | None:
        if self._withdrawn:
            return "The driver has given this slot's work to another."
        silence = self._clock() - self._answered_at
        if silence > self._lease_seconds:
            return f"The driver has not answered for {silence:.0f} s."
        return None

    def _beat(self) -> None:
        while not self._closed.wait(self._beat_seconds):
            asked_at = self._clock()
            try:
                answer = self._client.ask("beat", progress=self._progress.as_message())
            except RetriableError as error:
                _log.warning("%s", error)
            else:
                # A beat that was in flight while the process was suspended proves nothing about the time
                # after it was sent.
                self._answered_at = asked_at
                self._note_answer(answer.get("end"), valid=answer.get("valid") is True)
                self._follow(answer.get("log"))
            # The end of a budget interrupts no wait: a task that may continue for a while keeps its pace.
            if self.should_end() and self._asked_to_end != EndReason.BUDGET:
                self._ending.set()

    def _follow(self, log: Message | None) -> None:
        # The answer for an invalid token has none.
        if log is not None and self._follow_log is not None:
            self._follow_log(LogForm(**log))

    def _note_answer(self, end: str | None, *, valid: bool) -> None:
        self._withdrawn = self._withdrawn or not valid
        # A stop may follow the end of a budget, after which some tasks continue for a while.
        self._asked_to_end = end or self._asked_to_end
