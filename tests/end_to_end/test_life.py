"""What a worker does while nothing goes wrong: idle, at capacity, and when it is asked to stop."""

from __future__ import annotations

import gzip
import itertools
import threading
import time
from pathlib import Path

import pytest

from doubles.puppets import (
    PLANNED,
    POLLED,
    SOURCE,
    Puppet,
    endless,
    memory_of,
    next_number,
    reading,
)
from doubles.thread_engine import ThreadEngine
from end_to_end.live import Life, numbers
from headrace.connect.connector import ConnectorContext, Plan, PlanRequest
from headrace.connect.errors import StaleTokenError
from headrace.connect.task import Polled, SourceTask
from headrace.observe.events import (
    Committed,
    ConnectorIdle,
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
)
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots."""
    return Life(bootstrap, tmp_path)


# ------------------------------------------------------------------ idle


def test_no_job_is_started_while_there_is_nothing_to_do(life: Life) -> None:
    """A plan without work costs no job, however often it is looked at."""
    life.engine = engine = ThreadEngine()
    life.add(PLANNED, Puppet())

    with life.running():
        until(lambda: len(life.heard(ConnectorIdle)) > 5)

    assert 0 == engine.jobs


def test_what_appears_later_is_found(life: Life, tmp_path: Path) -> None:
    """A file that is put there while the connector is idle is read without a restart."""
    folder = tmp_path / "in"
    folder.mkdir()
    topic = life.add("files", files_path=str(folder), files_format="lines", files_min_age_ms="0")

    with life.running():
        until(lambda: life.heard(ConnectorIdle))
        (folder / "a.txt").write_text("one\ntwo\n")
        until(lambda: life.heard(MicroBatchEnded))

    assert ["one", "two"] == life.values(topic)


def test_offsets_of_a_plan_without_work_are_committed(life: Life) -> None:
    """They are there at the next plan, and nothing was sent."""
    life.engine = engine = ThreadEngine()
    seen: list[int] = []

    def plan(request: PlanRequest) -> Plan:
        seen.append(next_number(request.offsets))
        return Plan() if seen[-1] else Plan(offsets={SOURCE: {"next": 7}})

    topic = life.add(PLANNED, Puppet(plan=plan))

    assert {} == life.run_once()

    assert [0, 7] == seen
    assert (1, 0) == (len(life.heard(Committed)), engine.jobs)
    assert [] == life.values(topic)


def test_an_idle_source_may_move_its_offsets_once_per_flush_interval(life: Life) -> None:
    """update_offsets is asked on the driver, and what it returns is committed."""
    life.worker["offset.flush.interval.ms"] = "400"
    asked: list[float] = []
    seen: list[int] = []

    def plan(request: PlanRequest) -> Plan:
        seen.append(next_number(request.offsets))
        return Plan()

    def update(_: object) -> dict[object, dict[str, int]]:
        asked.append(time.monotonic())
        return {SOURCE: {"next": 9}}

    life.add(PLANNED, Puppet(plan=plan, update=update))  # type: ignore[arg-type]

    with life.running():
        until(lambda: 9 in seen and len(asked) > 2)

    assert all(later - sooner >= 0.4 for sooner, later in itertools.pairwise(asked))


def test_a_full_worker_that_runs_alone_never_waits_for_itself(life: Life) -> None:
    """The slots of one micro-batch are free again when the next one starts."""
    topic = life.next_name()
    source = reading(topic, 60)

    def one_piece(task: SourceTask) -> Polled:
        if memory_of(task).get("at"):
            return None
        return reading_poll(task)

    reading_poll, source.poll = source.poll, one_piece
    life.add(PLANNED, source)
    life.engine = ThreadEngine(slots=1)

    assert {} == life.run_once()

    assert numbers(60) == life.values(topic)
    assert [] == life.waits()


# ------------------------------------------------------------------ what a connector asks for


def asking(life: Life, kind: str, source: Puppet) -> tuple[str, list[ConnectorContext]]:
    """A connector's name, and its context once it has started."""
    contexts: list[ConnectorContext] = []
    source.started = contexts.append
    return life.add(kind, source), contexts


def test_an_error_that_a_connector_reports_ends_its_open_micro_batch(life: Life) -> None:
    """Its tasks would never end by themselves; what they have read is committed first."""
    name, contexts = asking(life, POLLED, endless(life.next_name()))

    with life.running() as wait:
        until(lambda: len(life.values(name)) > 50)
        contexts[0].raise_error(ValueError("the source is gone for good"))
        failures = wait()

    assert "the source is gone for good" == str(failures[name])
    (ended,) = life.heard(MicroBatchEnded)
    found = life.values(name)
    assert numbers(ended.committed_records) == found  # type: ignore[attr-defined]
    assert [] == life.heard(Replanned)


def test_an_error_that_is_reported_at_the_very_end_fails_the_connector(life: Life) -> None:
    """A run that has read all there is says so only when no one says otherwise."""

    def plan(_: PlanRequest) -> Plan:
        contexts[0].raise_error(ValueError("half of it was missing"))
        return Plan()

    name, contexts = asking(life, PLANNED, Puppet(plan=plan))

    assert "half of it was missing" == str(life.run_once()[name])


