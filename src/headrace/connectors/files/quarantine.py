"""Files that are read no further, because nobody knows where their next record begins. Pure."""

from __future__ import annotations

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.task import Split
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.progress import path_of
from headrace.connectors.files.rereading import file_anew
from headrace.sources.extractors.damage import DamagedObjectError
from headrace.sources.quarantine import quarantine_rest

_RELEASE = (
    "Move a whole file over it, as another file: what is written into it may count as the same one that grew. It "
    "is read on where it begins with what was sent and its format can go on there; of any other one files.changed "
    "decides, which may be reread. Or"
)


def release(path: str) -> str:
    """How to get the file at *path* out of it."""
    return f"{_RELEASE} {file_anew(path)}."


def quarantine(split: Split, damage: DamagedObjectError, *, topic: str | None) -> RecordError:
    """*damage* as the task raises it: with an entry that puts the rest of *split*'s object in quarantine.

    *split*'s offset is the one behind the last record that was read. The rest is one dead letter by reference.
    """
    details = SplitDetails.of(split.details)
    begun: dict[str, OffsetValue] = {"recordCount": 0}
    if not details.seek:
        begun |= {"anchor": details.start, "skip": 0}
    return quarantine_rest(
        damage,
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
