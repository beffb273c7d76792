"""How a change that was interrupted is brought to an end. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from headrace.connect.task import Offsets
from headrace.runtime.offset_changes.difference import Known, difference, shows
from headrace.storage.changes import Intent, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What is left to do: *write* first, if there is any; then the change is done, or abandoned."""

    is_done: bool
    write: Offsets = field(default_factory=dict)


def settlement(intent: Intent, known: Known) -> Settlement:
    """The end of *intent*, whose connector has the offsets *known*, read after every writer was fenced.

    One that was being written is done if the store shows it. Everything else is taken back, which is also
    right for a writer without transactions, of which a part may have arrived.
    """
    entry = intent.entry
    if intent.phase is Phase.WRITING and shows(known, entry.after):
        return Settlement(is_done=True)
    target = dict.fromkeys(known) if intent.phase is Phase.WIPING else entry.before
    return Settlement(is_done=False, write=difference(known, target).after)
