"""Past changes of offsets: how they are answered, and which of them can be undone. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.herder.answers import ChangedOffset, PastChange
from headrace.herder.errors import BadRequestError, NotFoundError
from headrace.offsets.alteration import Known, are_stored, difference
from headrace.offsets.codec import json_text
from headrace.storage.protocols import (
    HistoryEntry,
    Operation,
)

# As many as are readable in a message; the history and an export have all.
_MOST_LISTED = 20


def undoable(connector: str, number: int, entries: Sequence[HistoryEntry]) -> HistoryEntry:
    """Change *number* of *connector*, whose history are *entries*, the newest first.

    Raises :class:`~headrace.herder.errors.RequestError` for what cannot be undone whatever the
    offsets are.
    """
    entry = next((each for each in entries if each.id == number), None)
    if entry is None:
        raise NotFoundError(
            f"The history of connector {connector}'s offsets has no change {number}"
        )
    if entry.of_deleted:
        raise BadRequestError(
            f"Change {number} cannot be undone: it belongs to an earlier connector {connector}, which was "
            "deleted. Its offsets are in the history and can be set by hand."
        )
    if entry.operation is Operation.CREATE and entry.done:
        raise BadRequestError(
            f"Change {number} is the creation of connector {connector}. To undo it, reset the connector's "
            f"offsets and delete it.{_wiped_offsets(entry)}"
        )
    # Offsets that a creation wiped before it failed can be restored.
    if not entry.done and not _may_have_wiped(entry):
        raise _not_done(number)
    return entry


def refuse_undo(
    entry: HistoryEntry, entries: Sequence[HistoryEntry], known: Known, *, force: bool
) -> None:
    """Raise ``BadRequestError`` when *entry* is already undone, or undoing it would revert later progress as well.

    *known* are the current offsets, *entries* the connector's history, the newest first. With *force* only a
    change that was never done is refused. Offsets that were restored in another way are not an error: there is
    nothing to do.
    """
    if not entry.done and are_stored(known, entry.before):
        raise _not_done(entry.id)
    if force:
        return
    if are_stored(known, entry.before):
        by = _undone_by(entry, entries)
        if by is not None:
            raise BadRequestError(
                f"Change {entry.id} of connector {entry.connector} was already undone by change {by}"
            )
        return
    left = _left(entry)
    if not are_stored(known, left):
        raise BadRequestError(_moved_since(entry, left, known, list(difference(known, left).after)))


def _may_have_wiped(entry: HistoryEntry) -> bool:
    had_any = any(offset is not None for offset in entry.before.values())
    return entry.operation is Operation.CREATE and had_any


def _left(entry: HistoryEntry) -> Offsets:
    return entry.after if entry.done else dict.fromkeys(entry.before)


def _not_done(number: int) -> BadRequestError:
    return BadRequestError(f"Change {number} was not done, so there is nothing to undo")


def _undone_by(entry: HistoryEntry, entries: Sequence[HistoryEntry]) -> int | None:
    """The undo of *entry* after which no change has touched the same partitions."""
    touching = (each for each in entries if each.done and each.before.keys() & entry.before.keys())
    last = next(touching, None)
    return last.id if last is not None and last.undoes == entry.id else None


def past_change(entry: HistoryEntry) -> PastChange:
    """*entry* as it is answered."""
    return PastChange(
        id=entry.id,
        operation=entry.operation.value,
        who=entry.who,
        at_ms=entry.at_ms,
        done=entry.done,
        undoes=entry.undoes,
        of_deleted=entry.of_deleted,
        offsets=[
            ChangedOffset(partition=partition, before=entry.before.get(partition), after=after)
            for partition, after in entry.after.items()
        ],
    )


def _moved_since(
    entry: HistoryEntry, left: Offsets, known: Known, partitions: list[SourcePartition]
) -> str:
    """Why a change is not undone: its *partitions* have other offsets now than it *left*."""
    lines = (
        f"{json_text(partition)} was left at {json_text(left[partition])}, is now at "
        f"{json_text(known.get(partition))}, and would go back to {json_text(entry.before[partition])}"
        for partition in partitions
    )
    return (
        f"Change {entry.id} of connector {entry.connector} cannot be undone: offsets have moved since, and "
        f"records in between would be sent again or skipped: {listed(lines, len(partitions))}. Use force to "
        "undo it nevertheless."
    )


def _wiped_offsets(entry: HistoryEntry) -> str:
    """A sentence about the earlier connector's offsets that a creation wiped; empty if there were none."""
    lines = [
        f"{json_text(partition)} at {json_text(offset)}"
        for partition, offset in entry.before.items()
        if offset is not None
    ]
    if not lines:
        return ""
    wiped = listed(iter(lines), len(lines))
    return f" It wiped the offsets that the name had before, which can be set by hand: {wiped}."


def listed(lines: Iterator[str], count: int) -> str:
    """The first of *lines*, of which there are *count*, and how many more there are."""
    first = "; ".join(islice(lines, _MOST_LISTED))
    return first if count <= _MOST_LISTED else f"{first}; and {count - _MOST_LISTED} more"
