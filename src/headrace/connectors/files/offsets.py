"""What an offset of this connector may say, for people who set one. Pure."""

from __future__ import annotations

from headrace.connect.errors import OffsetsError
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.identity import is_version
from headrace.connectors.files.progress import FILENAME, number
from headrace.connectors.files.proof import CHECKED, CHECKSUM

_COUNTS = frozenset({"recordCount", "anchor", "skip", "size", CHECKED, CHECKSUM})
_TEXTS = frozenset({"version", "format", "header"})
_FIELDS = _COUNTS | _TEXTS | {"done"}
_RANGE = {"from", "to"}


def check_offsets(offsets: Offsets) -> None:
    """Raise :class:`~headrace.connect.errors.OffsetsError` for what a task could not resume from."""
    for partition, offset in offsets.items():
        _check_partition(partition)
        if offset is not None:
            _check_offset(offset, str(partition[FILENAME]))


def _check_partition(partition: SourcePartition) -> None:
    path = partition.get(FILENAME)
    if not isinstance(path, str) or not path.startswith("/"):
        raise OffsetsError(
            f"The partition {dict(partition)} must name a file by its absolute path under 'filename'."
        )
    ranged = set(partition) - {FILENAME}
    if ranged and (ranged != _RANGE or not all(_is_count(partition[key]) for key in _RANGE)):
        raise OffsetsError(
            f"The partition of {path} may have besides 'filename' only 'from' and 'to', "
            "both of them, as byte positions."
        )


def _check_offset(offset: SourceOffset, path: str) -> None:
    unknown = sorted(set(offset) - _FIELDS)
    if unknown:
        raise OffsetsError(
            f"The offset of {path} has the unknown field {unknown[0]!r}; "
            f"known are {', '.join(sorted(_FIELDS))}."
        )
    for key, value in offset.items():
        complaint = _complaint(key, value)
        if complaint:
            raise OffsetsError(f"The offset of {path} has {value!r} under {key!r}; {complaint}")
    if (CHECKED in offset) != (CHECKSUM in offset) or number(offset, CHECKED) > number(
        offset, "anchor"
    ):
        raise OffsetsError(
            f"The offset of {path} must have 'checked' and 'checksum' both or neither, and 'checked' not "
            "behind 'anchor'; leave both out to accept the file as it is."
        )
    if offset.get("skip", 0) and "anchor" not in offset:
        raise OffsetsError(f"The offset of {path} has 'skip' without the 'anchor' it counts from.")


def _complaint(key: str, value: OffsetValue) -> str | None:
    if key in _COUNTS and not _is_count(value):
        return "it must be a whole number that is not negative."
    if key in _TEXTS and not isinstance(value, str):
        return "it must be a string."
    if key == "done" and not isinstance(value, bool):
        return "it must be true or false."
    if key == "version" and not is_version(str(value)):
        return (
            "it must have the form that headrace writes; leave it out to accept the file as it is."
        )
    return None


def _is_count(value: OffsetValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
