"""Whatever part of a mirror, of its source or of its target is killed or frozen: every record is at the target once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from end_to_end.growing_topics import Records
from end_to_end.mirror_worker import MirrorWorker
from end_to_end.mirrored import Mirrored
from end_to_end.scene import pause
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

SECONDS = 120.0
# What a mirror must never make of a kill: it would be a loss, or a lie.
FORBIDDEN = (
    "lost records",
    "were deleted",
    "deleted and created again",
    "has no position",
    "Corrupt",
)
PARTS = ("slot", "frozen", "source", "target", "worker")


@pytest.fixture(scope="module")
def mortal_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The source, as whoever was last has left it."""
    with Broker(tmp_path_factory.mktemp("source-broker")) as source:
        yield source


@pytest.fixture
def source_broker(mortal_source: Broker) -> Broker:
    """A running broker besides the target's."""
    mortal_source.resume()
    return mortal_source.start()


def restarted(broker: Broker) -> Callable[[random.Random], None]:
    """SIGKILL, and a start after a while."""

    def kill(chance: random.Random) -> None:
        broker.kill()
        pause(chance)
        broker.start()

    return kill


def cases() -> Iterator[object]:
    """What is hit, one part after the other: more than fifty rounds in all."""
    for seed in range(26):
        chance = random.Random(seed)
        hits = chance.sample(PARTS, 2)
        yield pytest.param(hits, seed, id=f"{'-'.join(hits)}-{seed}")


def advance(flow: Mirrored, worker: MirrorWorker) -> None:
    """Wait until something more is copied."""
    before = sum(flow.positions().values())
    until(lambda: sum(flow.positions().values()) > before or not worker.is_running, seconds=SECONDS)
    assert worker.is_running, worker.said()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("hits", "seed"), [*cases()])
def test_every_record_is_at_the_target_once(  # noqa: PLR0917
    source_broker: Broker, broker: Broker, tmp_path: Path, hits: list[str], seed: int
) -> None:
    """In order, as the client library reads both; and the group's entries are exactly at the source's ends."""
    chance = random.Random(f"{hits} {seed}")
    topics = Topics(source_broker.bootstrap)
    records = Records(topics, chance)
    records.create(2)
    flow = Mirrored(topics, broker.bootstrap)
    worker = MirrorWorker(tmp_path, broker.bootstrap, flow.connector())
    hit = {
        "slot": worker.kill_slot,
        "frozen": worker.freeze_slot,
        "source": restarted(source_broker),
        "target": restarted(broker),
        "worker": worker.kill,
    }
    worker.start()
    try:
        with records.written():
            for each in hits:
                records.grow()
                advance(flow, worker)
                pause(chance, 1.0)
                hit[each](chance)
            advance(flow, worker)
        until(lambda: flow.is_through(records.names) or not worker.is_running, seconds=SECONDS)
        worker.stop()
    finally:
        worker.end()

    assert {} == flow.differences(records.names)
    assert flow.is_through(records.names)
    said = worker.said()
    assert not [word for word in FORBIDDEN if word in said], said
