"""Objects that are read no further, because nobody knows where their next record begins. Pure."""

from __future__ import annotations

from headrace.connect.bad_record import BadRecord
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.task import Split
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.progress import QUARANTINED, path_of
from headrace.sources.extractors.damage import DamagedObjectError

# A reason may quote what it is about, and an offset is read at every start.
_MOST_CHARACTERS = 500

RELEASE = (
    "Move a whole file over it: it is read on where it begins with what was sent and its format can go on "
    "there; of any other one files.changed decides, which may be reread. Under another name the connector reads "
    "everything anew."
)


def quarantine(split: Split, damage: DamagedObjectError, *, topic: str | None) -> RecordError:
    """*damage* as the task raises it: with an entry that puts the rest of *split*'s object in quarantine.

    *split*'s offset is the one behind the last record that was read. The rest is one dead letter by reference.
    """
    details = SplitDetails.of(split.details)
    begun: dict[str, OffsetValue] = {"recordCount": 0, "anchor": details.start, "skip": 0}
    told = ": ".join(text for text in (damage.position, damage.reason) if text)[:_MOST_CHARACTERS]
    offset: dict[str, OffsetValue] = {
        **(split.offset or begun),
        "version": details.version,
        "size": details.size,
        "format": details.format,
        QUARANTINED: told,
    }
    rest = BadRecord(
        source_partition=split.partition,
        source_offset=offset,
        topic=topic,
        reference={"object": path_of(split.partition), "version": details.version, "rest": True},
        quarantines=True,
    )
    return RecordError(
        damage.reason,
        native_key=damage.native_key,
        position=damage.position,
        advice=damage.advice,
        bad=rest,
    )
