"""The parts of which a chunk of Avro records is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.connect.partition import OffsetValue
from headrace.formats.avro.leaves import UNFIT, Values
from headrace.formats.chunk import Chunk
from headrace.formats.rows import Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkPart:
    """A part of a chunk. *size* is what it takes of the chunk's bytes."""

    values: pa.Array
    size: int
    anchors: Int64Array
    skips: Int64Array
    counts: Int64Array


def joined_parts(
    parts: Sequence[ChunkPart], *, constants: Mapping[str, OffsetValue], last: bool
) -> Chunk:
    """The chunk of *parts*, of which there is one at least."""
    return Chunk(
        values=pa.concat_arrays([each.values for each in parts]),
        anchors=np.concatenate([each.anchors for each in parts]),
        skips=np.concatenate([each.skips for each in parts]),
        counts=np.concatenate([each.counts for each in parts]),
        constants=constants,
        last=last,
    )


def first_unfit(build: Callable[[Values], pa.Array], values: Values) -> tuple[int, str]:
    """The index of the first of *values* that *build* refuses, as it does one of them, and why."""
    low, high, reason = 0, len(values), ""
    while high - low > 1 or not reason:
        middle = max(low + 1, (low + high) // 2)
        try:
            build(values[low:middle])
            low = middle
        except UNFIT as error:
            high, reason = middle, str(error)
    return low, reason
