"""Columns of lists and maps, opened."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.columns import opened

POINT = pa.struct([pa.field("x", pa.int8(), nullable=False)])
POINTS = pa.map_(pa.string(), pa.field("value", POINT, nullable=False))
COUNTS = some.dictionaries(some.sampled_from("abc"), some.none() | some.integers(0, 9), max_size=3)
ROWS = some.lists(some.none() | COUNTS, max_size=5)


@given(rows=ROWS, skipped=some.integers(0, 4))
def test_each_row_has_its_elements(rows: list[dict[str, int | None] | None], skipped: int) -> None:
    """Of a map they are its entries; a null row has none, also in a column that begins within another."""
    held = [None if row is None else [*row.items()] for row in rows]
    column = pa.array(held, pa.map_(pa.string(), pa.int8())).slice(skipped)

    borders, entries = opened(column)

    reported = [(entry["key"], entry["value"]) for entry in entries.to_pylist()]
    assert [row or [] for row in held[skipped:]] == [
        reported[start:end] for start, end in itertools.pairwise(borders)
    ]


@pytest.mark.parametrize("value", [None, {"x": None}])
def test_an_entry_that_lacks_what_has_to_be_there_is_opened(value: Any) -> None:  # noqa: ANN401
    """Whoever writes it tells what is missing."""
    _, entries = opened(pa.array([[("k", value)]], POINTS))

    assert [{"key": "k", "value": value}] == entries.to_pylist()
