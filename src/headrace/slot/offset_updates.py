"""When a task may move offsets without records (KIP-910), and what it has moved."""

from __future__ import annotations

from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.slot.hooks import overrides
from headrace.slot.pending import changed, checked_update, read_only

# More than most tasks ever have; a task with more gets some offsets committed that have not changed.
_MOST_KNOWN = 10_000


class OffsetUpdates:
    """Asks *task* for ``update_offsets``, when all that it has polled is sent. Used by the writing half.

    A task that returns its own position is ahead of what is committed in the middle of a poll. *stored* reads
    the offsets that were committed before this slot began.
    """

    def __init__(self, task: SourceTask, stored: OffsetReader | None) -> None:
        self._task = task
        self._stored = stored
        self._is_wanted = overrides(task, "update_offsets")
        self._known: dict[SourcePartition, SourceOffset | None] = {}
        self._untold: dict[SourcePartition, SourceOffset | None] = {}
        self._was_asked = False
        self._moved = 0
        self.inside_poll = False
        """Whether something of the last poll is not sent yet, or the poll did not return."""
        self.is_overdue = False
        """Whether the last commit was in the middle of a poll, where the task could not be asked."""

    def asked(self, pending: Offsets) -> Offsets:
        """What the task changes in the commit of *pending*; nothing where it may not be asked.

        It is shown *pending*, and what was committed since it was asked last. Raises what the task raises, and
        :class:`~headrace.connect.errors.TaskFailedError` for a result of wrong shape.
        """
        self._was_asked, self._moved = False, 0
        if not self._is_wanted or self.inside_poll:
            return {}
        shown = read_only({**self._untold, **pending})
        update = checked_update(self._task.update_offsets(shown))
        self._was_asked = True
        added = update.keys() - pending.keys()
        moved = changed(update, {**self._committed(added), **pending})
        self._moved = len(added & moved.keys())
        return moved

    def committed(self, offsets: Offsets) -> int:
        """Note that *offsets* are committed, whether or not the task was asked; how many it moved without records."""
        if not self._is_wanted:
            return 0
        self.is_overdue = self.inside_poll
        if self._was_asked:
            self._untold.clear()
        else:
            self._untold.update(offsets)
        self._known.update(offsets)
        if len(self._known) > _MOST_KNOWN:
            # What the store had before is older than what is forgotten here.
            self._known, self._stored = {}, None
        return self._moved

    def _committed(self, partitions: set[SourcePartition]) -> Offsets:
        unknown = partitions - self._known.keys()
        if unknown and self._stored is not None:
            self._known.update(self._stored.offsets(unknown))
        return {each: self._known[each] for each in partitions & self._known.keys()}
