"""Source partitions and offsets as the bytes of Kafka Connect's offsets topic, and back. Pure.

A key is ``["connector",{partition}]``, a value is ``{offset}``: JSON without spaces, in UTF-8. Kafka
Connect finds an offset by the *bytes* of its key, so the order of a partition's entries counts. It is
the order in which a Java ``HashMap`` iterates, whatever order the author wrote.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from headrace.connect.json_document import json_quoted
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.java.numbers import java_double
from headrace.kafka.sender import OffsetEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetKey:
    """What the key of a record in an offsets topic says."""

    connector: str
    partition: SourcePartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """A key or a value that neither headrace nor Kafka Connect has written; *reason* says why."""

    reason: str


def encoded_key(connector: str, partition: Mapping[str, OffsetValue]) -> bytes:
    """The key under which *partition*'s offset is stored.

    Raises ``ValueError`` for text that UTF-8 cannot hold.
    """
    return _utf8(f"[{json_quoted(connector)},{_object(partition)}]")


def encoded_value(offset: SourceOffset) -> bytes:
    """The stored form of *offset*; raises ``ValueError`` for text that UTF-8 cannot hold."""
    return _utf8(_object(offset))


def encoded_members(values: Mapping[str, OffsetValue], names: Iterable[str]) -> bytes:
    """The text between the braces of *values*, with *names* in this order.

    Raises ``ValueError`` for text that UTF-8 cannot hold.
    """
    return _utf8(_members(values, names))


def encoded_entries(connector: str, offsets: Offsets) -> list[OffsetEntry]:
    """One record for each of *offsets*; an offset of ``None`` becomes a tombstone."""
    return [
        (encoded_key(connector, partition), None if offset is None else encoded_value(offset))
        for partition, offset in offsets.items()
    ]


def decoded_key(key: bytes | None) -> OffsetKey | Unreadable:
    """What *key* says. Integers come back with 64 bits, other numbers as floats, bytes as base64 text."""
    parsed = _parsed(key)
    match parsed:
        case Unreadable():
            return parsed
        case [str(connector), dict(entries)]:
            values = _values(cast("dict[str, object]", entries))
            if isinstance(values, Unreadable):
                return values
            return OffsetKey(connector=connector, partition=SourcePartition(values))
        case [_, None]:
            return Unreadable(reason="it names no source partition")
        case _:
            return Unreadable(reason="it is not an array of a connector's name and an object")


def decoded_value(value: bytes | None) -> SourceOffset | Unreadable | None:
    """The offset that *value* holds; ``None`` for a tombstone."""
    if value is None:
        return None
    parsed = _parsed(value)
    if parsed is None or isinstance(parsed, Unreadable):
        return parsed
    if not isinstance(parsed, dict):
        return Unreadable(reason="it is not an object")
    return _values(cast("dict[str, object]", parsed))


def decoded_entries(entries: Iterable[OffsetEntry]) -> Mapping[str, Offsets]:
    """The offsets of each connector that *entries* store; raises ``ValueError`` for one that cannot be read."""
    offsets = dict[str, dict[SourcePartition, SourceOffset | None]]()
    for key, value in entries:
        place, offset = decoded_key(key), decoded_value(value)
        if isinstance(place, Unreadable) or isinstance(offset, Unreadable):
            raise ValueError(f"Invalid offset record with key {key!r}.")  # noqa: TRY004
        offsets.setdefault(place.connector, {})[place.partition] = offset
    return offsets


def json_text(values: Mapping[str, OffsetValue] | None) -> str:
    """A partition or an offset as JSON, for people to read."""
    return "null" if values is None else encoded_value(values).decode()


# ------------------------------------------------------------------ writing


def _object(values: Mapping[str, OffsetValue]) -> str:
    return f"{{{_members(values, in_java_order(values))}}}"


def _members(values: Mapping[str, OffsetValue], names: Iterable[str]) -> str:
    return ",".join([f"{json_quoted(name)}:{_value(values[name])}" for name in names])


def _value(value: OffsetValue) -> str:
    match value:
        case str():
            return json_quoted(value)
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return _double(value)
        case bytes():
            return f'"{base64.b64encode(value).decode()}"'


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{text!r} cannot be stored as a source offset: it contains an unpaired surrogate, "
            "which UTF-8 cannot encode."
        ) from error


def _double(value: float) -> str:
    return java_double(value) if math.isfinite(value) else json_quoted(java_double(value))


# ------------------------------------------------------------------ the order of a Java HashMap


def in_java_order(keys: Iterable[str]) -> list[str]:
    """*keys* as a ``java.util.HashMap`` iterates them: by bucket, and inside a bucket as inserted."""
    listed = list(keys)
    if len(listed) < 2:  # noqa: PLR2004 - one key has one order
        return listed
    last_bucket = _capacity(len(listed)) - 1
    return sorted(listed, key=lambda key: _spread(key) & last_bucket)


def _capacity(entries: int) -> int:
    capacity = 16
    while entries > capacity * 3 // 4:
        capacity *= 2
    return capacity


def _spread(key: str) -> int:
    hashed = 0
    for unit in _utf16_units(key):
        hashed = (31 * hashed + unit) & 0xFFFFFFFF
    return hashed ^ (hashed >> 16)


def _utf16_units(text: str) -> Iterator[int]:
    if text.isascii():
        yield from text.encode()
        return
    units = text.encode("utf-16-le", "surrogatepass")
    yield from (units[i] | units[i + 1] << 8 for i in range(0, len(units), 2))


# ------------------------------------------------------------------ reading


def _parsed(text: bytes | None) -> object:
    if text is None:
        return Unreadable(reason="it is empty")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        return Unreadable(reason=f"it is not JSON: {error}")


def _values(parsed: dict[str, object]) -> dict[str, OffsetValue] | Unreadable:
    for name, value in parsed.items():
        is_scalar = value is None or isinstance(value, str | float)
        if not is_scalar and not (isinstance(value, int) and -(2**63) <= value < 2**63):
            return Unreadable(reason=f"{name!r} is not null, a boolean, a number or a string")
    return cast("dict[str, OffsetValue]", parsed)
