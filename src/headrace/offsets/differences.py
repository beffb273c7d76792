"""Differences between the stored offsets of a connector and those that are wanted, and how they are shown. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.offsets.codec import encoded_value

# As many as are readable in a message; the history and an export have all.
_MOST_LISTED = 20

Known = Mapping[SourcePartition, SourceOffset]
"""All offsets of a connector that are stored now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The partitions that change, with their offsets before and after; ``None`` for no offset."""

    before: Offsets
    after: Offsets

    def __bool__(self) -> bool:
        return bool(self.after)


def difference(known: Known, wanted: Offsets) -> Difference:
    """What changes when *wanted* is stored; partitions that do not change are left out."""
    changing = list(_unlike(known, wanted))
    return Difference(
        before={partition: known.get(partition) for partition in changing},
        after={partition: wanted[partition] for partition in changing},
    )


def shows(known: Known, offsets: Offsets) -> bool:
    """Whether *offsets* are stored, whatever other offsets there are."""
    return next(_unlike(known, offsets), None) is None


def wiped(known: Known, initial: Offsets) -> Offsets:
    """*initial*, with every other stored offset removed."""
    return {**dict.fromkeys(known), **initial}


def _unlike(known: Known, wanted: Offsets) -> Iterator[SourcePartition]:
    # Compared by their bytes: in Python, True equals 1 and 1.0.
    return (
        partition
        for partition, offset in wanted.items()
        if _bytes(known.get(partition)) != _bytes(offset)
    )


def _bytes(offset: SourceOffset | None) -> bytes | None:
    return None if offset is None else encoded_value(offset)


def shown(values: Mapping[str, OffsetValue] | None) -> str:
    """A partition or an offset as JSON."""
    return "null" if values is None else encoded_value(values).decode()


def listed(lines: Iterator[str], count: int) -> str:
    """The first of *lines*, of which there are *count*, and how many more there are."""
    first = "; ".join(islice(lines, _MOST_LISTED))
    return first if count <= _MOST_LISTED else f"{first}; and {count - _MOST_LISTED} more"
