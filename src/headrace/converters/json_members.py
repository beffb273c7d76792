"""Members of JSON objects that come from maps: of one name, only one is written."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa


def last_of_each(
    borders: npt.NDArray[np.int32], entries: pa.StructArray
) -> tuple[npt.NDArray[np.int32], pa.StructArray]:
    """*entries* of maps with only the last of each key, in the place of the first, as a Java map has them.

    Row *i* has the entries ``borders[i] … borders[i + 1]``; the borders of what is left come with it.
    """
    rows = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    codes = entries.field(0).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first, inverse = np.unique(
        rows * (len(entries) + 1) + codes, return_index=True, return_inverse=True
    )
    if len(first) == len(entries):
        return borders, entries
    last = np.zeros(len(first), np.int64)
    # Of several writes to one place the last one stays.
    last[inverse] = np.arange(len(entries))
    order = np.argsort(first)
    kept = np.bincount(rows[first], minlength=len(borders) - 1)
    fewer = np.concatenate(([0], np.cumsum(kept))).astype(np.int32)
    return fewer, entries.take(pa.array(last[order]))
