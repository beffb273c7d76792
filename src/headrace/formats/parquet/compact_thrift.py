"""Thrift's compact protocol, as far as reading numbers and lists of structs out of it takes. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

_STOP = 0
_TRUE, _FALSE = 1, 2
_BYTE, _INT16, _INT64 = 3, 4, 6
_DOUBLE, _BINARY, _LIST, _SET, _MAP = 7, 8, 9, 10, 11
STRUCT: Final = 12
_LONG_LIST = 15
# A number has seven bits in each byte, and this one in all but the last.
_MORE = 0x80
_MOST_BITS = 70
_WIDTHS = {_TRUE: 0, _FALSE: 0, _BYTE: 1, _DOUBLE: 8}
INT64: Final = _INT64


class CompactReader:
    """Reads *content* from its first byte on, which is a struct's. Raises ``ValueError`` for what is no sound content.

    Source: Apache Thrift, thrift-compact-protocol.md.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._at = 0

    def fields(self) -> Iterator[tuple[int, int]]:
        """Number and type of each field of the struct that begins here; each has to be read before the next."""
        number = 0
        while (head := self._byte()) != _STOP:
            number = number + (head >> 4) if head >> 4 else self.integer()
            yield number, head & 15

    def items(self) -> tuple[int, int]:
        """Number and type of the elements of the list that begins here; each has to be read."""
        head = self._byte()
        short = head >> 4
        return self._counted(self._varint() if short == _LONG_LIST else short), head & 15

    def integer(self) -> int:
        """A whole number of 16 to 64 bits."""
        told = self._varint()
        return (told >> 1) ^ -(told & 1)

    def skip(self, kind: int) -> None:
        """Go behind the value of a field of type *kind*."""
        if kind == _BINARY:
            length = self._varint()
            self._at += length
        elif _INT16 <= kind <= _INT64:
            self._varint()
        elif kind == STRUCT:
            for _, inner in self.fields():
                self.skip(inner)
        elif kind in (_LIST, _SET):
            count, inner = self.items()
            for _ in range(count):
                self._skip_element(inner)
        elif kind == _MAP:
            self._skip_map()
        elif kind in _WIDTHS:
            self._at += _WIDTHS[kind]
        else:
            raise ValueError(f"there is no type {kind}")

    def _skip_element(self, kind: int) -> None:
        # Booleans have a byte of their own only where no field's head can hold them.
        if kind in (_TRUE, _FALSE):
            self._at += 1
        else:
            self.skip(kind)

    def _skip_map(self) -> None:
        count = self._counted(self._varint())
        kinds = self._byte() if count else 0
        for _ in range(count):
            self._skip_element(kinds >> 4)
            self._skip_element(kinds & 15)

    def _counted(self, count: int) -> int:
        """*count* of elements, each of which has a byte at least."""
        if count > len(self._content) - self._at:
            raise ValueError("it ends inside a value")
        return count

    def _byte(self) -> int:
        try:
            found = self._content[self._at]
        except IndexError:
            raise ValueError("it ends inside a value") from None
        self._at += 1
        return found

    def _varint(self) -> int:
        found = self._byte()
        if found < _MORE:
            return found
        found, shift = found - _MORE, 7
        while (digit := self._byte()) >= _MORE:
            found |= (digit - _MORE) << shift
            shift += 7
            if shift >= _MOST_BITS:
                raise ValueError("it has a number of more than 64 bits")
        return found | digit << shift
