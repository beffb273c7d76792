"""Offsets as people write and keep them: in requests, in files, as differences; and the sentences about them. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import cast

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.herder.answers import ConnectorOffset
from headrace.herder.errors import BadRequestError, RequestError, ServerError
from headrace.herder.requests import NOTHING_GIVEN, OffsetChange
from headrace.offsets.codec import decoded_value, encoded_value
from headrace.storage.protocols import HistoryEntry, Operation

_INT64 = range(-(2**63), 2**63)
_Refused = Callable[[str], RequestError]


def altered(changes: Sequence[OffsetChange]) -> Offsets:
    """What a request to alter offsets asks for; of several changes of one partition the last one counts.

    Raises :class:`~headrace.herder.errors.RequestError`: 400 for nothing at all, and 500, as Kafka
    Connect, for what is no offset.
    """
    if not changes:
        raise BadRequestError(NOTHING_GIVEN)
    return _offsets(changes, ServerError)


def preset(changes: Sequence[OffsetChange]) -> Offsets:
    """What a creation presets (KIP-995); any other form than that of altering is a 400."""
    if not changes:
        raise BadRequestError(
            "initial_offsets holds no partitions and offsets; leave it out, or give at least one"
        )
    return _offsets(changes, BadRequestError)


def _offsets(changes: Sequence[OffsetChange], refused: _Refused) -> Offsets:
    offsets = dict[SourcePartition, SourceOffset | None]()
    for change in changes:
        partition, offset = _read(change.partition, refused), _read(change.offset, refused)
        if partition is not None:
            offsets[SourcePartition(partition)] = offset
        elif offset is not None:
            raise refused("Partition objects cannot be null")
    return offsets


def _read(given: object, refused: _Refused) -> SourceOffset | None:
    if given is None:
        return None
    if not isinstance(given, Mapping):
        raise refused("Offsets must be specified as a Map")
    for field, value in cast("Mapping[object, object]", given).items():
        if not isinstance(field, str):
            raise refused("Offsets may only use String keys")
        kind = _other_than_primitive(value)
        if kind is not None:
            told = "Offsets may only contain primitive types as values, but field"
            raise refused(f"{told} {field} contains {kind}")
    return _normalised(cast("SourceOffset", given))


def _other_than_primitive(value: object) -> str | None:
    """What *value* is in Kafka Connect's words, when an offset cannot hold it."""
    match value:
        case None | str() | float():
            return None
        case int():
            return None if value in _INT64 else "class java.math.BigInteger"
        case Mapping():
            return "MAP"
        case list() | tuple():
            return "ARRAY"
        case _:
            return type(value).__name__


def _normalised(values: Mapping[str, OffsetValue]) -> SourceOffset:
    """*values* as they are after a way through the store, which is how hooks and readers see them."""
    try:
        return cast("SourceOffset", decoded_value(encoded_value(values)))
    except ValueError as error:
        raise BadRequestError(str(error)) from error


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


class DocumentError(ValueError):
    """The text is no file of offsets; the message says why."""


def exported(offsets: Iterable[ConnectorOffset]) -> str:
    """A file with *offsets*, one on each line, sorted, so that two files can be compared."""
    lines = sorted(
        f'{{"partition":{shown(each.partition)},"offset":{shown(each.offset)}}}' for each in offsets
    )
    if not lines:
        return '{"offsets":[]}\n'
    joined = ",\n".join(lines)
    return f'{{"offsets":[\n{joined}\n]}}\n'


def imported(text: str) -> list[OffsetChange]:
    """The changes that a file asks for; whoever makes them judges partitions and offsets.

    Raises :class:`DocumentError`.
    """
    try:
        parsed = cast("object", json.loads(text))
    except ValueError as error:
        raise DocumentError(f"It is not JSON: {error}") from error
    match parsed:
        case {"offsets": list(elements)} if len(cast("dict[str, object]", parsed)) == 1:
            return [_change(element) for element in cast("list[object]", elements)]
        case _:
            raise DocumentError("It is not an object with one member, the array 'offsets'")


def _change(element: object) -> OffsetChange:
    match element:
        case {"partition": partition, "offset": offset}:
            return OffsetChange(partition=cast("object", partition), offset=cast("object", offset))
        case _:
            raise DocumentError(
                "An element of 'offsets' is not an object with 'partition' and 'offset'"
            )
