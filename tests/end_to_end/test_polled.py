"""Polled connectors from end to end: file_stream, the probe, plain records and their places in Kafka."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import pytest

from doubles.puppets import (
    POLLED,
    SOURCE,
    TELLING,
    Puppet,
    memory_of,
    next_number,
    numbered,
)
from doubles.thread_engine import ThreadEngine
from end_to_end.live import Life, numbers
from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import Header, SourceRecord
from headrace.connect.task import Polled, SourceTask
from headrace.observe.events import ConnectorIdle, MicroBatchEnded, SlotProgress
from headrace.testing.judge import committed_records
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots."""
    return Life(bootstrap, tmp_path)


# ------------------------------------------------------------------ file_stream


def test_a_file_that_does_not_exist_yet_is_followed_when_it_does(
    life: Life, tmp_path: Path
) -> None:
    """Its lines arrive while the connector runs; an unfinished one waits for its end."""
    file = tmp_path / "log.txt"
    topic = life.add("org.apache.kafka.connect.file.FileStreamSourceConnector", file=str(file))

    with life.running():
        until(lambda: life.heard(ConnectorIdle))
        file.write_text("one\ntwo\nthr")
        until(lambda: len(life.values(topic)) == 2)
        with file.open("a") as growing:
            growing.write("ee\nfour\n")
        until(lambda: len(life.values(topic)) == 4)

    assert ["one", "two", "three", "four"] == life.values(topic)


def test_once_reads_all_there_is_and_a_second_time_nothing(life: Life, tmp_path: Path) -> None:
    """Also when the file is missing altogether."""
    file = tmp_path / "log.txt"
    file.write_text("one\ntwo\n")
    topic = life.add("file_stream", file=str(file))
    missing = life.add("file_stream", file=str(tmp_path / "missing.txt"))

    assert [{}, {}] == [life.run_once(), life.run_once()]

    assert ["one", "two"] == life.values(topic)
    assert [] == life.values(missing)


@pytest.mark.slow
def test_a_large_file_goes_through_at_full_speed(life: Life, tmp_path: Path) -> None:
    """Batches, not records, are what costs; so a lot of lines take moments."""
    file = tmp_path / "log.txt"
    file.write_text("".join(f"{number}\n" for number in range(300_000)))
    topic = life.add("file_stream", file=str(file))
    started = time.monotonic()

    assert {} == life.run_once()

    # Record by record it would be several times this.
    assert time.monotonic() - started < 12
    assert numbers(300_000) == life.values(topic)


# ------------------------------------------------------------------ the loop


def test_a_probe_that_finds_nothing_starts_no_job(life: Life) -> None:
    """With it an idle connector keeps no slot; without it the slot stays, waiting in poll."""
    life.engine = engine = ThreadEngine(slots=1)
    there = [5]

    def probe(_: object) -> bool:
        return there[0] > 0

    def poll(task: SourceTask) -> Polled:
        if not there[0]:
            return None
        at, count = next_number(task.context.offsets), there[0]
        there[0] = 0
        return numbered(topic, at, count)

    topic = life.add(POLLED, Puppet(probe=probe, poll=poll))
    with life.running():
        until(lambda: len(life.heard(MicroBatchEnded)) == 1)
        idle = len(life.heard(ConnectorIdle))
        until(lambda: len(life.heard(ConnectorIdle)) > idle + 5)
        jobs = engine.jobs
        there[0] = 3
        until(lambda: len(life.heard(MicroBatchEnded)) == 2)

    assert (1, 2) == (jobs, engine.jobs)
    assert numbers(8) == life.values(topic)


