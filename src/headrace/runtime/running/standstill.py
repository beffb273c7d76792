"""Whether planned work gets anywhere, or the same is planned again and again for nothing."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.running.batch_run import BatchResult


class Standstill:
    """What the last micro-batch of a planned connector changed. Used by the connector's thread."""

    def __init__(self) -> None:
        self._fruitless_at: Mapping[SourcePartition, SourceOffset] | None = None
        self._told = False

    def ended(self, result: BatchResult | None, began_at: OffsetSnapshot) -> None:
        """Note how the micro-batch ended that was planned with the offsets *began_at*; ``None``: it did not begin.

        One that was cut short is planned again for that reason, and says nothing of the plan.
        """
        if result is None or result.wants_new_plan():
            return
        if result.committed_records:
            self._told = False
        elif result.clean:
            self._fruitless_at = began_at.known()

    def must_wait(self, offsets: OffsetSnapshot) -> bool:
        """Whether the last micro-batch has changed nothing, so that more work now would be the same.

        Asked when there is work; ``True`` at most once for each micro-batch.
        """
        before, self._fruitless_at = self._fruitless_at, None
        if before is None:
            return False
        lasts = before == offsets.known()
        self._told = self._told and lasts
        return lasts

    def is_news(self) -> bool:
        """Whether it has not been told since the last progress; it counts as told from then on."""
        told, self._told = self._told, True
        return not told
