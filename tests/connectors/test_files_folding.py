"""How far a mark goes, and what it takes with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connectors.files.tracking.folding import Fold, fold
from headrace.connectors.files.tracking.marks import NO_MARK, Mark, mark_of, mark_partition

NAMES = st.integers(1, 60).map(lambda number: f"/{number:02}")
CLOSED = st.sets(NAMES)
MARKS = st.none() | NAMES
NOW = 10**9
TIMES = st.dictionaries(NAMES, st.integers(0, 100))


def marked(name: str | None) -> Mark:
    """A mark at *name*, if there is one."""
    return NO_MARK if name is None else Mark(key=name, modified_ms=50)


def once(
    mark: Mark,
    closed: set[str],
    *,
    stop: str | None = None,
    lookback: int = 0,
    most: int = 100,
    times: dict[str, int] | None = None,
) -> Fold:
    """What the mark passes."""
    return fold(
        mark, closed, stop=stop, lookback=lookback, modified_ms=times or {}, now_ms=NOW, most=most
    )


def through(mark: Mark, closed: set[str], *, lookback: int, most: int) -> tuple[Mark, set[str]]:
    """The mark and the entries that are left when plans have followed each other until nothing moved."""
    left = set(closed)
    for _ in range(len(closed) + 1):
        folded = once(mark, left, lookback=lookback, most=most)
        mark, left = folded.mark, left - set(folded.removed)
        if not folded.removed:
            return mark, left
    raise AssertionError("there was always something to fold")


@given(closed=CLOSED, mark=MARKS, stop=MARKS, lookback=st.integers(0, 25), most=st.integers(1, 9))
def test_a_mark_and_entries_cover_exactly_what_is_done(
    closed: set[str], mark: str | None, stop: str | None, *, lookback: int, most: int
):
    """Nothing that is done is lost, and nothing that is not done is passed."""
    before = marked(mark)
    stop = stop if stop and not before.covers(stop) else None
    closed -= {stop}

    folded = once(before, closed, stop=stop, lookback=lookback, most=most)

    assert folded.mark.key >= before.key
    assert set(folded.removed) <= closed
    assert all(map(folded.mark.covers, folded.removed))
    assert len(folded.removed) <= most
    assert stop is None or not folded.mark.covers(stop)
    assert folded.mark.key in {before.key, *folded.removed}


@given(closed=CLOSED, stop=MARKS, lookback=st.integers(0, 9))
def test_the_greatest_ones_stay_behind_the_mark(closed: set[str], stop: str | None, lookback: int):
    """As many as the look-back says, of those that could be passed."""
    closed -= {stop}
    run = sorted(each for each in closed if stop is None or each < stop)

    folded = once(NO_MARK, closed, stop=stop, lookback=lookback)

    kept = run[max(0, len(run) - lookback) :]
    assert not any(map(folded.mark.covers, kept))
    assert run[: len(run) - len(kept)] == list(folded.removed)


@given(closed=CLOSED, mark=MARKS, lookback=st.integers(0, 25), most=st.integers(1, 9))
def test_plans_that_follow_each_other_come_to_rest(
    closed: set[str], mark: str | None, lookback: int, most: int
):
    """With no more entries than the look-back and a tenth of it."""
    reached, left = through(marked(mark), closed, lookback=lookback, most=most)

    assert len(left) <= lookback + lookback // 10
    assert all(map(reached.covers, closed - left))


@given(closed=CLOSED, mark=MARKS, times=TIMES)
def test_a_mark_knows_the_last_change_of_all_that_it_has_passed(
    closed: set[str], mark: str | None, times: dict[str, int]
):
    """As far as that is known; what lay below it already says nothing new."""
    before = marked(mark)
    folded = once(before, closed, times=times)

    passed = [times[each] for each in folded.removed if each in times and not before.covers(each)]
    known = [] if before.modified_ms is None else [before.modified_ms]
    assert max([*passed, *known], default=None) == folded.mark.modified_ms


def test_a_time_of_the_future_counts_as_now():
    """Also one that the mark had already: it would be newer than all that ever comes too late."""
    later, hour = 4 * NOW, 3_600_000

    assert NOW == once(NO_MARK, {"/1"}, times={"/1": later}).mark.modified_ms
    before = Mark(key="/1", modified_ms=later)
    assert NOW == once(before, {"/2"}, times={"/2": 5}).mark.modified_ms
    assert NOW + hour == once(NO_MARK, {"/1"}, times={"/1": NOW + hour}).mark.modified_ms


@pytest.mark.parametrize(("at", "late"), [(50, False), (51, True), (NOW, True), (4 * NOW, False)])
def test_too_late_is_what_was_changed_after_all_that_was_passed(at: int, *, late: bool):
    """A time of the future says nothing: the file may be one of those that were passed."""
    assert late == marked("/1").is_too_late(at, now_ms=NOW)


def test_few_are_left_until_they_are_worth_a_transaction():
    """With a look-back of a hundred, ten more wait."""
    closed = {f"/{number:03}" for number in range(111)}

    assert not once(NO_MARK, closed - {"/110"}, lookback=100).removed
    assert 11 == len(once(NO_MARK, closed, lookback=100).removed)


def test_a_mark_is_read_as_it_was_written():
    """With and without a time."""
    for mark in (NO_MARK, Mark(key="/a"), Mark(key="s3://b/k", modified_ms=7)):
        assert mark == mark_of(mark.as_offset() if mark.key else None, mark_partition(None))
