"""Changes of offsets as the history tells them. Pure."""

from __future__ import annotations

from headrace.runtime.herder.answers import ChangedOffset, PastChange
from headrace.storage.changes import HistoryEntry


def past_change(entry: HistoryEntry) -> PastChange:
    """*entry* as it is answered."""
    return PastChange(
        id=entry.id,
        operation=entry.operation.value,
        who=entry.who,
        at_ms=entry.at_ms,
        done=entry.done,
        undoes=entry.undoes,
        of_deleted=entry.of_deleted,
        offsets=[
            ChangedOffset(partition=partition, before=entry.before.get(partition), after=after)
            for partition, after in entry.after.items()
        ],
    )
