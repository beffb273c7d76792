"""Headers of a batch of which a step of the chain changes some rows: it stays one batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connect import Header, HeaderColumn, HeaderColumns, SourceBatch, SourcePartition
from headrace.connect.record import Headers
from headrace.task.chain import Piece, Stage, joined_headers
from headrace.transforms.catalogue import make_transform
from task.test_chain import Equals, UpperColumns

FIXED = HeaderColumn(key="h", value="x")
COUNTED = HeaderColumn(key="n", values=pa.array([1, 2, 3]))


def batch(headers: Sequence[Headers] | None) -> SourceBatch:
    """Three rows."""
    return SourceBatch(
        topic="t",
        values=pa.array(["a", "b", "c"]),
        source_partition=SourcePartition(f="x"),
        offsets=None,
        headers=headers,
    )


def behind(stage: Stage, headers: Sequence[Headers]) -> list[SourceBatch]:
    """What becomes of three rows, all at once."""
    pieces = stage.changed_piece(Piece(batch(headers), pa.array([0, 1, 2])))
    assert pieces is not None
    return [each.batch for each in pieces]


@pytest.mark.parametrize(
    "headers",
    [
        HeaderColumns([FIXED, COUNTED], rows=3),
        [(Header("h", 1),), (), (Header("h", 1), Header("i", None))],
    ],
)
def test_a_step_for_some_rows_leaves_all_their_headers(headers: Sequence[Headers]):
    """In columns and row by row."""
    stage = Stage(transform=UpperColumns(), predicate=Equals("b"))

    [changed] = behind(stage, headers)

    assert (["a", "B", "c"], [*headers]) == (changed.values.to_pylist(), [*(changed.headers or ())])
    assert type(headers) is type(changed.headers)


def test_a_header_for_some_rows_is_theirs_alone():
    """The others keep those that they had."""
    config = {"header": "g", "value.literal": "y"}
    insert = make_transform("org.apache.kafka.connect.transforms.InsertHeader", config)
    stage = Stage(transform=insert, predicate=Equals("b"))

    [changed] = behind(stage, HeaderColumns([FIXED], rows=3))

    keys = [[each.key for each in row] for row in changed.headers or ()]
    assert [["h"], ["h", "g"], ["h"]] == keys


@pytest.mark.parametrize(
    "others",
    [HeaderColumns([replace(FIXED, value=1)], rows=3), HeaderColumns([COUNTED], rows=3), None],
)
def test_other_headers_stay_with_their_rows(others: HeaderColumns | None):
    """One value is not taken for another, nor a header for none."""
    first = batch(HeaderColumns([replace(FIXED, value=True)], rows=3))

    joined = joined_headers([first, batch(others)])

    expected = [*(first.headers or ()), *(others or [()] * 3)]
    assert repr(expected) == repr([*(joined or ())])


def test_batches_without_headers_have_none():
    """Nothing is made of nothing."""
    assert joined_headers([batch(None), batch(None)]) is None
