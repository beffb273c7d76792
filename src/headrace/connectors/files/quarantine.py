"""Files that are read no further, because no one knows where their next record begins. Pure."""

from __future__ import annotations

from headrace.connect.errors import RecordError
from headrace.connect.partition import RECORD_COUNT, OffsetValue
from headrace.connect.task import Split
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.progress import number, path_of
from headrace.connectors.files.rereading import file_again
from headrace.formats.damage import DamagedObjectError
from headrace.formats.unpacking import DamagedPackingError
from headrace.sources.quarantine import quarantine_rest

_RELEASE = (
    "Move a whole file over it, as another file: what is written into it may count as the same one that grew. It "
    "is read on where it begins with what was sent and its format can go on there; of any other one files.changed "
    "decides, which may be reread. Or"
)


_SENT = "{count} {were} sent before the damage was found and may be wrong; compare {them} with an intact copy of the file."


def release(path: str) -> str:
    """How to get the file at *path* out of it."""
    return f"{_RELEASE} {file_again(path)}."


def quarantine(split: Split, damage: DamagedObjectError, *, topic: str | None) -> RecordError:
    """*damage* as the task raises it: with an entry that puts the rest of *split*'s object in quarantine.

    *split*'s offset is the one behind the last record that was read. The rest is one dead letter by reference. Of damaged
    packing it tells how many records were sent before that was found.
    """
    details = SplitDetails.of(split.details)
    begun: dict[str, OffsetValue] = {"recordCount": 0}
    if not details.seek:
        begun |= {"anchor": details.start, "skip": 0}
    return quarantine_rest(
        _counting_sent(damage, number(split.offset, RECORD_COUNT)),
        split.partition,
        {
            **(split.offset or begun),
            "version": details.version,
            "size": details.size,
            "format": details.format,
        },
        topic=topic,
        object_name=path_of(split.partition),
        version=details.version,
    )


def _counting_sent(damage: DamagedObjectError, sent: int) -> DamagedObjectError:
    if not damage.packing or not sent:
        return damage
    were, them = ("record was", "it") if sent == 1 else ("records were", "them")
    counted = DamagedPackingError(
        f"{damage.reason} {_SENT.format(count=sent, were=were, them=them)}",
        native_key=damage.native_key,
        position=damage.position,
        advice=damage.advice,
    )
    return DamagedObjectError(counted)
