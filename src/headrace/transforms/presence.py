"""Keys and values that are not there: null, which most transformations pass on as it is."""

from __future__ import annotations

from collections.abc import Sequence

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
    batch: SourceBatch, column: pa.Array, changed: SourceBatch
) -> Sequence[SourceBatch]:
    """*changed* in the rows of *batch* whose *column* is not null, *batch* in the others.

    In runs of rows, for the two may have different schemas.
    """
    if not column.null_count:
        return [changed]
    return [
        (changed if present else batch).slice(start, length)
        for start, length, present in _runs(column)
    ]


def _runs(column: pa.Array) -> list[tuple[int, int, bool]]:
    """The runs of *column*: start, length, and whether it is there in all of their rows."""
    present = column.is_valid().to_numpy(zero_copy_only=False)
    starts = [0, *(np.flatnonzero(present[1:] != present[:-1]) + 1).tolist()]
    ends = [*starts[1:], len(column)]
    return [
        (start, end - start, bool(present[start])) for start, end in zip(starts, ends, strict=True)
    ]
