"""When the slots of an open micro-batch should end; pure."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.slot.work import EndReason, Outcome

_CUT_SHORT = (Outcome.FAILED, Outcome.REPLAN, Outcome.STALE)


def end_reason(
    ended: Sequence[Outcome], *, planned: bool, stopping: bool, over_budget: bool, others_wait: bool
) -> EndReason | None:
    """Why the slots that are left should end, or ``None``; *ended* is how the others did.

    A planned slot that is through leaves the rest alone, because their work is shared out. A polled one
    that was idle must get another turn, even if its siblings never are.
    """
    if stopping:
        return EndReason.STOP
    if any(each in _CUT_SHORT for each in ended):
        return EndReason.SIBLING
    if over_budget and (others_wait or (ended and not planned)):
        return EndReason.BUDGET
    return None
