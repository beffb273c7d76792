"""Offsets that move without records (KIP-910): calls ``update_offsets`` of a task, and checks what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn, cast

from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition, checked_values
from headrace.connect.task import Offsets, SourceTask
from headrace.offsets.codec import encoded_key, encoded_value
from headrace.task.commit_hooks import overrides

# More than most tasks ever have; a task with more gets some offsets committed that have not changed.
_MOST_KNOWN = 10_000


class OffsetUpdates:
    """Calls ``update_offsets`` of *task*, when everything that it has polled is sent. Used by the writer.

    In the middle of a poll, a task that returns its own position would be ahead of what is committed. *stored*
    reads the offsets that were committed before this slot began.
    """

    def __init__(self, task: SourceTask, stored: OffsetReader | None) -> None:
        self._task = task
        self._stored = stored
        self._is_wanted = overrides(task, "update_offsets")
        self._known: dict[SourcePartition, SourceOffset | None] = {}
        self._unreported: dict[SourcePartition, SourceOffset | None] = {}
        self._was_asked = False
        self._moved = 0
        self.inside_poll = False
        """Whether records of the last poll are not sent yet, or the poll has not returned."""
        self.is_overdue = False
        """Whether the last commit was in the middle of a poll, when the task could not be asked."""

    def asked(self, pending: Offsets) -> Offsets:
        """What the task changes in the commit of *pending*; nothing when it must not be asked.

        It is shown *pending* and what was committed since it was last asked. Raises what the task raises, and
        :class:`~headrace.connect.errors.TaskFailedError` for a result of the wrong type.
        """
        self._was_asked, self._moved = False, 0
        if not self._is_wanted or self.inside_poll:
            return {}
        shown = read_only({**self._unreported, **pending})
        update = checked_update(self._task.update_offsets(shown))
        self._was_asked = True
        added = update.keys() - pending.keys()
        moved = changed(update, {**self._committed(added), **pending})
        self._moved = len(added & moved.keys())
        return moved

    def committed(self, offsets: Offsets) -> int:
        """Note that *offsets* are committed, whether or not the task was asked; returns how many moved without records."""
        if not self._is_wanted:
            return 0
        self.is_overdue = self.inside_poll
        if self._was_asked:
            self._unreported.clear()
        else:
            self._unreported.update(offsets)
        self._known.update(offsets)
        if len(self._known) > _MOST_KNOWN:
            # The offsets that the store had before are older than those forgotten here.
            self._known, self._stored = {}, None
        return self._moved

    def _committed(self, partitions: set[SourcePartition]) -> Offsets:
        unknown = partitions - self._known.keys()
        if unknown and self._stored is not None:
            self._known.update(self._stored.offsets(unknown))
        return {each: self._known[each] for each in partitions & self._known.keys()}


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
