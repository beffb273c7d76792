"""Source offsets that are about to be committed; pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition, checked_values
from headrace.connect.task import Offsets


class PendingOffsets:
    """The newest offset of each source partition since the last commit."""

    def __init__(self) -> None:
        self._offsets: dict[SourcePartition, SourceOffset | None] = {}

    def __bool__(self) -> bool:
        return bool(self._offsets)

    def put(self, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Note that everything of *partition* up to *offset* has been handed over."""
        self._offsets[partition] = offset

    def put_all(self, offsets: Offsets) -> None:
        """Note several offsets."""
        self._offsets.update(offsets)

    def shown(self) -> Offsets:
        """A view for ``update_offsets``, which cannot be changed through it."""
        return MappingProxyType(dict(self._offsets))

    def taken(self) -> Offsets:
        """The offsets to commit; none are pending afterwards."""
        offsets, self._offsets = self._offsets, {}
        return offsets


def checked_update(update: object) -> Offsets:
    """What ``update_offsets`` returned, if it is a mapping of partitions to offsets (KIP-910).

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a result of another shape.
    """
    if update is None:
        return {}
    if not isinstance(update, Mapping):
        raise TaskFailedError(f"update_offsets returned {update!r}, which is not a mapping.")
    checked: dict[SourcePartition, SourceOffset | None] = {}
    for partition, offset in cast("Offsets", update).items():
        if not isinstance(partition, SourcePartition):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TaskFailedError(
                f"update_offsets returned the key {partition!r}, which is not a SourcePartition."
            )
        checked[partition] = _checked_offset(offset)
    return checked


def _checked_offset(offset: SourceOffset | None) -> SourceOffset | None:
    if offset is None:
        return None
    try:
        checked_values(dict(offset), "source offset")
    except (TypeError, ValueError) as error:
        raise TaskFailedError(
            f"update_offsets returned an offset that cannot be stored: {error}"
        ) from error
    return dict(offset)