def test_a_retriable_error_of_poll_is_nothing_now(life: Life) -> None:
    """The source was away for a moment; poll is called again."""

    def poll(task: SourceTask) -> Polled:
        polls = memory_of(task).setdefault("polls", 0)
        memory_of(task)["polls"] += 1
        if polls == 1:
            raise RetriableError("away", delay_seconds=0.01)
        return numbered(topic, 0 if polls == 0 else 10, 10) if polls < 3 else None

    topic = life.add(POLLED, Puppet(poll=poll))

    assert {} == life.run_once()

    assert numbers(20) == life.values(topic)


def test_a_source_that_stays_away_is_told_once_and_read_when_it_is_back(life: Life) -> None:
    """Whoever looks at the log sees why nothing comes."""
    errors = (RetriableError(f"refused, attempt {number}") for number in itertools.count(1))
    there: list[int] = []

    def poll(task: SourceTask) -> Polled:
        if not there:
            raise next(errors)
        at = memory_of(task).setdefault("at", next_number(task.context.offsets))
        memory_of(task)["at"] = 10
        return numbered(topic, 0, 10) if at == 0 else ()

    topic = life.add(POLLED, Puppet(poll=poll))
    with life.running():
        until(life.waits)
        told = len(life.heard(SlotProgress))
        until(lambda: len(life.heard(SlotProgress)) > told + 6)
        there.append(1)
        until(lambda: life.values(topic))

    assert numbers(10) == life.values(topic)
    (reason,) = life.waits()
    assert reason.startswith(f"Task {topic}-0 cannot read its source and retries: refused")


def test_plain_records_keep_all_they_have_and_their_task_learns_their_place(life: Life) -> None:
    """Topic, partition, key, headers and time; commit_record is told after the commit."""
    topic = f"{life.name}-0"
    sent = [
        SourceRecord(
            topic=topic,
            partition=0,
            source_partition=SourcePartition(shelf=number % 2),
            source_offset={"n": number},
            key=f"k{number}",
            value=None if number == 3 else f"v{number}",
            headers=(Header("n", str(number)), Header("n", "again")),
            timestamp=1_700_000_000_000 + number,
        )
        for number in range(6)
    ]
    given: list[bool] = []

    def poll(_: SourceTask) -> Polled:
        if given:
            return None
        given.append(True)
        return sent

    behaviour = Puppet(poll=poll)
    life.add(TELLING, behaviour)

    assert {} == life.run_once()

    found = list(committed_records(life.bootstrap, topic))
    assert [
        (
            each.key,
            str(each.value).encode() if each.value else None,
            [(header.key, str(header.value).encode()) for header in each.headers],
            each.timestamp,
        )
        for each in sent
    ] == [
        (
            each.key.decode() if each.key else None,
            each.value,
            list(each.headers),
            each.timestamp,
        )
        for each in found
    ]
    places = [place.offset for _, place in behaviour.placed if place is not None]
    assert ([each.offset for each in found], sent) == (
        places,
        [record for record, _ in behaviour.placed],
    )


def test_an_idle_task_gets_its_turn_while_its_sibling_is_never_idle(life: Life) -> None:
    """Else what arrives for it would wait for ever."""
    life.worker["headrace.batch.budget.ms"] = "300"
    late: list[int] = []
    busy, seldom = SOURCE, SourcePartition(source="seldom")

    def poll(task: SourceTask) -> Polled:
        if task.context.task == 0:
            at = memory_of(task).setdefault("at", next_number(task.context.offsets, busy))
            memory_of(task)["at"] = at + 1
            return numbered(topic, at, 1)
        if late and not next_number(task.context.offsets, seldom) and not memory_of(task):
            memory_of(task)["done"] = 1
            return numbered(topic, 1_000_000, 1, source=seldom)
        return None

    topic = life.add(POLLED, Puppet(poll=poll, tasks=2, probe=lambda _: True))
    with life.running():
        until(lambda: len(life.heard(MicroBatchEnded)) > 0)
        late.append(1)
        until(lambda: "1000000" in life.values(topic))

    found = [each for each in life.values(topic) if each != "1000000"]
    assert numbers(len(found)) == found
