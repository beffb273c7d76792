"""Batches cut into runs: neighbouring rows that are alike, and go on together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connect.batch import SourceBatch


def runs(kinds: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """The start and the length of each run of equal *kinds*, one kind per row. Pure."""
    if not len(kinds):
        return
    starts = np.concatenate(([0], np.flatnonzero(kinds[1:] != kinds[:-1]) + 1))
    ends = np.append(starts[1:], len(kinds))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield start, end - start


def changed_where_valid(
    batch: SourceBatch, column: pa.Array, change: Callable[[SourceBatch], SourceBatch]
) -> Sequence[SourceBatch]:
    """*batch*, cut where *column* turns null or not, its runs without nulls changed and the others as they are."""
    if not column.null_count:
        return [change(batch)]
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return [
        change(batch.slice(start, length)) if valid[start] else batch.slice(start, length)
        for start, length in runs(valid)
    ]
