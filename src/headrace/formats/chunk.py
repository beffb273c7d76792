"""Records of one object that were read together, and where reading goes on."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa

from headrace.connect.partition import OffsetValue
from headrace.connect.reread_commands import ALL_ANEW
from headrace.formats.rows import Int64Array

READ_ANEW: Final = f"Put the file back as it was when records of it were sent; or {ALL_ANEW}."
"""What helps where an object has not the place that its offset speaks of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Where reading goes on: *skip* records behind *anchor*, after *record_count* records in all.

    What an anchor counts is the format's own: bytes of text, the blocks or row groups of a container.
    """

    anchor: int = 0
    skip: int = 0
    record_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some records in order: their values, and for each where reading would go on behind it.

    Record *i* is the ``counts[i]``-th of the object, and reading goes on ``skips[i]`` records behind
    ``anchors[i]``. *constants* are what a later reader must know besides. *last* says that no record
    follows.
    """

    values: pa.Array
    anchors: Int64Array
    skips: Int64Array
    counts: Int64Array
    constants: Mapping[str, OffsetValue]
    last: bool

    def __len__(self) -> int:
        return len(self.values)

    def behind(self, count: int) -> Chunk:
        """This chunk without its first *count* records."""
        return dataclasses.replace(
            self,
            values=self.values.slice(count),
            anchors=self.anchors[count:],
            skips=self.skips[count:],
            counts=self.counts[count:],
        )


def numbered(first: int, count: int) -> Int64Array:
    """The numbers *first*, *first* + 1 …, *count* of them."""
    return np.arange(first, first + count, dtype=np.int64)
