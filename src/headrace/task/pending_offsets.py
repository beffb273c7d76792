"""Source offsets that are about to be committed, and what ``update_offsets`` makes of them; pure."""

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
        """Note several offsets."""
        self._offsets.update(offsets)

    def end_at(self, partition: SourcePartition, offset: SourceOffset | None) -> bool:
        """Whether *offset* is the newest one of *partition*; not if the last commit took it."""
        return partition in self._offsets and self._offsets[partition] == offset

    def so_far(self) -> Offsets:
        """What a commit would take now; it does not change later."""
        return dict(self._offsets)

    def taken(self) -> Offsets:
        """The offsets to commit; none are pending afterwards."""
        offsets, self._offsets = self._offsets, {}
        return offsets


def read_only(offsets: Offsets) -> Offsets:
    """*offsets* as a task may see them: neither they nor what they are made of can be changed (KIP-910)."""
    return MappingProxyType(
        {
            partition: None if offset is None else MappingProxyType(dict(offset))
            for partition, offset in offsets.items()
        }
    )


def changed(update: Offsets, before: Offsets) -> Offsets:
    """Those of *update* that *before* does not have already, as the offsets topic would hold them."""
    return {
        partition: offset
        for partition, offset in update.items()
        if partition not in before or _stored(offset) != _stored(before[partition])
    }


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
        checked[partition] = _checked_offset(partition, offset)
    return checked


def raise_failed_update(error: Exception) -> NoReturn:
    """Raise that ``update_offsets`` has failed a task with exactly-once, for *error*.

    What headrace raises speaks for itself; anything else is told as what it is, with the hook's name.
    """
    if isinstance(error, ConnectError):
        raise error
    raise RuntimeError(
        f"update_offsets raised {type(error).__name__}: {error}. With exactly-once its result is part of the "
        "commit, so nothing since the commit before was stored; it is read again after a restart."
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
