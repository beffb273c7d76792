"""How the task loop begins, continues and ends."""

from __future__ import annotations

import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import FencedError, RecordError, RetriableError, StaleTokenError
from headrace.connect.task import Polled
from headrace.task.connector_spec import BoundaryKind
from headrace.task.slot_report import Outcome
from task.loop import Loop, ScriptedTask, batch, both_modes, record


@both_modes
def test_what_is_polled_arrives_in_order_with_its_offset(*, transactional: bool) -> None:
    """Every row of every batch is committed, and the offset is that of the last row."""
    loop = Loop(
        ScriptedTask(batch("a", "b", end=2), batch("c", end=3)), transactional=transactional
    )

    assert Outcome.FINISHED is loop.run()

    assert ["a", "b", "c"] == loop.values()
    assert 3 == loop.position()


def test_plain_records_are_batched_by_the_runtime() -> None:
    """A task may return plain records; neighbours travel together."""
    loop = Loop(ScriptedTask([record("a", 1), record("b", 2)]))

    loop.run()

    assert ["a", "b"] == loop.values()
    assert 2 == loop.position()


def test_what_precedes_a_failure_of_poll_is_committed_and_the_failure_is_raised() -> None:
    """The offset stays before what failed, and nothing before it is read again."""
    loop = Loop(
        ScriptedTask(batch("a", end=1), RecordError("bad", native_key="f", position="byte 2")),
        kind=BoundaryKind.INTERVAL,
    )

    with pytest.raises(RecordError, match="byte 2"):
        loop.run()

    assert ["a"] == loop.values()
    assert 1 == loop.position()


def test_a_retriable_error_of_poll_counts_as_nothing_now() -> None:
    """Poll is called again after it."""
    loop = Loop(ScriptedTask(RetriableError("soon"), batch("a", end=1)))

    loop.run()

    assert ["a"] == loop.values()


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ([RetriableError("one")], None),
        ([RetriableError("one"), RetriableError("two")], "two"),
        ([RetriableError("limited", delay_seconds=60.0)], "limited"),
    ],
    ids=["a moment", "again", "for long"],
)
def test_a_source_that_is_away_for_more_than_a_moment_shows_in_the_progress(
    errors: list[RetriableError], expected: str | None
) -> None:
    """Until poll returns again, whatever it returns."""
    seen: list[str | None] = []
    loop = Loop(ScriptedTask())

    def look() -> Polled:
        seen.append(loop.progress.source_away)
        return ()

    loop.task = ScriptedTask(*errors, look, look)
    loop.run()

    assert [expected, None] == seen


def test_a_source_that_stays_away_is_logged_once_by_a_task(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The worker tells for how long, for all tasks."""
    caplog.set_level("INFO")
    errors = [RetriableError(f"in place {number}") for number in range(3)]
    loop = Loop(ScriptedTask(*errors))
    loop.run()

    assert ["poll will be called again: in place 0"] == caplog.messages


def test_a_lost_lease_writes_nothing_more() -> None:
    """What is in the open transaction is thrown away."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.INTERVAL)

    def lose() -> SourceBatch:
        loop.lease.lost = True
        return batch("b", end=2)

    loop.task.script = [batch("a", end=1), lose]  # type: ignore[attr-defined]

    with pytest.raises(StaleTokenError):
        loop.run()

    assert [] == loop.values()


def test_a_lease_that_is_lost_after_the_last_record_was_sent_still_stops_the_commit() -> None:
    """No one knows by then whether a successor has begun with the same records."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.INTERVAL)

    def lose() -> Polled:
        loop.lease.lost = True
        return None

    loop.task.script = [batch("a", end=1), lose]  # type: ignore[attr-defined]

    with pytest.raises(StaleTokenError):
        loop.run()

    assert [] == loop.values()
    assert loop.position() is None


def test_a_slot_that_is_asked_to_end_commits_what_it_has() -> None:
    """Nothing that was read has to be read again."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.INTERVAL)

    def ask() -> SourceBatch:
        loop.lease.asked_to_end = "stop"
        return batch("a", end=1)

    loop.task.script = [ask, batch("b", end=2)]  # type: ignore[attr-defined]

    assert Outcome.ASKED is loop.run()

    assert ["a"] == loop.values()
    assert 1 == loop.position()


def test_a_fenced_slot_reports_it() -> None:
    """FencedError comes out of the loop, so that the work is planned again."""
    loop = Loop(ScriptedTask(batch("a", end=1)))
    loop.sender.fenced = True

    with pytest.raises(FencedError):
        loop.run()
