"""What a worker does when it is asked to stop, and with tasks that do not heed it."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from doubles.puppets import (
    PLANNED,
    POLLED,
    Puppet,
    endless,
    memory_of,
    next_number,
    numbered,
    reading,
)
from doubles.thread_engine import ThreadEngine
from end_to_end.live import Life, numbers
from headrace.connect.task import Polled, SourceTask
from headrace.observe.events import ConnectorIdle, ConnectorStopped, Replanned
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots."""
    return Life(bootstrap, tmp_path)


@pytest.mark.parametrize("hangs_in", ["poll", "stop"])
def test_a_task_that_hangs_is_given_up_when_its_time_is_over(life: Life, hangs_in: str) -> None:
    """The stop does not wait for it longer, it cannot write any more, and the next start goes on."""
    life.worker["task.shutdown.graceful.timeout.ms"] = "500"
    released, held = threading.Event(), threading.Event()
    topic = life.next_name()
    source = endless(topic)
    go_on = source.poll

    def hang() -> None:
        if not released.is_set():
            held.set()
            released.wait(30)

    def poll(task: SourceTask) -> Polled:
        if memory_of(task).get("at", 0) >= 200 and hangs_in == "poll":
            hang()
        return go_on(task)

    source.poll = poll
    source.stop = hang if hangs_in == "stop" else source.stop
    life.add(POLLED, source, transaction_boundary_interval_ms="50")
    with life.running():
        until(lambda: held.is_set() or (hangs_in == "stop" and len(life.values(topic)) > 100))

    (stopped,) = life.heard(ConnectorStopped)
    assert stopped
    released.set()
    with life.running():
        before = len(life.values(topic))
        until(lambda: len(life.values(topic)) > before)
    found = life.values(topic)
    assert numbers(len(found)) == found


def test_a_task_whose_stop_hangs_after_its_share_is_given_up(life: Life) -> None:
    """Nobody has asked it to end, so no one else would notice."""
    life.worker["task.shutdown.graceful.timeout.ms"] = "500"
    topic = life.next_name()
    source = reading(topic, 20)
    released = threading.Event()
    source.stop = lambda: released.wait(30) and None
    life.engine = ThreadEngine(slots=8)
    life.add(PLANNED, source, tasks_max="1")

    with life.running():
        life.witness.wait_for(lambda event: isinstance(event, Replanned), seconds=20)
        until(lambda: life.heard(ConnectorIdle))
    released.set()

    assert numbers(20) == life.values(topic)
    assert any("still occupied" in each for each in life.waits())


def test_a_stop_waits_for_the_connectors_own_boundary(life: Life) -> None:
    """What the connector closes within the graceful time is committed."""
    life.worker["task.shutdown.graceful.timeout.ms"] = "8000"
    polls: list[int] = []

    def poll(task: SourceTask) -> Polled:
        at = next_number(task.context.offsets) + 10 * len(polls)
        polls.append(at)
        if task.context.stopping() and task.context.transaction is not None:
            task.context.transaction.commit_transaction()
        return numbered(topic, at, 10)

    topic = life.add(POLLED, Puppet(poll=poll), transaction_boundary="connector")
    with life.running():
        until(lambda: len(polls) > 20)

    assert 10 * len(polls) == len(life.values(topic))
    assert [] == life.heard(Replanned)


def test_a_boundary_that_does_not_come_is_not_waited_for_for_ever(life: Life) -> None:
    """The transaction is aborted, no offset moves, and nothing has to be fenced or killed for it."""
    life.worker["task.shutdown.graceful.timeout.ms"] = "3000"
    polled: list[int] = []

    def poll(task: SourceTask) -> Polled:
        at = next_number(task.context.offsets)
        polled.append(at)
        threading.Event().wait(0.02)
        return numbered(topic, at, 10)

    topic = life.add(POLLED, Puppet(poll=poll), transaction_boundary="connector")
    with life.running():
        until(lambda: len(polled) > 10)

    assert [] == life.values(topic)
    assert {0} == set(polled)
    assert [] == life.waits()


def test_a_slot_that_was_cut_off_writes_nothing_when_it_wakes(life: Life) -> None:
    """A poll that returns after its work went to another finds its lease gone."""
    life.engine = ThreadEngine(slots=4)
    life.worker["task.shutdown.graceful.timeout.ms"] = "300"
    topic = life.next_name()
    released, held = threading.Event(), threading.Event()

    def poll(task: SourceTask) -> Polled:
        if not held.is_set():
            held.set()
            released.wait(30)
        return numbered(topic, 0, 5) if memory_of(task).setdefault("polls", 0) == 0 else None

    life.add(POLLED, Puppet(poll=poll))
    with life.running():
        until(held.is_set)
    released.set()

    assert [] == life.values(topic)
