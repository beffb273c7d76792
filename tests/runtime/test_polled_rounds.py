"""A polled connector that finds nothing: it rests, and is woken; or it is probed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE, PolledPuppet, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace.connect.connector import Plan
from headrace.connect.errors import RetriableError
from headrace.connect.partition import OffsetReader
from headrace.observe.events import Committed, ConnectorIdle, OffsetsMoved, Waiting
from headrace.runtime.connector_run import ConnectorRun
from headrace.runtime.services import Timing
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import SPEC, Desk
from waiting import until

IDLE = SlotReport(outcome=Outcome.IDLE)
QUICK = Timing(
    idle_poll=0.01, poll_backoff_initial=0.01, poll_backoff_max=0.01, grace=0.3, lease=5.0
)
LONG = replace(QUICK, poll_backoff_initial=600.0, poll_backoff_max=600.0)


@pytest.fixture
def desk() -> Iterator[Desk]:
    """A connector whose slots find nothing."""
    made = Desk(lambda *_: IDLE, lambda _: Plan(), once=False)
    yield made
    made.channel.close()


def started(
    desk: Desk, timing: Timing, probe: Callable[[OffsetReader], bool | None] = lambda _: None
) -> ConnectorRun:
    """A run of a polled connector."""
    desk.timing = timing
    puppet("c", Puppet(probe=probe))
    run = ConnectorRun(
        replace(SPEC, connector=PolledPuppet()), desk.services(), watcher=NoRunWatcher()
    )
    run.start()
    return run


def test_a_micro_batch_that_finds_nothing_ends_and_another_one_looks_later(desk: Desk) -> None:
    """Without a probe only polling tells."""
    run = started(desk, QUICK)
    until(lambda: len(desk.engine.tickets) > 3)
    run.ask_to_stop()

    assert run.join(10.0)
    assert len(desk.heard(ConnectorIdle)) >= 3


def test_a_stop_ends_a_rest(desk: Desk) -> None:
    """However long it would have been."""
    run = started(desk, LONG)
    until(lambda: desk.heard(ConnectorIdle))
    run.ask_to_stop()

    assert run.join(10.0)
    assert (1, None) == (len(desk.engine.tickets), run.failure)


def test_a_wish_for_new_tasks_ends_a_rest(desk: Desk) -> None:
    """The new ones may find something."""
    run = started(desk, LONG)
    until(lambda: desk.heard(ConnectorIdle))
    run._run_context.context.request_task_reconfiguration()
    until(lambda: len(desk.engine.tickets) == 2)
    run.ask_to_stop()

    assert run.join(10.0)


def test_an_error_that_the_connector_reports_ends_a_rest(desk: Desk) -> None:
    """It fails with it at once."""
    run = started(desk, LONG)
    until(lambda: desk.heard(ConnectorIdle))
    run._run_context.context.raise_error(ValueError("gone"))

    assert run.join(10.0)
    assert "gone" == str(run.failure)


def test_a_probe_that_is_wrong_is_believed_less_and_less_often(desk: Desk) -> None:
    """It says that there is work, and polling finds nothing; a Spark job each time would be too much."""
    run = started(desk, LONG, lambda _: True)
    until(lambda: desk.heard(ConnectorIdle))
    run.ask_to_stop()

    assert run.join(10.0)
    assert 1 == len(desk.engine.tickets)


def test_a_probe_that_raises_fails_the_connector(desk: Desk) -> None:
    """That the source cannot be asked does not mean that there is nothing."""

    def probe(_: OffsetReader) -> bool:
        raise PermissionError("no access to the queue orders")

    run = started(desk, QUICK, probe)

    assert run.join(10.0)
    assert "no access to the queue orders" == str(run.failure)
    assert ([], []) == (desk.engine.tickets, desk.heard(ConnectorIdle))


def test_a_probe_of_a_source_that_is_away_is_tried_again_and_told(desk: Desk) -> None:
    """It is no answer: neither that there is nothing, nor that there is."""
    answers = iter([RetriableError("the queue is away"), False])

    def probe(_: OffsetReader) -> bool:
        answer = next(answers, False)
        if isinstance(answer, RetriableError):
            raise answer
        return answer

    run = started(desk, QUICK, probe)
    until(lambda: desk.heard(ConnectorIdle))
    run.ask_to_stop()

    assert run.join(10.0)
    assert [Waiting(connector="c", reason="the queue is away")] == desk.heard(Waiting)
    assert [] == desk.engine.tickets


@pytest.mark.parametrize("probe", [None, False], ids=["rests", "probed"])
def test_idle_tasks_move_their_offsets_once_per_flush_interval(
    desk: Desk, *, probe: bool | None
) -> None:
    """Also during a rest that is longer, which continues."""
    moves = iter(range(1, 1000))
    quick = replace(LONG, idle_poll=0.01, flush_interval=0.05)
    desk.timing = quick
    puppet("c", Puppet(probe=lambda _: probe, update=lambda _: {SOURCE: {"next": next(moves)}}))
    run = ConnectorRun(
        replace(SPEC, connector=PolledPuppet()), desk.services(), watcher=NoRunWatcher()
    )
    run.start()
    until(lambda: len(desk.heard(Committed)) >= 3)
    run.ask_to_stop()

    assert run.join(10.0)
    assert int(probe is None) == len(desk.engine.tickets)
    assert OffsetsMoved(connector="c", task=0, offsets=1) in desk.events
