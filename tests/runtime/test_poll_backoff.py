"""How long a polled connector rests that finds nothing."""

from __future__ import annotations

import pytest

from doubles.puppets import SOURCE
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.connector_stores import OffsetSnapshot
from headrace.runtime.batch_runner import BatchResult
from headrace.runtime.rounds import PollBackoff
from headrace.task.work import Outcome, SlotReport


def offsets(at: int) -> OffsetSnapshot:
    """What is committed."""
    stored: dict[SourcePartition, SourceOffset] = {SOURCE: {"next": at}}
    return OffsetSnapshot(stored)


def ended(*outcomes: Outcome, records: int = 0, skipped: int = 0, dead: int = 0) -> BatchResult:
    """How a micro-batch ended."""
    return BatchResult(
        reports=[SlotReport(outcome=each) for each in outcomes or (Outcome.IDLE,)],
        clean=True,
        lost=None,
        committed_records=records,
        skipped=skipped,
        dead_lettered=dead,
    )


def rested(rests: PollBackoff, result: BatchResult | None, *, now: int = 1) -> float | None:
    """The rest after a micro-batch that began at offset 1 and ended so, with *now* in the store."""
    rests.ended(result, offsets(1))
    return rests.due(offsets(now))


@pytest.fixture
def rests() -> PollBackoff:
    """From one second to five."""
    return PollBackoff(first_seconds=1.0, longest_seconds=5.0)


def test_each_rest_is_twice_as_long_as_the_one_before_up_to_the_longest(rests: PollBackoff) -> None:
    """So that a source that is silent for a day costs next to nothing."""
    assert [1.0, 2.0, 4.0, 5.0, 5.0] == [rested(rests, ended()) for _ in range(5)]


def test_a_rest_is_due_once(rests: PollBackoff) -> None:
    """The round after it looks at the source again."""
    rested(rests, ended())

    assert rests.due(offsets(1)) is None


@pytest.mark.parametrize(
    ("came", "now"),
    [(ended(records=1), 1), (ended(skipped=1), 1), (ended(dead=1), 1), (ended(), 2)],
    ids=["record", "skipped", "dead letter", "offset alone"],
)
def test_whatever_comes_makes_the_next_rest_a_short_one(
    rests: PollBackoff, came: BatchResult, now: int
) -> None:
    """And directly behind it there is none: more may have come."""
    rested(rests, ended())

    assert [None, 1.0] == [rested(rests, came, now=now), rested(rests, ended())]


@pytest.mark.parametrize(
    "cut", [None, ended(Outcome.IDLE, Outcome.ASKED), ended(Outcome.IDLE, Outcome.REPLAN)]
)
def test_a_micro_batch_that_was_cut_short_says_nothing(
    rests: PollBackoff, cut: BatchResult | None
) -> None:
    """There is no rest after it, and the next one is as long as it would have been."""
    rested(rests, ended())

    assert [None, 2.0] == [rested(rests, cut), rested(rests, ended())]