def test_new_tasks_that_a_connector_asks_for_are_there_soon(life: Life) -> None:
    """The micro-batch that is open ends for it, cleanly, and the next one has them."""
    topic = life.next_name()
    source = endless(topic)
    go_on = source.poll
    source.poll = lambda task: go_on(task) if task.context.task == 0 else ()
    _, contexts = asking(life, POLLED, source)

    with life.running():
        until(lambda: len(life.values(topic)) > 50)
        source.tasks = 2
        contexts[0].request_task_reconfiguration()
        until(lambda: len(life.heard(MicroBatchStarted)) == 2)
        behind = len(life.values(topic))
        until(lambda: len(life.values(topic)) > behind + 50)

    assert [1, 2] == [each.slots for each in life.heard(MicroBatchStarted)]  # type: ignore[attr-defined]
    found = life.values(topic)
    assert numbers(len(found)) == found
    assert [] == life.heard(Replanned)


def test_a_new_plan_that_a_connector_asks_for_is_made_soon(life: Life) -> None:
    """What is read goes on where it was, and one question is enough."""
    topic = life.next_name()
    source = reading(topic, 50, at_once=1)
    plan_now, read, plans, go_on = source.plan, source.poll, [0], threading.Event()

    def plan(request: PlanRequest) -> Plan:
        plans[0] += 1
        return plan_now(request)

    def slowly(task: SourceTask) -> Polled:
        go_on.wait(0.1)
        if plans[0] == 1 and memory_of(task).get("at") == 25:
            return ()
        return read(task)

    source.plan, source.poll = plan, slowly
    name, contexts = asking(life, PLANNED, source)

    with life.running():
        until(lambda: life.values(name))
        contexts[0].request_task_reconfiguration()
        until(lambda: len(life.values(name)) == 50)

    assert numbers(50) == life.values(name)
    assert 2 == len(life.heard(MicroBatchStarted))
    assert [] == life.heard(Replanned)


# ------------------------------------------------------------------ capacity


def test_a_polled_connector_with_more_tasks_than_slots_is_refused(life: Life) -> None:
    """The sentence says what to change."""
    life.engine = ThreadEngine(slots=1)
    name = life.add(POLLED, Puppet(tasks=2, probe=lambda _: False))

    failures = life.run_once()

    assert "has 2 polled tasks, but this worker has 1 slots" in str(failures[name])
    assert "raise headrace.slots or lower tasks.max" in str(failures[name])


def test_an_open_micro_batch_makes_room_for_those_who_wait(life: Life) -> None:
    """A polled source that never ends and a planned one share one slot; both get on, and it shows."""
    life.engine = ThreadEngine(slots=1)
    life.worker["headrace.batch.budget.ms"] = "300"
    greedy = life.add(POLLED, endless(life.next_name()))
    source = reading(life.next_name(), 500, at_once=500)
    modest, plan_now = life.add(PLANNED, source), source.plan

    def plan_later(request: PlanRequest) -> Plan:
        return plan_now(request) if life.heard(MicroBatchStarted, of=greedy) else Plan()

    source.plan = plan_later

    with life.running():
        until(lambda: life.heard(MicroBatchEnded, of=modest))
        until(lambda: len(life.heard(MicroBatchStarted, of=greedy)) > 1)

    assert life.heard(Queued, of=modest)
    assert numbers(500) == life.values(modest)
    found = life.values(greedy)
    assert numbers(len(found)) == found


def test_a_micro_batch_stays_open_while_no_one_waits(life: Life) -> None:
    """A time budget that no one needs is not enforced."""
    life.worker["headrace.batch.budget.ms"] = "100"
    life.engine = engine = ThreadEngine(slots=1)
    topic = life.add(POLLED, endless(life.next_name()), transaction_boundary_interval_ms="100")

    with life.running():
        until(lambda: len(life.values(topic)) > 300)

    assert 1 == engine.jobs


def test_when_one_task_has_to_be_planned_again_the_others_end_soon(life: Life) -> None:
    """Else a source of several tasks would go on without one of them, for ever."""
    topic = life.next_name()
    life.worker["headrace.lease.ms"] = "1000"
    source = endless(topic)
    go_on, lost = source.poll, threading.Event()

    def poll(task: SourceTask) -> Polled:
        if task.context.task == 0:
            return go_on(task)
        if not lost.is_set():
            lost.set()
            raise StaleTokenError("lost")
        return None

    source.poll, source.tasks = poll, 2
    life.add(POLLED, source)

    with life.running():
        life.witness.wait_for(lambda event: isinstance(event, Replanned))
        until(lambda: len(life.heard(MicroBatchStarted)) > 1)

    found = life.values(topic)
    assert numbers(len(found)) == found


def test_a_compressed_file_is_not_cut_by_the_clock(life: Life, tmp_path: Path) -> None:
    """Going on inside it would mean to unpack it again; a plain one makes room at once."""
    life.engine = ThreadEngine(slots=1)
    life.worker["headrace.batch.budget.ms"] = "100"
    file = tmp_path / "in" / "a.txt.gz"
    file.parent.mkdir()
    file.write_bytes(gzip.compress("".join(f"{n}\n" for n in range(3000)).encode()))
    packed = life.add(
        "files",
        files_path=str(file.parent),
        files_min_age_ms="0",
        files_format="lines",
        headrace_max_records_per_second="1000",
        files_batch_max_rows="100",
    )
    other = life.add(PLANNED, reading(life.next_name(), 10))

    assert {} == life.run_once()

    assert 1 == len(life.heard(MicroBatchStarted, of=packed))
    assert numbers(3000) == life.values(packed)
    assert numbers(10) == life.values(other)
