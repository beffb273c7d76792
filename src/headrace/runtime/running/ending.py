"""When the slots of an open micro-batch should end; pure."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.slot.work import EndReason, Outcome

_CUT_SHORT = (Outcome.FAILED, Outcome.REPLAN)


def end_reason(
    ended: Sequence[Outcome],
    *,
    planned: bool,
    stopping: bool,
    reconfiguring: bool,
    over_budget: bool,
    others_wait: bool,
) -> EndReason | None:
    """Why the slots that are left should end, or ``None``; *ended* is how the others did.

    *stopping* is also true of a connector that has failed. A planned slot that is through leaves the rest
    alone, because their work is shared out. A polled one that was idle must get another turn, even if its
    siblings never are. A connector that asks for new tasks or a new plan may do so often: shares of a plan
    are not cut for it where that would cost their reading so far.
    """
    if stopping:
        return EndReason.STOP
    if any(each in _CUT_SHORT for each in ended):
        return EndReason.SIBLING
    if reconfiguring:
        return EndReason.BUDGET if planned else EndReason.RECONFIGURATION
    if over_budget and (others_wait or (ended and not planned)):
        return EndReason.BUDGET
    return None
