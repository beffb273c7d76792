"""Whether a name is free for another file, of which the entry still speaks of the one before. Pure."""

from __future__ import annotations

from typing import Final

from headrace.connectors.files.candidate import Rules
from headrace.connectors.files.progress import GONE, PENDING, Progress

SUCCESSOR: Final = (
    "It is another file than the one of this name whose records are committed; it is left as it is, and read as a "
    "new one."
)


def has_free_name(progress: Progress, rules: Rules) -> bool:
    """Whether another file may come under the name: all of this one is committed, and it is being taken away.

    With ``files.changed=ignore`` one that is there before it was found gone is left alone.
    """
    if not rules.removes:
        return False
    note = progress.cleanup
    return note == GONE or (note == PENDING and rules.changed != "ignore")
