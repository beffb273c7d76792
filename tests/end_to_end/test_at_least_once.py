"""Without exactly-once: nothing is lost, and an offset never passes what Kafka has acknowledged."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from doubles.cut_connections import side
from doubles.process_engine import ProcessEngine
from doubles.puppets import (
    PLANNED,
    POLLED,
    SOURCE,
    Puppet,
    endless,
    memory_of,
    next_number,
    numbered,
    reading,
)
from end_to_end.live import Life, numbers
from end_to_end.scene import Scene, is_claim
from headrace.connect.errors import TaskFailedError
from headrace.connect.task import Polled, SourceTask
from headrace.observe.events import SlotProgress
from headrace.plugins import checked_worker
from headrace.storage.sqlite import SqliteStorage
from waiting import until

pytestmark = pytest.mark.broker

# More than the five seconds of the usual grace.
_LATE_SECONDS = 6.0
HOMES = {"file": {}, "topic": {"offset.storage.topic": "given"}}


@pytest.fixture(params=sorted(HOMES))
def life(bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> Life:
    """A worker without exactly-once, with its offsets in the state file, or in a topic."""
    life = Life(bootstrap, tmp_path)
    life.worker["exactly.once.source.support"] = "disabled"
    if HOMES[request.param]:
        life.worker["offset.storage.topic"] = f"{life.name}-offsets"
    return life


def test_what_was_read_is_not_read_again_after_a_clean_end(life: Life) -> None:
    """Offsets are stored at the end, wherever they are kept."""
    topic = f"{life.name}-0"
    life.add(PLANNED, reading(topic, 300))

    assert [{}, {}] == [life.run_once(), life.run_once()]

    assert numbers(300) == life.values(topic)


def test_a_stop_stores_what_was_sent(life: Life) -> None:
    """A stopped connector goes on without a duplicate."""
    topic = f"{life.name}-0"
    life.add(POLLED, endless(topic))
    with life.running():
        until(lambda: len(life.values(topic)) > 100)
    with life.running():
        before = len(life.values(topic))
        until(lambda: len(life.values(topic)) > before)

    found = life.values(topic)
    assert numbers(len(found)) == found


@pytest.mark.slow
def test_a_stop_that_takes_long_stores_what_was_sent(life: Life, tmp_path: Path) -> None:
    """Within its grace, as on a machine that does much else; nothing was stored before, and Kafka answers late."""
    topic = f"{life.name}-0"
    life.worker |= {
        "offset.flush.interval.ms": "600000",
        "task.shutdown.graceful.timeout.ms": "30000",
    }
    life.add(POLLED, endless(topic))
    with side(tmp_path / "broker") as place:
        life.bootstrap = place.bootstrap
        with life.running():
            until(lambda: len(life.values(topic)) > 100)
            place.connections.stall()
            late = threading.Timer(_LATE_SECONDS, place.connections.resume)
            late.start()
        late.join()
        with life.running():
            before = len(life.values(topic))
            until(lambda: len(life.values(topic)) > before)
        found = life.values(topic)
    assert numbers(len(found)) == found


def test_an_offset_is_stored_only_behind_what_kafka_acknowledged(life: Life) -> None:
    """A task that fails later leaves the offset behind its last record that is in Kafka."""
    topic = f"{life.name}-0"

    def poll(task: SourceTask) -> Polled:
        at = memory_of(task).setdefault("at", next_number(task.context.offsets))
        if at >= 50:
            raise ValueError("cannot go on")
        memory_of(task)["at"] = at + 10
        return numbered(topic, at, 10)

    life.add(POLLED, Puppet(poll=poll))
    life.run_once()
    stored = list[int]()
    life.connectors.clear()

    def look(task: SourceTask) -> Polled:
        stored.append(next_number(task.context.offsets))
        return None

    life.add(POLLED, Puppet(poll=look, probe=lambda o: not stored and o.offset(SOURCE) is not None))
    life.run_once()

    assert numbers(50) == life.values(topic)
    assert 50 == stored[0]


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.kill
@pytest.mark.parametrize("home", sorted(HOMES))
def test_a_killed_slot_loses_nothing(bootstrap: str, tmp_path: Path, home: str) -> None:
    """Records after the last stored offset are sent again: twice is allowed, never is not."""
    name = f"alo-{home}-{os.getpid()}"
    scene = Scene(bootstrap, tmp_path, name)
    scene.worker |= {
        "exactly.once.source.support": "disabled",
        "offset.flush.interval.ms": "200",
    }
    if HOMES[home]:
        scene.worker["offset.storage.topic"] = f"{name}-offsets"
    expected = scene.write(files=1, records=16_000)
    engine = ProcessEngine(slots=2)
    with scene.running(engine) as wait:
        scene.witness.wait_for(is_claim)
        scene.witness.wait_for(lambda e: isinstance(e, SlotProgress) and e.committed_records > 0)
        os.kill(scene.witness.pids()[0], signal.SIGKILL)
        failures = wait()
    engine.close()

    assert {} == failures
    verdict = scene.verdict(expected)
    assert (0, 0) == (verdict.lost, verdict.foreign), verdict
    # What was stored before the kill was not read again.
    assert verdict.twice < len(expected) // 2, verdict


def test_the_delivery_may_not_change_under_stored_offsets(bootstrap: str, tmp_path: Path) -> None:
    """The offsets would be looked for elsewhere, and everything be sent again."""
    life = Life(bootstrap, tmp_path)
    topic = life.add(PLANNED, reading(f"{life.name}-0", 5))
    life.run_once()
    life.worker["exactly.once.source.support"] = "disabled"

    with pytest.raises(TaskFailedError, match="everything would be read again") as refusal:
        life.run_once()

    assert f"in the topic g-{life.name}-offsets" in str(refusal.value)
    assert "in the state file" in str(refusal.value)
    assert numbers(5) == life.values(topic)


def test_offsets_are_in_the_state_file_when_no_topic_is_named(
    bootstrap: str, tmp_path: Path
) -> None:
    """They came there through the channel: the worker is the file's only writer."""
    life = Life(bootstrap, tmp_path)
    life.worker["exactly.once.source.support"] = "disabled"
    name = life.add(PLANNED, reading(f"{life.name}-0", 5))
    assert {} == life.run_once()
    assert not checked_worker(life.worker_props()).exactly_once

    storage = SqliteStorage(tmp_path / "state.db")
    storage.offsets.refresh()
    known = dict(storage.offsets.known(name))
    storage.close()

    assert {SOURCE: {"next": 5}} == known
