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
    largest_record_bytes,
    may_be_gathered,
)
from headrace.kafka.row_batches import columns_of
from headrace.kafka.sender import EncodedRecords

NOW = 1_000
VALUES = st.lists(st.none() | st.binary(max_size=20), min_size=1, max_size=5)


def records(values: list[bytes | None], **more: object) -> EncodedRecords:
    """Rows of one call."""
    made = EncodedRecords(topic="t", values=pa.array(values, pa.binary()))
    return replace(made, **more)  # pyright: ignore[reportArgumentType]


TIMES = (
    st.none()
    | st.integers(-1, 5)
    | st.lists(st.none() | st.integers(-1, 5), min_size=5, max_size=5)
)


@given(calls=st.lists(st.tuples(VALUES, TIMES), min_size=1, max_size=5), has_keys=st.booleans())
def test_all_rows_are_there_in_their_order(
    *, calls: list[tuple[list[bytes | None], int | list[int | None] | None]], has_keys: bool
) -> None:
    """With the time of their call if they have none; and each is known by the number of its call, and its row in that."""
    gathered, given_rows, places = GatheredRows(), list[tuple[object, ...]](), list[object]()
    for number, (values, time) in enumerate(calls, 7):
        now, rows = NOW + number, range(len(values))
        keys: list[bytes] | list[None] = [b"k%d" % row for row in rows] if has_keys else [None] * 5
        told = time[: len(values)] if isinstance(time, list) else [time] * len(values)
        made = records(
            values,
            keys=pa.array(keys[: len(values)], pa.binary()) if has_keys else None,
            timestamps=pa.array(told, pa.int64()) if isinstance(time, list) else time,
            number=number,
        )
        assert may_be_gathered(made, 1)
        assert gathered.fits(made)
        gathered.add(made, now=now)
        times = [now if each is None or each < 0 else each for each in told]
        given_rows += zip(values, keys, times, strict=False)
        places += [(number, row) for row in rows]

    whole, numbers = gathered.joined()

    keys = [None] * len(whole) if whole.keys is None else whole.keys.to_pylist()
    assert isinstance(whole.timestamps, pa.Array)
    found = zip(whole.values.to_pylist(), keys, whole.timestamps.to_pylist(), strict=True)
    assert given_rows == list(found)
    assert places == [numbers.place(row) for row in range(len(whole))]


@pytest.mark.parametrize(
    "more",
    [
        {"topic": "other"},
        {"partition": 1},
        {"keys": pa.array([b"k"], pa.binary())},
        {"values": pa.array([b"v"], pa.large_binary())},
    ],
    ids=["another topic", "a partition", "a key", "another type"],
)
def test_what_differs_does_not_fit(more: dict[str, object]) -> None:
    """It would be other records together."""
    gathered = GatheredRows()
    gathered.add(records([b"v"]), now=NOW)

    others = replace(records([b"v"]), **more)  # pyright: ignore[reportArgumentType]
    assert not gathered.fits(others)
    assert gathered.fits(records([b"w"]))
    gathered.clear()
    assert gathered.fits(others)


def test_what_has_headers_or_is_large_is_sent_as_it_comes() -> None:
    """There is no column for headers; and large batches it makes alone."""
    large = records([bytes(140_000)])

    assert not may_be_gathered(replace(records([b"v"]), headers=[[("h", b"x")]]), 1)
    assert not may_be_gathered(large, 1)
    assert may_be_gathered(large, 2)


@given(
    st.lists(
        st.tuples(VALUES, st.integers(-(2**63), 2**63 - 1), st.none() | st.integers(0, 20)),
        min_size=1,
        max_size=4,
    )
)
def test_no_record_is_larger_than_was_said(
    calls: list[tuple[list[bytes | None], int, int | None]],
) -> None:
    """Whatever the other calls have: otherwise it would be found to be too large when it cannot be refused any more."""
    gathered, most = GatheredRows(), 0
    for values, time, key in calls:
        keys = pa.array([None if key is None else bytes(key)] * len(values), pa.binary())
        made = records(values, keys=keys, timestamps=time)
        gathered.add(made, now=NOW)
        most = max(most, largest_record_bytes(made))

    whole, _ = gathered.joined()

    assert largest_sizes(columns_of(whole, now=NOW)).max() <= most


@pytest.mark.parametrize(
    ("partitions", "values", "calls"),
    [(1, [bytes(1_000)], 132), (12, [bytes(60_000)] * 10, 3), (1_000, [b"v"], 2_042)],
)
def test_enough_is_gathered_for_large_batches_or_a_bounded_memory(
    partitions: int, values: list[bytes | None], calls: int
) -> None:
    """A call of one small row costs memory, too."""
    gathered, count = GatheredRows(), 0
    while not gathered.are_enough(partitions, 1 << 25):
        gathered.add(records(values), now=NOW)
        count += 1

    assert calls - 5 <= count <= calls


def test_a_few_rows_of_many_count_as_the_memory_that_they_keep() -> None:
    """Rows may be a part of what was read together, which counts once."""
    gathered, large = GatheredRows(), pa.array([bytes(1_000_000), b"v", b"w"], pa.binary())
    parts = [replace(records([b"v"]), values=large.slice(row, 1)) for row in (1, 2)]

    gathered.add(parts[0], now=NOW)
    assert not gathered.are_enough(1_000, 4_100_000)
    assert gathered.are_enough(1_000, 4_000_000)
    gathered.add(parts[1], now=NOW)
    assert not gathered.are_enough(1_000, 4_100_000)


@pytest.mark.parametrize(
    "values",
    [
        pa.nulls(200_000, pa.binary()),
        pa.array([b""] * 200_000, pa.binary()),
        pa.array([bytes(4_000)] * 1_000, pa.binary()),
    ],
    ids=["nulls", "empty", "again and again"],
)
def test_memory_is_bounded(values: pa.BinaryArray) -> None:
    """Times take some, too; rows that come again are copied when they are joined; and nulls have one address for all that they have."""
    gathered, once = GatheredRows(), replace(records([b"v"]), values=values, timestamps=1)
    while not gathered.are_enough(1_000, 1 << 30):
        gathered.add(once, now=NOW)

    whole, _ = gathered.joined()

    assert isinstance(whole.timestamps, pa.Array)
    of_a_call = values.nbytes + 8 * len(values)
    assert 2 * (8 << 20) + of_a_call > whole.values.nbytes + whole.timestamps.nbytes
