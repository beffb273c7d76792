"""Rows of several calls that become batches together: which may, in what order they are, and where each came from."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.encoding import largest_sizes
from headrace.kafka.gathered_rows import (
    GatheredRows,
    enough_bytes,
    largest_record_bytes,
    may_be_gathered,
)
from headrace.kafka.row_batches import columns_of
from headrace.kafka.sender import EncodedRecords

VALUES = st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=5)


def records(values: list[bytes | None], **more: object) -> EncodedRecords:
    """Rows of one call."""
    made = EncodedRecords(topic="t", values=pa.array(values, pa.binary()))
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


@given(
    calls=st.lists(VALUES, min_size=1, max_size=5),
    has_keys=st.booleans(),
    has_times=st.booleans(),
)
def test_all_rows_are_there_in_their_order(
    *, calls: list[list[bytes | None]], has_keys: bool, has_times: bool
) -> None:
    """And each is known by the number of its call, and its row in that."""
    gathered, given_rows, places = GatheredRows(), list[tuple[object, ...]](), list[object]()
    for number, values in enumerate(calls, 7):
        keys = [b"k%d" % row for row in range(len(values))] if has_keys else None
        times = list(range(number, number + len(values))) if has_times else None
        made = records(
            values,
            keys=None if keys is None else pa.array(keys, pa.binary()),
            timestamps=None if times is None else pa.array(times, pa.int64()),
            number=number,
        )
        assert may_be_gathered(made)
        assert gathered.fits(made)
        gathered.add(made)
        none = [None] * len(values)
        given_rows += zip(values, keys or none, times or none, strict=True)
        places += [(number, row) for row in range(len(values))]

    whole, numbers = gathered.take()

    none = [None] * len(whole)
    keys = none if whole.keys is None else whole.keys.to_pylist()
    times = whole.timestamps.to_pylist() if isinstance(whole.timestamps, pa.Array) else none
    assert given_rows == list(zip(whole.values.to_pylist(), keys, times, strict=True))
    assert places == [numbers.place(row) for row in range(len(whole))]
    assert (0, 0) == (len(gathered), gathered.nbytes)


@pytest.mark.parametrize(
    "more",
    [
        {"topic": "other"},
        {"partition": 1},
        {"keys": pa.array([b"k"], pa.binary())},
        {"timestamps": pa.array([1], pa.int64())},
        {"values": pa.array([b"v"], pa.large_binary())},
    ],
    ids=["another topic", "a partition", "a key", "a time", "another type"],
)
def test_what_differs_does_not_fit(more: dict[str, object]) -> None:
    """It would be other records together."""
    gathered = GatheredRows()
    gathered.add(records([b"v"]))

    others = replace(records([b"v"]), **more)  # pyright: ignore[reportArgumentType]
    assert not gathered.fits(others)
    assert gathered.fits(records([b"w"]))
    gathered.clear()
    assert gathered.fits(others)


@pytest.mark.parametrize(
    "more",
    [{"headers": [[("h", b"x")]]}, {"timestamps": 7}],
    ids=["headers", "one time for all"],
)
def test_what_has_more_is_sent_as_it_comes(more: dict[str, object]) -> None:
    """There is no column for it."""
    assert not may_be_gathered(records([b"v"], **more))


@given(VALUES, st.none() | st.integers(0, 20))
def test_no_record_is_larger_than_is_said(values: list[bytes | None], key: int | None) -> None:
    """Otherwise it would be found to be too large when it cannot be refused any more."""
    keys = None if key is None else pa.array([bytes(key)] * len(values), pa.binary())
    made = records(values, keys=keys)

    assert largest_sizes(columns_of(made, now=1 << 62)).max() <= largest_record_bytes(made)


def test_a_few_rows_of_many_count_as_the_memory_that_they_keep() -> None:
    """Rows may be a part of what was read together."""
    gathered, large = GatheredRows(), pa.array([bytes(1_000_000), b"v"], pa.binary())
    gathered.add(replace(records([b"v"]), values=large.slice(1)))

    assert gathered.nbytes > 1_000_000


def test_what_is_gathered_is_bounded() -> None:
    """By the partitions, so that nothing waits without need, and by what may wait to be acknowledged."""
    assert enough_bytes(1, 1 << 25) * 12 == enough_bytes(12, 1 << 25)
    assert 1 << 23 == enough_bytes(1_000_000, 1 << 25)
    assert 25_000 == enough_bytes(12, 100_000)
