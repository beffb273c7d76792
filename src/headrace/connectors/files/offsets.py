"""What an offset of this connector may say, for people who set one. Pure."""

from __future__ import annotations

import json

from headrace.connect.errors import OffsetsError
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.local.identity import is_version
from headrace.connectors.files.prefix_fingerprint import CHECKED, CHECKSUM, DIGEST
from headrace.connectors.files.progress import (
    CLEANUP,
    FILENAME,
    GONE,
    MISSED,
    MISSING,
    PENDING,
    number,
)
from headrace.connectors.files.selecting.addresses import root_of
from headrace.connectors.files.tracking.marks import KEY, LOCAL, MARK, MODIFIED
from headrace.formats.avro.search import FIRST_BLOCK
from headrace.sources.offset_entry import QUARANTINED
from headrace.stores.catalogue import KINDS

_COUNTS = frozenset(
    {
        "recordCount",
        "anchor",
        "skip",
        "size",
        CHECKED,
        CHECKSUM,
        DIGEST,
        FIRST_BLOCK,
        MISSED,
        MISSING,
    }
)
_TEXTS = frozenset({"version", "format", "header", "types", QUARANTINED, CLEANUP})
_FIELDS = _COUNTS | _TEXTS | {"done"}
_RANGE = {"from", "to"}


def check_offsets(offsets: Offsets) -> None:
    """Raise :class:`~headrace.connect.errors.OffsetsError` for what a task could not resume from."""
    for partition, offset in offsets.items():
        if MARK in partition:
            _check_mark(partition, offset)
            continue
        _check_partition(partition)
        if offset is not None:
            _check_offset(offset, str(partition[FILENAME]))


def _check_mark(partition: SourcePartition, offset: SourceOffset | None) -> None:
    place = partition[MARK]
    if set(partition) != {MARK} or not isinstance(place, str) or not _is_place(place):
        known = ", ".join(f"{scheme}://" for scheme in KINDS)
        raise OffsetsError(
            f"The partition {_shown(partition)} must name one place under 'mark': / for local disk, or the root of a "
            f"store ({known}), such as s3://bucket/."
        )
    if offset is None:
        return
    unknown = sorted(set(offset) - {KEY, MODIFIED})
    if unknown:
        raise OffsetsError(
            f"The mark of {place} has the unknown field {unknown[0]!r}; known are {KEY}, {MODIFIED}."
        )
    key = offset.get(KEY)
    if not isinstance(key, str) or not key.startswith(place) or key == place:
        raise OffsetsError(
            f"The mark of {place} has {key!r} under 'key'; it must be an absolute path or an address there."
        )
    if MODIFIED in offset and not _is_count(offset[MODIFIED]):
        raise OffsetsError(
            f"The mark of {place} has {offset[MODIFIED]!r} under 'modified'; it must be milliseconds since 1970. "
            "Leave it out where it is not known."
        )


def _shown(partition: SourcePartition) -> str:
    return json.dumps(dict(partition), ensure_ascii=False)


def _is_place(place: str) -> bool:
    found = root_of(place)
    if found is None:
        return place == LOCAL
    root, selector = found
    return root.scheme in KINDS and bool(root.place) and not selector.text and place.endswith("/")


def _check_partition(partition: SourcePartition) -> None:
    path = partition.get(FILENAME)
    if not isinstance(path, str) or not (path.startswith("/") or _is_stored(path)):
        known = ", ".join(f"{scheme}://" for scheme in KINDS)
        raise OffsetsError(
            f"The partition {_shown(partition)} must name a file by its absolute path under 'filename', or an "
            f"object by its address ({known})."
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
        complaint = _complaint(key, value) or (
            _complaint_of_object(key) if _is_stored(path) else _complaint_of_file(key, value)
        )
        if complaint:
            raise OffsetsError(f"The offset of {path} has {value!r} under {key!r}; {complaint}")
    _check_together(offset, path)


def _check_together(offset: SourceOffset, path: str) -> None:
    if (CHECKED in offset) != (CHECKSUM in offset) or number(offset, CHECKED) > number(
        offset, "anchor"
    ):
        raise OffsetsError(
            f"The offset of {path} must have 'checked' and 'checksum' both or neither, and 'checked' not "
            "behind 'anchor'; leave both out to accept the file as it is."
        )
    if offset.get("skip", 0) and "anchor" not in offset:
        raise OffsetsError(f"The offset of {path} has 'skip' without the 'anchor' it counts from.")
    if offset.get(QUARANTINED) and offset.get("done"):
        raise OffsetsError(
            f"The offset of {path} has 'quarantined' and 'done': a file that was read to its end is not in "
            "quarantine. Leave one of them out."
        )
    if offset.get(CLEANUP) and not offset.get("done"):
        raise OffsetsError(
            f"The offset of {path} has 'cleanup' without 'done': nothing is done to a file before it was "
            "read to its end."
        )


def _complaint(key: str, value: OffsetValue) -> str | None:
    if key in _COUNTS and not _is_count(value):
        return "it must be a whole number that is not negative."
    if key in _TEXTS and not isinstance(value, str):
        return "it must be a string."
    if key == CLEANUP and value not in (PENDING, GONE):
        return (
            f"it must be {PENDING} or {GONE}; leave it out where nothing is to be done to the file."
        )
    if key == "done" and not isinstance(value, bool):
        return "it must be true or false."
    return None


def _complaint_of_file(key: str, value: OffsetValue) -> str | None:
    if key == "version" and not is_version(str(value)):
        return (
            "it must have the form that headrace writes; leave it out to accept the file as it is."
        )
    return None


def _complaint_of_object(key: str) -> str | None:
    if key in (CHECKED, CHECKSUM, DIGEST):
        return "an object of a store is known by its version; leave it out."
    return None


def _is_stored(path: str) -> bool:
    found = root_of(path)
    return found is not None and found[0].scheme in KINDS and bool(found[1].text)


def _is_count(value: OffsetValue) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
