"""What is wrong with source partitions and offsets that a user gives for a connector of the mirror, in MirrorMaker's words. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final, TypeGuard

from headrace.connect.errors import OffsetsError
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets

OFFSET: Final = "offset"
PARTITION: Final = "partition"

WRITTEN: Final[SourceOffset] = {OFFSET: 0}
"""The offset of what is not read from anywhere: heartbeats and checkpoints."""

_LARGEST: Final = 2**63 - 2
_LARGEST_PARTITION: Final = 2**31 - 1


def check_written(offsets: Offsets, texts: Collection[str], *, has_partition: bool = False) -> None:
    """Raise :class:`~headrace.connect.errors.OffsetsError` for *offsets* of records that are not read from anywhere.

    Their source partitions have *texts*, and the number of a partition where *has_partition*. What is stored may be removed
    whatever it is.
    """
    for partition, offset in offsets.items():
        if offset is None:
            continue
        for key in texts:
            text_in(partition, key)
        if has_partition:
            number_in(partition, PARTITION)
        called = f"Source offset {shown(offset)} for source partition {shown(partition)}"
        if whole_in(offset, OFFSET, called):
            raise OffsetsError(
                f"{called} has an invalid value {java(offset[OFFSET])} for the '{OFFSET}' key; the only accepted value is 0"
            )


def text_in(partition: SourcePartition, key: str) -> str:
    """The text under *key*; raises :class:`~headrace.connect.errors.OffsetsError`."""
    found = _given(partition, key)
    if not isinstance(found, str):
        raise OffsetsError(_invalid(partition, key, "which must be a string"))
    return found


def number_in(partition: SourcePartition, key: str) -> int:
    """The number of a partition under *key*; raises :class:`~headrace.connect.errors.OffsetsError`."""
    found = _given(partition, key)
    if not is_whole(found) or found > _LARGEST_PARTITION:
        raise OffsetsError(_invalid(partition, key, "which must be an integer"))
    if found < 0:
        raise OffsetsError(_invalid(partition, key, "which cannot be negative"))
    return found


def whole_in(offset: SourceOffset, key: str, called: str) -> int:
    """The whole number under *key* of *offset*, which is *called* so; raises :class:`~headrace.connect.errors.OffsetsError`."""
    if key not in offset:
        raise OffsetsError(f"{called} is missing the '{key}' key, which is required")
    found = offset[key]
    if not is_whole(found) or found > _LARGEST:
        raise OffsetsError(invalid_offset(offset, key, called, "which must be an integer"))
    return found


def invalid_offset(offset: SourceOffset, key: str, called: str, reason: str) -> str:
    """The sentence about the value of *key*."""
    return f"{called} has an invalid value {java(offset[key])} for the '{key}' key, {reason}"


def is_whole(value: object) -> TypeGuard[int]:
    """Whether *value* is an integer; Java has booleans apart."""
    return isinstance(value, int) and not isinstance(value, bool)


def shown(values: Mapping[str, OffsetValue]) -> str:
    """*values* as Java shows a map."""
    return f"{{{', '.join(f'{key}={java(value)}' for key, value in values.items())}}}"


def java(value: OffsetValue) -> str:
    """*value* as Java shows it."""
    if isinstance(value, bool):
        return str(value).lower()
    return "null" if value is None else str(value)


def _given(partition: SourcePartition, key: str) -> Any:  # noqa: ANN401 (checked by the callers)
    if partition.get(key) is None:
        raise OffsetsError(
            f"Source partition {shown(partition)} is missing the '{key}' key, which is required"
        )
    return partition[key]


def _invalid(partition: SourcePartition, key: str, reason: str) -> str:
    value = java(partition[key])
    return f"Source partition {shown(partition)} has an invalid value {value} for the '{key}' key, {reason}"
