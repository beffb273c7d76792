"""A connector that cannot be started yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import pytest

from doubles.puppets import PlannedPuppet, Puppet, puppet
from doubles.run_watcher import NoRunWatcher
from headrace.connect.connector import ConnectorContext, Plan
from headrace.connect.errors import RetriableError
from headrace.observe.events import ConnectorFailed, ConnectorStarted, ConnectorStopped, Waiting
from headrace.runtime.connector_run import ConnectorRun
from headrace.task.slot_report import Outcome, SlotReport
from runtime.desk import SPEC, Desk
from waiting import until

FINISHED = SlotReport(outcome=Outcome.FINISHED)


class LatePuppet(PlannedPuppet):
    """Notes which of its instances is started and stopped."""

    calls: list[tuple[str, int]]
    instances: int = 0

    def __init__(self) -> None:
        type(self).instances += 1
        self._number = type(self).instances

    def start(self, props: Mapping[str, str]) -> None:
        """Note it, and do as the puppet says."""
        self.calls.append(("start", self._number))
        super().start(props)

    def stop(self) -> None:
        """Note it."""
        self.calls.append(("stop", self._number))


Opened = Callable[[Callable[[ConnectorContext], None]], tuple[Desk, ConnectorRun]]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """A run of a connector whose ``start`` does as given."""
    made: list[Desk] = []
    LatePuppet.calls, LatePuppet.instances = [], 0

    def open_desk(started: Callable[[ConnectorContext], None]) -> tuple[Desk, ConnectorRun]:
        desk = Desk(lambda *_: FINISHED, lambda _: Plan())
        made.append(desk)
        puppet("c", Puppet(started=started))
        return desk, ConnectorRun(
            replace(SPEC, connector=LatePuppet()), desk.services(), watcher=NoRunWatcher()
        )

    yield open_desk
    for each in made:
        each.channel.close()


def test_a_start_that_may_succeed_later_is_waited_out_on_a_new_instance(opened: Opened) -> None:
    """Each instance is started once and stopped once; what an old one still says counts no more."""
    contexts: list[ConnectorContext] = []

    def started(context: ConnectorContext) -> None:
        contexts.append(context)
        if len(contexts) == 1:
            raise RetriableError("The database is away.")
        contexts[0].raise_error(ValueError("of the old one"))

    desk, run = opened(started)
    run.start()

    assert run.join(20.0)
    assert run.failure is None
    assert ["The database is away."] == [
        each.reason for each in desk.events if isinstance(each, Waiting)
    ]
    assert 1 == len(desk.heard(ConnectorStarted))
    assert [("start", 1), ("stop", 1), ("start", 2), ("stop", 2)] == LatePuppet.calls


def test_a_stop_does_not_wait_for_the_start(opened: Opened) -> None:
    """What never was started is not stopped either."""

    def started(_: ConnectorContext) -> None:
        raise RetriableError("The database is away.")

    desk, run = opened(started)
    run.start()
    until(lambda: desk.heard(Waiting))
    run.ask_to_stop()

    assert run.join(10.0)
    assert run.failure is None
    assert desk.heard(ConnectorStopped)
    starts = [number for call, number in LatePuppet.calls if call == "start"]
    assert starts == [number for call, number in LatePuppet.calls if call == "stop"]


def test_another_error_of_a_start_fails_the_connector(opened: Opened) -> None:
    """No wait would mend it; ``stop`` is called all the same."""

    def started(_: ConnectorContext) -> None:
        raise ValueError("no such table")

    desk, run = opened(started)
    run.start()

    assert run.join(20.0)
    assert "no such table" == str(run.failure)
    assert 1 == len(desk.heard(ConnectorFailed))
    assert [("start", 1), ("stop", 1)] == LatePuppet.calls
