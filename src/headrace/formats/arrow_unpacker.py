"""LZ4 and Zstandard frames, by pyarrow: unlike other libraries it bounds what one step unpacks."""

from __future__ import annotations

from io import BytesIO

import pyarrow as pa

from headrace.formats.readable import Readable
from headrace.formats.unpacking import INPUT_BYTES, cut_off, damaged


class ArrowUnpacker:
    """An ``Unpacker`` of *raw*, of the codec that pyarrow calls *noun*; at most a mebibyte is held."""

    def __init__(self, raw: Readable | BytesIO, noun: str) -> None:
        self._source = _Source(raw)
        self._noun = noun
        self._stream: pa.CompressedInputStream | None = None
        self.checked = 0
        """See :class:`~headrace.formats.streams.Unpacker`: pyarrow does not say where a frame ends."""

    def unpack(self) -> bytes:
        """See :class:`~headrace.formats.streams.Unpacker`."""
        try:
            out = self._opened().read(INPUT_BYTES)
        except OSError as error:
            raise self._explained(error) from error
        if not out and self._source.empty:
            raise cut_off(self._noun)
        return out

    def _opened(self) -> pa.CompressedInputStream:
        if self._stream is None:
            file = pa.PythonFile(self._source, mode="r")
            self._stream = pa.CompressedInputStream(file, self._noun)
        return self._stream

    def _explained(self, error: OSError) -> Exception:
        """What went wrong: the store, or else the data; pyarrow has one kind of error for both."""
        if self._source.failure is not None:
            return self._source.failure
        return cut_off(self._noun) if "Truncated" in str(error) else damaged(self._noun, error)


class _Source:
    """The file that pyarrow reads: *raw*, remembering how it failed."""

    closed = False

    def __init__(self, raw: Readable | BytesIO) -> None:
        self._raw = raw
        self.empty = True
        self.failure: OSError | None = None

    def read(self, size: int) -> bytes:
        try:
            found = self._raw.read(size) or b""
        except OSError as error:
            self.failure = error
            raise
        self.empty &= not found
        return found

    def close(self) -> None:
        """The stream's owner closes *raw*."""
