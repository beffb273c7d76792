"""Offsets in requests and in files, differences between them, and the messages about them. Pure."""

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
    """The offsets that a request to alter them asks for; of several changes of one partition the last one counts.

    Raises :class:`~headrace.herder.errors.RequestError`: 400 for an empty request, and 500, as Kafka
    Connect does, for an invalid offset.
    """
    if not changes:
        raise BadRequestError(NOTHING_GIVEN)
    return _offsets(changes, ServerError)


def preset(changes: Sequence[OffsetChange]) -> Offsets:
    """The initial offsets of a creation (KIP-995); any other form than that of altering is a 400."""
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
            rule = "Offsets may only contain primitive types as values, but field"
            raise refused(f"{rule} {field} contains {kind}")
    return _normalised(cast("SourceOffset", given))


def _other_than_primitive(value: object) -> str | None:
    """Kafka Connect's name of *value*'s type, when an offset cannot hold it."""
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
    """*values* as they are after being stored and read again, which is how hooks and readers see them."""
    try:
        return cast("SourceOffset", decoded_value(encoded_value(values)))
    except ValueError as error:
        raise BadRequestError(str(error)) from error


Known = Mapping[SourcePartition, SourceOffset]
"""All offsets of a connector that are stored now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The partitions that change, with their offsets before and after; ``None`` for no offset."""

    before: Offsets
    after: Offsets

    def __bool__(self) -> bool:
        return bool(self.after)


def difference(known: Known, wanted: Offsets) -> Difference:
    """What changes when *wanted* is stored; partitions that do not change are left out."""
    changing = list(_unlike(known, wanted))
    return Difference(
        before={partition: known.get(partition) for partition in changing},
        after={partition: wanted[partition] for partition in changing},
    )


def shows(known: Known, offsets: Offsets) -> bool:
    """Whether *offsets* are stored, whatever other offsets there are."""
    return next(_unlike(known, offsets), None) is None


def wiped(known: Known, initial: Offsets) -> Offsets:
    """*initial*, with every other stored offset removed."""
    return {**dict.fromkeys(known), **initial}


def _unlike(known: Known, wanted: Offsets) -> Iterator[SourcePartition]:
    # Compared by their bytes: in Python, True equals 1 and 1.0.
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
# As many as are readable in a message; the history and an export have all.
_MOST_LISTED = 20


def success(operation: Operation, *, handled: bool) -> str:
    """Kafka Connect's sentence of success; *handled* is the answer of the connector's hook."""
    done = _DONE[operation]
    if handled:
        return f"The offsets for this connector have been {done} successfully"
    # The word "Connect" is in Kafka Connect's sentence, and not in KIP-995's for creations.
    framework = (
        "framework-managed" if operation is Operation.CREATE else "Connect framework-managed"
    )
    return (
        f"The {framework} offsets for this connector have been {done} successfully. However, if this "
        f"connector manages offsets externally, they will need to be manually {done} in the system that "
        "the connector uses."
    )


def unchanged(undone: int) -> str:
    """The answer to an undo of change *undone* that has nothing to restore."""
    return f"Nothing was changed: the offsets are already those from before change {undone}"


def preview(change: Difference, verdict: str) -> str:
    """The answer to a dry run."""
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
    """Why a change is not undone: its *partitions* have other offsets now than it *left*."""
    lines = (
        f"{shown(partition)} was left at {shown(left[partition])}, is now at "
        f"{shown(known.get(partition))}, and would go back to {shown(entry.before[partition])}"
        for partition in partitions
    )
    return (
        f"Change {entry.id} of connector {entry.connector} cannot be undone: offsets have moved since, and "
        f"records in between would be sent again or skipped: {_listed(lines, len(partitions))}. Use force to "
        "undo it nevertheless."
    )


def remnant(entry: HistoryEntry) -> str:
    """A sentence about the earlier connector's offsets that a creation wiped; empty if there were none."""
    lines = [
        f"{shown(partition)} at {shown(offset)}"
        for partition, offset in entry.before.items()
        if offset is not None
    ]
    if not lines:
        return ""
    wiped = _listed(iter(lines), len(lines))
    return f" It wiped the offsets that the name had before, which can be set by hand: {wiped}."


def shown(values: Mapping[str, OffsetValue] | None) -> str:
    """A partition or an offset as JSON."""
    return "null" if values is None else encoded_value(values).decode()


def _listed(lines: Iterator[str], count: int) -> str:
    listed = "; ".join(islice(lines, _MOST_LISTED))
    return listed if count <= _MOST_LISTED else f"{listed}; and {count - _MOST_LISTED} more"


class DocumentError(ValueError):
    """The text is not a file of offsets; the message says why."""


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
    """The changes that a file asks for; their partitions and offsets are not validated here.

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
