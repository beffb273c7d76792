"""Source partitions and offsets as short bytes, for tables that hold a million of them. Pure.

The key is what stands between the braces of a partition as the offsets topic has it, and the table it
belongs to is that of the partition's names. The value is an offset as it was found, and its place.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from headrace.connect.java_text import json_quoted
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.storage.log_position import LogPosition
from headrace.storage.offset_codec import (
    Unreadable,
    decoded_key,
    encoded_members,
    in_java_order,
)

Names = tuple[str, ...]
"""The names in a partition, in the order in which its key has them."""

_EXACT: Final = frozenset({type(None), bool, int, str})
_NOT_PACKED: Final = re.compile(rb"[\x00\xfd-\xff]")
_ONE_TEXT: Final = re.compile(rb'"([^"\\]*)":"([^"\\]*)"')
_PLACE: Final = b"\xfe"
_text: Final = json.JSONDecoder()
# Printable ASCII without escapes: such a partition of one name has no other bytes that are ours.
_SIMPLE: Final = re.compile(rb'\["([ !#-\[\]-~]*)",\{("([ !#-\[\]-~]*)":"[ !#-\[\]-~]*")\}\]')


def packed_partition(partition: SourcePartition) -> tuple[Names, bytes] | None:
    """The names and the key of *partition*: equal ones have equal ones, and others have not.

    ``None`` where that is not so: for floats, bytes, and text that UTF-8 cannot hold.
    """
    if len(partition) == 1:
        ((name, value),) = partition.items()
        if type(value) is str and value.isascii() and name.isascii():
            # That of most, so that it pays to be fast.
            return (name,), f"{_quoted_name(name)}:{json_quoted(value)}".encode()
    values = dict(partition.items())
    if not _EXACT.issuperset(map(type, values.values())):
        return None
    names = _in_order(frozenset(values))
    try:
        return names, encoded_members(values, names)
    except ValueError:
        return None


_quoted_name: Final = lru_cache(maxsize=1000)(json_quoted)


@lru_cache(maxsize=1000)
def _in_order(names: frozenset[str]) -> Names:
    # Of names that share a bucket Java has the one first that was put first; we, always the same one.
    return tuple(in_java_order(sorted(names)))


def unpacked_partition(packed: bytes) -> SourcePartition:
    """The partition that :func:`packed_partition` made *packed* of."""
    found = _ONE_TEXT.fullmatch(packed)
    if found is not None:
        return SourcePartition({found[1].decode(): found[2].decode()})
    return SourcePartition(_values(b"{%b}" % packed))


@dataclass(frozen=True, slots=True)
class PackedKey:
    """A key of the offsets topic."""

    connector: str
    names: Names
    partition: bytes

    def whole(self) -> bytes:
        """The key as the offsets topic has it."""
        return _key(self.connector, self.partition)


def packed_key(key: bytes) -> PackedKey | None:
    """What *key* says, packed; ``None`` where its bytes are not ours or cannot be read."""
    found = _SIMPLE.fullmatch(key)
    if found is not None:
        return PackedKey(found[1].decode(), (found[3].decode(),), found[2])
    named = decoded_key(key)
    packed = None if isinstance(named, Unreadable) else packed_partition(named.partition)
    if isinstance(named, Unreadable) or packed is None:
        return None
    return PackedKey(named.connector, *packed) if key == _key(named.connector, packed[1]) else None


def _key(connector: str, partition: bytes) -> bytes:
    # A name that UTF-8 cannot hold has no key of ours.
    return b"[%b,{%b}]" % (json_quoted(connector).encode(errors="replace"), partition)


def packed_value(value: bytes, place: LogPosition) -> bytes | None:
    """The stored *value*, which can be decoded, with its *place*; ``None`` where its text is not packed."""
    if not value.startswith(b"{") or _NOT_PACKED.search(value):
        return None
    return b"%x,%x,%x\xfe%b" % (place.partition, place.offset, place.timestamp, value)


def unpacked_value(packed: bytes) -> tuple[bytes, LogPosition]:
    """The value and the place that :func:`packed_value` made *packed* of."""
    where, _, value = packed.partition(_PLACE)
    partition, offset, timestamp = (int(number, 16) for number in where.split(b","))
    return value, LogPosition(partition=partition, offset=offset, timestamp=timestamp)


def offset_in(packed: bytes) -> SourceOffset:
    """The offset that :func:`packed_value` made *packed* of."""
    return _values(packed[packed.index(_PLACE) + 1 :])


def _values(value: bytes) -> dict[str, OffsetValue]:
    return _text.raw_decode(value.decode("utf-8", "surrogatepass"))[0]
