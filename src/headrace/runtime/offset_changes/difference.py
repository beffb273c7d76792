"""What a change of offsets changes, and whether the store shows it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.storage.offset_codec import encoded_value

Known = Mapping[SourcePartition, SourceOffset]
"""All offsets of a connector, as they are stored now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The partitions that change, with their offsets before and after; ``None`` for no offset."""

    before: Offsets
    after: Offsets

    def __bool__(self) -> bool:
        return bool(self.after)


def difference(known: Known, wanted: Offsets) -> Difference:
    """What changes when *wanted* is stored; partitions that are as wanted are left out."""
    changing = list(_unlike(known, wanted))
    return Difference(
        before={partition: known.get(partition) for partition in changing},
        after={partition: wanted[partition] for partition in changing},
    )


def shows(known: Known, offsets: Offsets) -> bool:
    """Whether *offsets* are stored, whatever else is."""
    return next(_unlike(known, offsets), None) is None


def wiped(known: Known, initial: Offsets) -> Offsets:
    """*initial*, and nothing else of what is stored."""
    return {**dict.fromkeys(known), **initial}


def _unlike(known: Known, wanted: Offsets) -> Iterator[SourcePartition]:
    # By their bytes: Python has True equal to 1 and 1.0.
    return (
        partition
        for partition, offset in wanted.items()
        if _bytes(known.get(partition)) != _bytes(offset)
    )


def _bytes(offset: SourceOffset | None) -> bytes | None:
    return None if offset is None else encoded_value(offset)
