"""How long a polled connector pauses when it finds nothing."""

from __future__ import annotations

import pytest

from doubles.puppets import SOURCE
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.backoff import PollBackoff
from headrace.runtime.micro_batch import BatchResult
from headrace.task.slot_report import Outcome, SlotReport


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


def pause_after(backoff: PollBackoff, result: BatchResult | None, *, now: int = 1) -> float | None:
    """The pause after a micro-batch that began at offset 1 and ended with *result*, with *now* in the store."""
    backoff.ended(result, offsets(1))
    return backoff.due(offsets(now))


@pytest.fixture
def backoff() -> PollBackoff:
    """From one second to five."""
    return PollBackoff(first_seconds=1.0, longest_seconds=5.0)


def test_each_pause_is_twice_as_long_as_the_one_before_up_to_the_longest(
    backoff: PollBackoff,
) -> None:
    """So that a source that is silent for a day costs next to nothing."""
    assert [1.0, 2.0, 4.0, 5.0, 5.0] == [pause_after(backoff, ended()) for _ in range(5)]


def test_a_pause_is_due_once(backoff: PollBackoff) -> None:
    """The round after it looks at the source again."""
    pause_after(backoff, ended())

    assert backoff.due(offsets(1)) is None


@pytest.mark.parametrize(
    ("came", "now"),
    [(ended(records=1), 1), (ended(skipped=1), 1), (ended(dead=1), 1), (ended(), 2)],
    ids=["record", "skipped", "dead letter", "offset alone"],
)
def test_whatever_comes_makes_the_next_pause_a_short_one(
    backoff: PollBackoff, came: BatchResult, now: int
) -> None:
    """And directly after it there is none, because more may have come."""
    pause_after(backoff, ended())

    assert [None, 1.0] == [pause_after(backoff, came, now=now), pause_after(backoff, ended())]


@pytest.mark.parametrize(
    "cut", [None, ended(Outcome.IDLE, Outcome.ASKED), ended(Outcome.IDLE, Outcome.REPLAN)]
)
def test_a_micro_batch_that_was_cut_short_says_nothing(
    backoff: PollBackoff, cut: BatchResult | None
) -> None:
    """There is no pause after it, and the next one is as long as it would have been."""
    pause_after(backoff, ended())

    assert [None, 2.0] == [pause_after(backoff, cut), pause_after(backoff, ended())]
