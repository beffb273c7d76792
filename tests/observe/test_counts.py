"""What is counted of events."""

from __future__ import annotations

import math
import operator
from collections import Counter
from typing import Any

import pytest

from headrace.observe.counts import Counts, Rebalances
from headrace.observe.events import (
    Amounts,
    ConnectorFailed,
    ConnectorStarted,
    ConnectorStopped,
    Event,
    MicroBatchStarted,
    OffsetsMoved,
    Rebalanced,
    Rebalancing,
    SlotProgress,
    TaskCounts,
    TaskFailed,
)

KEY = ("c", 0)


def progress(**counts: Any) -> SlotProgress:  # noqa: ANN401 (as the dataclass has them)
    """What task 0 of ``c`` has done in its micro-batch."""
    return SlotProgress(
        connector="c",
        records=0,
        bytes=0,
        committed_records=0,
        committed_bytes=0,
        tasks=(TaskCounts(task=0, **counts),),
    )


def counted(*events: Event, clock_seconds: float = 0) -> Counts:
    """Counts that have heard *events*."""
    counts = Counts(clock=lambda: clock_seconds)
    for each in events:
        counts(each)
    return counts


def test_what_is_counted_in_parts_goes_on_over_micro_batches():
    """Each part for itself."""
    begun = MicroBatchStarted(connector="c", slots=1)
    counts = counted(
        begun,
        progress(copied_batches=Counter(forwarded=3, gap=1)),
        begun,
        progress(copied_batches=Counter(forwarded=2)),
    )

    total = counts.snapshot().tasks[KEY].total(lambda each: each.copied_batches)
    assert {"forwarded": 5, "gap": 1} == total


def test_totals_go_on_over_micro_batches():
    """Each one begins at 0, and reports its own progress again and again."""
    begun = MicroBatchStarted(connector="c", slots=1)
    counts = counted(
        begun,
        progress(polled_records=3),
        progress(polled_records=5),
        begun,
        progress(polled_records=1),
        begun,
    )

    assert 6 == counts.snapshot().tasks[KEY].total(lambda each: each.polled_records)
    assert 0 == counts.snapshot().tasks[KEY].now.polled_records


@pytest.mark.parametrize(
    "count",
    [
        "polled_records",
        "committed_records",
        "dead_lettered",
        "skipped",
        "moved_offsets",
        "record_errors",
        "retries",
        "errors_logged",
        "dead_letters_failed",
    ],
)
def test_every_count_that_only_grows_is_summed(count: str):
    """None is forgotten where a micro-batch ends."""
    begun = MicroBatchStarted(connector="c", slots=1)
    counts = counted(begun, progress(**{count: 3}), begun, progress(**{count: 1}))

    assert 4 == counts.snapshot().tasks[KEY].total(operator.attrgetter(count))


def test_a_connector_that_fails_before_it_runs_is_a_failed_start():
    """Not one that ran, whenever it failed."""
    started, failed = ConnectorStarted(connector="c"), ConnectorFailed(connector="c", reason="x")
    seen = counted(
        failed, started, failed, started, ConnectorStopped(connector="c"), failed
    ).snapshot()

    assert (2, 2) == (seen.starts, seen.failed_starts)


def test_the_last_error_is_dated_when_it_is_reported():
    """A bad record that was passed over and a failure alike; a progress without a new one is none."""
    quiet = counted(progress(polled_records=1), clock_seconds=7)
    bad = counted(progress(skipped=1), clock_seconds=7)
    failed = counted(TaskFailed(connector="c", task=0, reason="x"), clock_seconds=7)

    dates = [each.snapshot().tasks[KEY].failed_at_ms for each in (quiet, bad, failed)]
    assert [0, 7000, 7000] == dates


def test_tasks_of_deleted_connectors_are_forgotten():
    """Unless they still run."""
    counts = counted(progress(polled_records=1))
    counts.keep(["c"])
    assert KEY in counts.snapshot().tasks

    counts.keep([])
    assert {} == counts.snapshot().tasks

    running = counted(ConnectorStarted(connector="c"), progress(polled_records=1))
    running.keep([])
    assert KEY in running.snapshot().tasks


def test_offsets_that_move_without_records_are_counted_in_slots_and_while_nothing_is_read():
    """A task that only moves its offsets on the driver is one that is known, too."""
    begun = MicroBatchStarted(connector="c", slots=1)
    moved = OffsetsMoved(connector="c", task=0, offsets=2)
    counts = counted(moved, begun, progress(moved_offsets=3), moved, begun)

    assert 7 == counts.snapshot().tasks[KEY].total(lambda each: each.moved_offsets)


def rebalanced(generation: int, seconds: float) -> Rebalanced:
    """The group has a leader."""
    return Rebalanced(
        generation=generation, leader="http://a:1/", protocol="sessioned", seconds=seconds
    )


def test_rebalances_are_counted_with_how_long_they_took():
    """The last one is known, and how long it is ago by a clock that does not go back."""
    seconds = [10.0]
    counts = Counts(monotonic=lambda: seconds[0])
    for each in (Rebalancing(), rebalanced(4, 2.0), Rebalancing(), rebalanced(5, 0.5)):
        counts(each)
    seconds[0] = 13.0

    assert counts.snapshot().rebalances == Rebalances(
        last=rebalanced(5, 0.5),
        times=Amounts(count=2, total=2.5, least=0.5, most=2.0),
        seconds_ago=3.0,
    )


def test_a_rebalance_is_under_way_until_it_is_completed():
    """What was counted before stays; a worker without a group has none of it."""
    assert counted(ConnectorStarted(connector="c")).snapshot().rebalances is None
    first = counted(Rebalancing(), Rebalancing()).snapshot().rebalances
    assert first == Rebalances(is_under_way=True, seconds_ago=math.inf)

    later = counted(rebalanced(4, 2.0), Rebalancing()).snapshot().rebalances

    assert later is not None
    assert (True, rebalanced(4, 2.0), 1) == (later.is_under_way, later.last, later.times.count)
