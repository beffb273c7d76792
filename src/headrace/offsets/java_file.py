"""Reads the offsets file of a standalone Java worker: a serialised ``HashMap<byte[], byte[]>``. Pure.

Serialised Java names the classes to instantiate, which is how such files attack their readers. Nothing is
instantiated here: the two expected classes are compared with their fixed bytes, and any other is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.codec import OffsetKey, decoded_key
from headrace.offsets.index import OffsetIndex

_STREAM = bytes.fromhex("ACED0005")
_OBJECT, _CLASS, _ARRAY, _REFERENCE, _NULL, _END = b"s", b"r", b"u", b"q", b"p", b"x"
_MAP = b"\x00\x11java.util.HashMap" + bytes.fromhex("0507DAC1C31660D1 03 0002")
_FIELDS = b"F\x00\x0aloadFactorI\x00\x09thresholdxp"
_FIELD_VALUES_BYTES = 8
_SIZES = bytes.fromhex("7708")
_BYTE_ARRAY = b"\x00\x02[B" + bytes.fromhex("ACF317F8060854E0 02 0000 7870")
_FIRST_HANDLE = 0x7E0000
# The map's class, the map, the class of byte arrays; then the arrays, in their order.
_ARRAY_CLASS_HANDLE = _FIRST_HANDLE + 2
_FIRST_ARRAY_HANDLE = _FIRST_HANDLE + 3


class OffsetsFileError(ValueError):
    """The content is not a complete offsets file of a Java worker; the message says where."""


def java_offset_entries(content: bytes) -> list[OffsetEntry]:
    """Keys and values as in an offsets topic, in the file's order; an empty file has none.

    A value of ``None`` is an offset that was removed. Raises :class:`OffsetsFileError`.
    """
    return _Reader(content).entries() if content else []


def java_offsets(content: bytes) -> Mapping[str, Mapping[SourcePartition, SourceOffset]]:
    """The offsets in the file by connector; entries that Kafka Connect could not read are logged and skipped.

    Raises :class:`OffsetsFileError`. Called once, by an import.
    """
    index, connectors = OffsetIndex(), dict[str, None]()
    entries = java_offset_entries(content)
    index.follow(entries)
    for key, _ in entries:
        named = decoded_key(key)
        if isinstance(named, OffsetKey):
            connectors[named.connector] = None
    known = {name: index.known(name) for name in connectors}
    return {name: offsets for name, offsets in known.items() if offsets}


@dataclass
class _Reader:
    content: bytes
    at: int = 0

    def __post_init__(self) -> None:
        self._arrays: list[bytes] = []
        self._knows_array_class = False

    def entries(self) -> list[OffsetEntry]:
        self._expect(_STREAM, "the head of serialised Java")
        self._expect(_OBJECT + _CLASS + _MAP + _FIELDS, "a java.util.HashMap and no other class")
        self._take(_FIELD_VALUES_BYTES)
        self._expect(_SIZES, "the sizes of a java.util.HashMap")
        self._number()
        count = self._number()
        if count < 0:
            raise self._wrong("a number of entries")
        pairs = [(self._bytes(), self._bytes()) for _ in range(count)]
        self._expect(_END, "the end of the map")
        if self.at != len(self.content):
            raise self._wrong("the end of the file after the map")
        # A null key belongs to no offset.
        return [(key, value) for key, value in pairs if key is not None]

    def _bytes(self) -> bytes | None:
        kind = self._take(1)
        if kind == _NULL:
            return None
        if kind == _REFERENCE:
            return self._referred()
        if kind != _ARRAY:
            raise self._wrong("a byte array")
        self._array_class()
        length = self._number()
        if length < 0:
            raise self._wrong("a length")
        self._arrays.append(self._take(length))
        return self._arrays[-1]

    def _array_class(self) -> None:
        kind = self._take(1)
        if kind == _CLASS and not self._knows_array_class:
            self._expect(_BYTE_ARRAY, "the class of byte arrays and no other")
            self._knows_array_class = True
        elif (
            kind != _REFERENCE
            or not self._knows_array_class
            or self._number() != _ARRAY_CLASS_HANDLE
        ):
            raise self._wrong("the class of byte arrays and no other")

    def _referred(self) -> bytes:
        index = self._number() - _FIRST_ARRAY_HANDLE
        if not 0 <= index < len(self._arrays):
            raise self._wrong("a reference to a byte array that came before")
        return self._arrays[index]

    def _number(self) -> int:
        return int.from_bytes(self._take(4), signed=True)

    def _expect(self, expected: bytes, what: str) -> None:
        if self._take(len(expected)) != expected:
            raise self._wrong(what)

    def _take(self, count: int) -> bytes:
        taken = self.content[self.at : self.at + count]
        if len(taken) < count:
            raise OffsetsFileError(
                f"The file ends at byte {len(self.content)}, in the middle of the offsets. Copy it while the "
                "Java worker is stopped."
            )
        self.at += count
        return taken

    def _wrong(self, expected: str) -> OffsetsFileError:
        return OffsetsFileError(
            f"This is not an offsets file of a Java worker: expected {expected} before byte {self.at}."
        )
