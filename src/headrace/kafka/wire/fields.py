"""The fields of an answer in Kafka's protocol, read one after the other where they were received."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, TypeVar

from headrace.kafka.wire.connection import uvarint

INT16: Final = struct.Struct(">h")
INT32: Final = struct.Struct(">i")
INT64: Final = struct.Struct(">q")

_Each = TypeVar("_Each")


class FieldReader:
    """Reads *body* from its begin; *is_flexible* says that it has compact lengths and tagged fields (KIP-482).

    Raises ``ValueError``, ``IndexError`` or ``struct.error`` for bytes that are not what they should be.
    """

    def __init__(self, body: memoryview, *, is_flexible: bool) -> None:
        self.body = body
        self.at = 0
        self._is_flexible = is_flexible

    def array(self, read: Callable[[], _Each]) -> list[_Each]:
        """An array; ``null`` is read as one without elements."""
        return [read() for _ in range(self._length(INT32))]

    def text(self) -> str:
        """A text; ``null`` is read as an empty one."""
        return str(self.taken(self._length(INT16)), "utf-8")

    def octets(self) -> memoryview:
        """A view on bytes; ``null`` is read as none."""
        return self.taken(self._length(INT32))

    def number(self, form: struct.Struct) -> int:
        """A number of that form."""
        (found,) = form.unpack_from(self.body, self.at)
        self.at += form.size
        return found

    def taken(self, length: int) -> memoryview:
        """A view on the next *length* bytes."""
        begin = self.at
        self.skip(length)
        return self.body[begin : self.at]

    def skip(self, length: int) -> None:
        """Pass *length* bytes."""
        self.at += length
        if self.at > len(self.body):
            raise ValueError("it is shorter than it says")

    def skip_tags(self) -> None:
        """Pass tagged fields, if there can be any."""
        if not self._is_flexible:
            return
        fields, self.at = uvarint(self.body, self.at)
        for _ in range(fields):
            _, self.at = uvarint(self.body, self.at)
            length, self.at = uvarint(self.body, self.at)
            self.skip(length)

    def _length(self, fixed: struct.Struct) -> int:
        """The length of what follows, 0 for ``null``; it is of the form *fixed* before flexible versions."""
        if not self._is_flexible:
            return max(0, self.number(fixed))
        length, self.at = uvarint(self.body, self.at)
        return max(0, length - 1)
