"""Keys and values that are not there: null, which most transformations pass on as it is."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.json_document import JSON_NULL
from headrace.transforms.row_runs import runs


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
    present = column.is_valid().to_numpy(zero_copy_only=False)
    return [
        (changed if present[start] else batch).slice(start, length)
        for start, length in runs(present)
    ]
