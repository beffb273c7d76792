"""Keys and values that are not there: null, which most transformations pass on as it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.columns import JSON_NULL


def is_absent(value: object) -> bool:
    """Whether *value* is null, the JSON document null included."""
    return value is None or value is JSON_NULL


def is_all_null(column: pa.Array | None) -> bool:
    """Whether no row of *column* is there."""
    return column is None or column.null_count == len(column)


def where_present(
    batch: SourceBatch, column: pa.Array, change: Callable[[SourceBatch], SourceBatch | None]
) -> Sequence[SourceBatch] | None:
    """*batch* with *change* where its *column* is not null, in runs of rows: a change may be one of the schema, too.

    ``None`` when *change* has no way.
    """
    changed = list[SourceBatch]()
    for start, length, present in _runs(column):
        run = batch if length == len(batch) else batch.slice(start, length)
        behind = change(run) if present else run
        if behind is None:
            return None
        changed.append(behind)
    return changed


def _runs(column: pa.Array) -> list[tuple[int, int, bool]]:
    """The runs of *column*: start, length, and whether it is there in all of their rows."""
    if not column.null_count:
        return [(0, len(column), True)]
    present = column.is_valid().to_numpy(zero_copy_only=False)
    starts = [0, *(np.flatnonzero(present[1:] != present[:-1]) + 1).tolist()]
    ends = [*starts[1:], len(column)]
    return [
        (start, end - start, bool(present[start])) for start, end in zip(starts, ends, strict=True)
    ]
