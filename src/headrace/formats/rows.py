"""A block of bytes that has been cut into rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Int64Array = NDArray[np.int64]

# Arrow's view of bytes: where they lie in which buffer, and how they begin, which no cast looks at. It holds so few itself.
_INLINE_BYTES: Final = 12
_VIEW: Final = np.dtype([("size", "<i4"), ("begin", "<u4"), ("buffer", "<i4"), ("at", "<i4")])


@dataclass(frozen=True, slots=True, kw_only=True)
class RowBlock:
    """Rows of one object, in order, as places in a buffer that its reader will overwrite.

    Row *i* is ``buffer[starts[i]:ends[i]]`` without its line end, and the next row begins at ``nexts[i]``.
    *base* is the object's byte at which the buffer begins.
    """

    buffer: Bytes
    base: int
    starts: Int64Array
    ends: Int64Array
    nexts: Int64Array

    def __len__(self) -> int:
        return len(self.starts)

    def slice(self, start: int, stop: int | None = None) -> RowBlock:
        """Rows from *start* to before *stop*, over the same buffer."""
        cut = np.s_[start:stop]
        return RowBlock(
            buffer=self.buffer,
            base=self.base,
            starts=self.starts[cut],
            ends=self.ends[cut],
            nexts=self.nexts[cut],
        )

    def pick(self, rows: Int64Array) -> RowBlock:
        """The rows with these indexes."""
        return RowBlock(
            buffer=self.buffer,
            base=self.base,
            starts=self.starts[rows],
            ends=self.ends[rows],
            nexts=self.nexts[rows],
        )

    def packed(self) -> RowBlock:
        """The same rows, one or more, with their line ends, in a buffer of their own; their positions are lost."""
        lengths = self.nexts - self.starts
        nexts = np.cumsum(lengths)
        starts = nexts - lengths
        begin, end = int(self.starts[0]), int(self.nexts[-1])
        change = np.zeros(end - begin + 1, np.int8)
        change[self.starts - begin] += 1
        # Where a row ends and the next one begins, nothing changes.
        change[self.nexts - begin] -= 1
        return RowBlock(
            buffer=self.buffer[begin:end][np.cumsum(change[:-1], dtype=np.int8) > 0],
            base=self.base,
            starts=starts,
            ends=starts + (self.ends - self.starts),
            nexts=nexts,
        )

    def row(self, index: int) -> bytes:
        """A copy of one row, without its line end."""
        return self.buffer[self.starts[index] : self.ends[index]].tobytes()

    def position(self, index: int) -> int:
        """The object's byte at which row *index* begins."""
        return self.base + int(self.starts[index])

    def column(self) -> pa.BinaryArray:
        """A copy of all rows as one column of bytes."""
        sizes = self.ends - self.starts
        if not len(self) or sizes.min() <= _INLINE_BYTES:
            return self._column_of_short()
        # One cast of views of the rows took less than a sixth of the time that the way for short ones takes.
        views = np.zeros(len(self), _VIEW)
        views["size"], views["at"] = sizes, self.starts
        buffers = [None, pa.py_buffer(views), pa.py_buffer(self.buffer)]
        return pa.Array.from_buffers(pa.binary_view(), len(self), buffers).cast(pa.binary())

    def _column_of_short(self) -> pa.BinaryArray:
        # An Arrow column has no gaps between its values, so each gap (a line end) becomes a value too,
        # and one `take` copies every other value: ten times as fast as making views that hold their bytes.
        count = len(self)
        if not count:
            return pa.array([], pa.binary())
        borders = np.empty(2 * count + 1, np.int32)
        borders[0:-1:2] = self.starts
        borders[1::2] = self.ends
        borders[-1] = self.ends[-1]
        gapped = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(borders), pa.py_buffer(self.buffer)]
        )
        return gapped.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))
