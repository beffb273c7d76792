"""Columns of lists and maps, opened: where each row's elements are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def opened(values: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """The elements of all rows of a column of lists or maps, and the borders between the rows.

    Row *i* has the elements ``borders[i] … borders[i + 1]``; a null row has none. An element of a map is a
    struct of its key and its value. Pure, and not copied where the layout allows.
    """
    if pa.types.is_map(values.type):
        values = _as_lists(values)
    lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    borders = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=borders[1:])
    return borders, values.flatten()


def _as_lists(maps: pa.MapArray) -> pa.ListArray:
    """*maps* as lists of their entries, of which a cast would refuse those that lack what has to be there."""
    fields = [maps.type.key_field, maps.type.item_field]
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], fields=fields)
    return pa.ListArray.from_buffers(
        pa.list_(entries.type),
        len(maps),
        maps.buffers()[:2],
        null_count=maps.null_count,
        offset=maps.offset,
        children=[entries],
    )
