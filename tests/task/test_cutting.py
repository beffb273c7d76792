"""Batches that are larger than a transaction should be."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.task.connector_spec import BoundaryKind
from headrace.task.poll_loop import MOST_BYTES, MOST_ROWS, pieces
from task.loop import Loop, ScriptedTask, batch


@given(
    texts=st.lists(st.text(max_size=30), max_size=40),
    most_rows=st.integers(1, 50),
    most_bytes=st.integers(1, 300),
)
def test_pieces_are_the_batch(texts: list[str], most_rows: int, most_bytes: int) -> None:
    """Every row once, in order, with its offset; and none has more rows than it may."""
    whole = batch(*texts, end=len(texts))

    cut = list(pieces(whole, most_rows=most_rows, most_bytes=most_bytes))

    assert texts == [text for each in cut for text in each.values.to_pylist()]
    assert list(range(1, len(texts) + 1)) == [
        position
        for each in cut
        if each.offsets is not None
        for position in each.offsets.columns["position"].to_pylist()
    ]
    assert all(len(each) <= most_rows for each in cut)


@pytest.mark.parametrize(
    ("text", "rows", "count"),
    [("a", MOST_ROWS, 1), ("a", MOST_ROWS + 1, 2), ("a" * 1024, 5 * MOST_BYTES // 1024, 6)],
    ids=["one piece", "too many rows", "too many bytes"],
)
def test_a_batch_is_cut_by_rows_and_by_bytes(text: str, rows: int, count: int) -> None:
    """Into pieces of about one size: the last one is no rest."""
    cut = [len(each) for each in pieces(batch(*[text] * rows, end=rows))]

    assert count == len(cut)
    assert max(cut) - min(cut) <= count


def large() -> SourceBatch:
    """Two pieces."""
    return batch(*["a"] * (MOST_ROWS + 1), end=MOST_ROWS + 1)


@pytest.mark.parametrize(
    ("kind", "commits"),
    [(BoundaryKind.INTERVAL, 2), (BoundaryKind.POLL, 1), (BoundaryKind.CONNECTOR, 0)],
)
def test_only_an_interval_ends_inside_a_batch(kind: BoundaryKind, commits: int) -> None:
    """What a poll returns is one transaction where the poll is the boundary, or the connector sets them."""
    loop = Loop(ScriptedTask(large()), kind=kind, interval=0.0)

    loop.run()

    assert commits == loop.sender.commits


def test_rows_of_one_offset_are_one_transaction() -> None:
    """There is no offset from which the second half could be read again."""
    whole = large()
    same = SourceBatch(
        topic="t", values=whole.values, source_partition=whole.source_partition, offsets=None
    )
    loop = Loop(ScriptedTask(same), kind=BoundaryKind.INTERVAL, interval=0.0)

    loop.run()

    assert 1 == loop.sender.commits
    assert pa.array(["a"] * len(whole)).equals(pa.array(loop.values()))
