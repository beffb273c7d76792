"""Validation of the offsets in requests: those of an alteration, and initial ones. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.herder.errors import BadRequestError, RequestError, ServerError
from headrace.herder.requests import NOTHING_GIVEN, OffsetChange
from headrace.offsets.codec import decoded_value, encoded_value

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
