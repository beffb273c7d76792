"""The pauses of a connector's run: after errors, while its polls are idle, and while its plans change nothing."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.micro_batch import BatchResult

# A second micro-batch right after a lost one often loses for the same reason.
_FIRST_SECONDS = 0.25
_LAST_SECONDS = 10.0


class Backoff:
    """The pauses of one connector's run, cut short when it is *stopping*. Used by its thread."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._seconds = 0.0

    def pause(self) -> None:
        """Wait before the next attempt, twice as long as last time up to a limit."""
        self._seconds = min(max(self._seconds * 2, _FIRST_SECONDS), _LAST_SECONDS)
        self._stopping.wait(self._seconds)

    def reset(self) -> None:
        """Make the next pause a short one, after progress."""
        self._seconds = 0.0


class PollBackoff:
    """The pauses of one idle polled connector: each twice as long as the previous one, until there is progress.

    Progress is a record, also a skipped one, or an offset that moves without a record: a task that keeps reading
    although nothing matches is not idle. Used by the connector's thread.
    """

    def __init__(self, *, first_seconds: float, longest_seconds: float) -> None:
        self._first_seconds = first_seconds
        self._longest_seconds = longest_seconds
        self._seconds = 0.0
        self._idle_since: Mapping[SourcePartition, SourceOffset] | None = None

    def ended(self, result: BatchResult | None, began_at: OffsetSnapshot) -> None:
        """Note the result of the micro-batch that began with the offsets *began_at*; ``None`` if it did not begin.

        A micro-batch whose slots were not all idle does not affect the pauses.
        """
        if result is None:
            return
        if result.brought_anything():
            self._seconds = 0.0
        elif result.idle():
            self._idle_since = began_at.known()

    def due(self, offsets: OffsetSnapshot) -> float | None:
        """How many seconds to pause before the next micro-batch; ``None`` when it may begin.

        A pause is due at most once for each micro-batch.
        """
        before, self._idle_since = self._idle_since, None
        if before is None:
            return None
        if before != offsets.known():
            self._seconds = 0.0
            return None
        self._seconds = min(max(self._seconds * 2, self._first_seconds), self._longest_seconds)
        return self._seconds


class NoProgressGuard:
    """Detects that micro-batches of a planned connector change nothing. Used by the connector's thread."""

    def __init__(self) -> None:
        self._fruitless_at: Mapping[SourcePartition, SourceOffset] | None = None
        self._followed_at: Mapping[SourcePartition, SourceOffset] | None = None
        self._reported = False

    def ended(
        self, result: BatchResult | None, began_at: OffsetSnapshot, *, followed: bool = False
    ) -> None:
        """Note the result of the micro-batch that was planned with the offsets *began_at*; ``None`` if it did not begin.

        One that was cut short is planned again for that reason, and says nothing about the plan. Nor does one whose
        slots *followed* their shares, if they were asked to end before they were idle, or were idle without a result
        for the first time: the next records may have come just after it.
        """
        if result is None or result.wants_new_plan() or result.failed_partitions():
            return
        if result.committed_records:
            self._reported = False
        elif result.clean and not (followed and self._says_nothing(result, began_at)):
            self._fruitless_at = began_at.known()

    def _says_nothing(self, result: BatchResult, began_at: OffsetSnapshot) -> bool:
        if result.was_asked():
            return True
        before, self._followed_at = self._followed_at, began_at.known()
        return before != self._followed_at

    def must_wait(self, offsets: OffsetSnapshot) -> bool:
        """Whether the last micro-batch changed nothing, so that the same work should be delayed.

        Called when there is work; ``True`` at most once for each micro-batch.
        """
        before, self._fruitless_at = self._fruitless_at, None
        if before is None:
            return False
        lasts = before == offsets.known()
        self._reported = self._reported and lasts
        return lasts

    def is_unreported(self) -> bool:
        """Whether it was not reported since the last progress; it counts as reported from then on."""
        reported, self._reported = self._reported, True
        return not reported
