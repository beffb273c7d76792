"""What is answered to those who change offsets. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from headrace.connect.partition import OffsetValue, SourcePartition
from headrace.connect.task import Offsets
from headrace.runtime.offset_changes.difference import Difference, Known
from headrace.storage.changes import HistoryEntry, Operation
from headrace.storage.offset_codec import encoded_value

_DONE = {
    Operation.ALTER: "altered",
    Operation.RESET: "reset",
    Operation.CREATE: "set",
    Operation.UNDO: "restored",
}
# As many as a person reads; the history and an export have all.
_TOLD = 20


def success(operation: Operation, *, handled: bool) -> str:
    """Kafka Connect's sentence; *handled* is what the connector's hook answered."""
    done = _DONE[operation]
    if handled:
        return f"The offsets for this connector have been {done} successfully"
    # Kafka Connect says "Connect" in the one, and its proposal for creations does not.
    framework = (
        "framework-managed" if operation is Operation.CREATE else "Connect framework-managed"
    )
    return (
        f"The {framework} offsets for this connector have been {done} successfully. However, if this "
        f"connector manages offsets externally, they will need to be manually {done} in the system that "
        "the connector uses."
    )


def unchanged(undone: int) -> str:
    """The answer to an undo of change *undone* that has nothing to put back."""
    return f"Nothing was changed: the offsets are already what they were before change {undone}"


def preview(change: Difference, verdict: str) -> str:
    """What a dry run answers."""
    if not change:
        return f"Dry run: no offset would change. {verdict}"
    lines = (
        f"{shown(partition)} from {shown(change.before[partition])} to {shown(offset)}"
        for partition, offset in change.after.items()
    )
    return f"Dry run: these offsets would change: {_listed(lines, len(change.after))}. {verdict}"


def moved(
    entry: HistoryEntry, left: Offsets, known: Known, partitions: list[SourcePartition]
) -> str:
    """Why a change is not taken back: its *partitions* have other offsets now than it *left*."""
    lines = (
        f"{shown(partition)} was left at {shown(left[partition])}, is now at "
        f"{shown(known.get(partition))}, and would go back to {shown(entry.before[partition])}"
        for partition in partitions
    )
    return (
        f"Change {entry.id} of connector {entry.connector} cannot be undone: offsets have moved since, and "
        f"what lies between would be sent again or left out: {_listed(lines, len(partitions))}. Force it to "
        "go back nevertheless."
    )


def remnant(entry: HistoryEntry) -> str:
    """What a creation wiped of an earlier connector's offsets, as a sentence to add; empty for nothing."""
    lines = [
        f"{shown(partition)} at {shown(offset)}"
        for partition, offset in entry.before.items()
        if offset is not None
    ]
    if not lines:
        return ""
    wiped = _listed(iter(lines), len(lines))
    return f" It wiped what the name had before, which can be set by hand: {wiped}."


def shown(values: Mapping[str, OffsetValue] | None) -> str:
    """A partition or an offset as JSON."""
    return "null" if values is None else encoded_value(values).decode()


def _listed(lines: Iterator[str], count: int) -> str:
    told = "; ".join(islice(lines, _TOLD))
    return told if count <= _TOLD else f"{told}; and {count - _TOLD} more"
