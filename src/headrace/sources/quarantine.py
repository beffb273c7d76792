"""Objects that are read no further, because no one knows where their next record begins. Pure."""

from __future__ import annotations

from headrace.connect.errors import RecordError
from headrace.connect.partition import RECORD_COUNT, OffsetValue, SourceOffset, SourcePartition
from headrace.connect.record import BadRecord
from headrace.connect.reread_commands import ALL_ANEW
from headrace.formats.damage import DamagedObjectError
from headrace.sources.offset_entry import QUARANTINED

# A reason may quote what it is about, and an offset is read at every start.
_MOST_CHARACTERS = 500

RELEASE = (
    "Put a whole object with another version in its place: native.changed decides about it. Or "
    f"{ALL_ANEW}."
)
"""How to get an object of an author's source out of it."""


def quarantine_rest(
    damage: DamagedObjectError,
    partition: SourcePartition,
    offset: SourceOffset,
    *,
    topic: str | None,
    object_name: str,
    version: OffsetValue,
) -> RecordError:
    """*damage* as a task raises it: with an entry that puts the rest of the object in quarantine.

    *offset* is the one behind the last record that was read of *partition*. The rest is one dead letter, by
    reference to *object_name* and its *version* (``None``: not known).
    """
    told = ": ".join(text for text in (damage.position, damage.reason) if text)[:_MOST_CHARACTERS]
    known = {"object": object_name, "version": version}
    rest = BadRecord(
        source_partition=partition,
        source_offset={**offset, QUARANTINED: told},
        topic=topic,
        reference={
            **{key: value for key, value in known.items() if value is not None},
            "rest": True,
        },
        quarantines=True,
    )
    return RecordError(
        damage.reason,
        native_key=damage.native_key,
        position=damage.position,
        advice=damage.advice,
        bad=rest,
    )


def quarantine_told(reason: OffsetValue, release: str = RELEASE) -> str:
    """What people are told of an object that is in quarantine for *reason*; *release* is how to get it out."""
    return f"It is in quarantine and read no further: {reason} {release}"


def sent_nothing(offset: SourceOffset) -> bool:
    """Whether *offset* puts an object in quarantine of which no record was sent.

    Another version of it has nothing to go on from, and begins again whatever is to be done with changed ones.
    """
    return bool(offset.get(QUARANTINED)) and not offset.get(RECORD_COUNT)
