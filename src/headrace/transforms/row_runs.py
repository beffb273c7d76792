"""Batches cut into runs: neighbouring rows that are alike, and go on together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt


def runs(kinds: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """The start and the length of each run of equal *kinds*, one kind per row. Pure."""
    if not len(kinds):
        return
    starts = np.concatenate(([0], np.flatnonzero(kinds[1:] != kinds[:-1]) + 1))
    ends = np.append(starts[1:], len(kinds))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield start, end - start
