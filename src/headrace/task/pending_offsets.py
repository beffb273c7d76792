"""Source offsets that are about to be committed, and the checks of what ``update_offsets`` returns; pure."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn, cast

from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition, checked_values
from headrace.connect.task import Offsets
from headrace.offsets.codec import encoded_key, encoded_value


class PendingOffsets:
    """The newest offset of each source partition since the last commit."""

    def __init__(self) -> None:
        self._offsets: dict[SourcePartition, SourceOffset | None] = {}

    def put(self, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Note that everything of *partition* up to *offset* has been handed over."""
        self._offsets[partition] = offset

    def put_all(self, offsets: Offsets) -> None:
        """As :meth:`put`, for several partitions."""
        self._offsets.update(offsets)

    def end_at(self, partition: SourcePartition, offset: SourceOffset | None) -> bool:
        """Whether *offset* is the newest pending one of *partition*."""
        return partition in self._offsets and self._offsets[partition] == offset

    def so_far(self) -> Offsets:
        """A copy of the pending offsets."""
        return dict(self._offsets)

    def taken(self) -> Offsets:
        """The offsets to commit; none are pending afterwards."""
        offsets, self._offsets = self._offsets, {}
        return offsets


def read_only(offsets: Offsets) -> Offsets:
    """*offsets* as a task may see them: read-only, and so are the offsets in it (KIP-910)."""
    return MappingProxyType(
        {
            partition: None if offset is None else MappingProxyType(dict(offset))
            for partition, offset in offsets.items()
        }
    )


def changed(update: Offsets, before: Offsets) -> Offsets:
    """Those of *update* that differ from *before* in their stored form."""
    return {
        partition: offset
        for partition, offset in update.items()
        if partition not in before or _stored(offset) != _stored(before[partition])
    }


def checked_update(update: object) -> Offsets:
    """*update*, which ``update_offsets`` returned, if it is a mapping of partitions to offsets (KIP-910).

    Raises :class:`~headrace.connect.errors.TaskFailedError` for any other result.
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
        checked[partition] = _checked_offset(partition, offset)
    return checked


def raise_failed_update(error: Exception) -> NoReturn:
    """Raise *error* of ``update_offsets``, which fails a task with exactly-once.

    A ``ConnectError`` is raised unchanged; any other error is wrapped in one that names the hook.
    """
    if isinstance(error, ConnectError):
        raise error
    raise RuntimeError(
        f"update_offsets raised {type(error).__name__}: {error}. With exactly-once its result is part of the "
        "commit, so nothing since the previous commit was stored; those records are read again after a restart."
    ) from error


def _checked_offset(partition: SourcePartition, offset: object) -> SourceOffset | None:
    try:
        encoded_key("", partition)
        if offset is None:
            return None
        if not isinstance(offset, Mapping):
            raise TypeError(f"{offset!r} is not a mapping.")
        copied = dict(cast("SourceOffset", offset))
        checked_values(copied, "source offset")
        encoded_value(copied)
    except (TypeError, ValueError) as error:
        raise TaskFailedError(
            f"update_offsets returned an offset that cannot be stored: {error}"
        ) from error
    return copied


def _stored(offset: SourceOffset | None) -> bytes | None:
    return None if offset is None else encoded_value(offset)
