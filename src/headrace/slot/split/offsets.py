"""The moving numbers of source offsets, packed into one column of bytes; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

_BYTES = 8


def packed(columns: Mapping[str, pa.Int64Array], rows: int) -> pa.BinaryArray:
    """One value per row: the row's number of each of *columns*, eight bytes each."""
    width = _BYTES * len(columns)
    numbers = np.empty((rows, len(columns)), "<i8")
    for index, column in enumerate(columns.values()):
        numbers[:, index] = column.to_numpy()
    borders = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def unpacked(column: pa.BinaryArray, names: Sequence[str]) -> dict[str, pa.Int64Array]:
    """The columns *names* that :func:`packed` has made *column* of.

    Raises ``ValueError`` when it is not such a column.
    """
    width = _BYTES * len(names)
    _, borders, stored = column.buffers()
    starts = np.frombuffer(borders or b"", np.int32)[column.offset :][: len(column) + 1]
    if column.null_count or (np.diff(starts) != width).any():
        raise ValueError(f"The source offsets of rows are not {width} bytes each.")
    if not len(column) or not names:
        return {name: pa.array([], pa.int64()) for name in names}
    octets = np.frombuffer(stored or b"", np.uint8)[starts[0] : starts[-1]]
    numbers = octets.view("<i8").reshape(len(column), len(names))
    return {name: pa.array(numbers[:, index]) for index, name in enumerate(names)}
