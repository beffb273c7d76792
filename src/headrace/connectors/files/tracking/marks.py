"""A mark: the name up to which everything in a place is read. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.reread_commands import set_command
from headrace.connectors.files.selecting.addresses import Root

MARK = "mark"
KEY, MODIFIED = "key", "modified"
LOCAL = "/"
"""What the mark of local disk is of."""
# Clocks of stores and machines differ by seconds, and by an hour where one takes local time for UTC.
_SKEW_MS = 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """*key* is the greatest path or address that is passed, empty for none.

    *modified_ms* is when the file that was changed last among those that were passed was changed, in
    milliseconds since 1970; ``None`` where no one knows.
    """

    key: str = ""
    modified_ms: int | None = None

    def covers(self, path: str) -> bool:
        """Whether the file at *path* counts as read unless an entry says otherwise."""
        return path <= self.key

    def is_too_late(self, modified_ms: int | None, *, now_ms: float) -> bool:
        """Whether a file below the mark that was changed then was changed after all that was passed.

        A time that is not credible says nothing.
        """
        if self.modified_ms is None or modified_ms is None:
            return False
        return modified_ms > self.modified_ms and is_credible(modified_ms, now_ms=now_ms)

    def as_offset(self) -> SourceOffset:
        """Its form in the store of offsets."""
        told = {} if self.modified_ms is None else {MODIFIED: self.modified_ms}
        return {KEY: self.key, **told}


NO_MARK = Mark()


def is_credible(modified_ms: int, *, now_ms: float) -> bool:
    """Whether a file may have been changed then: not in the future, but for clocks that differ."""
    return modified_ms <= now_ms + _SKEW_MS


def place_of(root: Root | None) -> str:
    """What the mark of *root*, ``None`` for local disk, is of."""
    return LOCAL if root is None else root.address("")


def mark_partition(root: Root | None) -> SourcePartition:
    """The source partition of the mark of *root*."""
    return SourcePartition({MARK: place_of(root)})


def mark_of(offset: SourceOffset | None, partition: SourcePartition) -> Mark:
    """The mark that *offset*, which is *partition*'s, says.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for an offset that says none.
    """
    if offset is None:
        return NO_MARK
    key, modified = offset.get(KEY), offset.get(MODIFIED)
    if not isinstance(key, str) or not (modified is None or isinstance(modified, int)):
        raise TaskFailedError(
            f"The mark of files.tracking=ordered has the offset {dict(offset)}, which says no key. It was not "
            f"written by headrace. Stop the connector, remove the mark ({set_command(partition, None)}) and resume it: "
            "what has no offset of its own is read from the beginning then. Or give it another name, under which it "
            "reads everything again."
        )
    return Mark(key=key, modified_ms=modified)
