"""A look at the first bytes of a stream before it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.formats.streams import ByteStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The first bytes that a reader will read, and what its offset says so far.

    *at_start* says that they are the object's first ones, too; *ended* that nothing follows them by now;
    *whole* that nothing will, so that a last row needs no line end.
    """

    content: bytes
    at_start: bool
    ended: bool
    whole: bool
    constants: Mapping[str, OffsetValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a format learns of the first *most_bytes* before it reads on.

    *learn* returns what is part of every record's offset from then on; what is stored under *key* there was
    learnt by an earlier reader, and no one looks again.
    """

    key: str
    most_bytes: int
    learn: Callable[[Sample], Mapping[str, OffsetValue]]


class SampledStream:
    """The bytes of *stream*, of which the first *most_bytes* are read at once: :attr:`sample`.

    There may be fewer; :attr:`ended` says that nothing follows. Where packed bytes are damaged, the error
    comes behind the bytes before it. Raises ``OSError`` as the stream does.
    """

    def __init__(self, stream: ByteStream, most_bytes: int) -> None:
        self._stream = stream
        self._failure: RecordError | None = None
        found = bytearray(most_bytes)
        with memoryview(found) as view:
            filled = self._filled(view)
        self.sample = bytes(found[:filled])
        self.ended = filled < most_bytes and self._failure is None
        self._held = memoryview(self.sample)

    def read_into(self, target: memoryview) -> int:
        """See :class:`~headrace.formats.streams.ByteStream`."""
        if self._held:
            count = min(len(target), len(self._held))
            target[:count] = self._held[:count]
            self._held = self._held[count:]
            return count
        if self._failure is not None:
            raise self._failure
        return self._stream.read_into(target)

    def close(self) -> None:
        """See :class:`~headrace.formats.streams.ByteStream`."""
        self._stream.close()

    def _filled(self, target: memoryview) -> int:
        filled = 0
        while filled < len(target):
            try:
                count = self._stream.read_into(target[filled:])
            except RecordError as error:
                self._failure = error
                break
            if not count:
                break
            filled += count
        return filled
