"""Whatever part of a mirror, of its source or of its target is killed or frozen: every record is at the target once."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from doubles.cut_connections import Side, side
from end_to_end.growing_topics import Records
from end_to_end.mirror_worker import MirrorWorker
from end_to_end.mirrored import SOURCE, Mirrored, committed, with_own_time
from end_to_end.scene import pause
from headrace.broker import Broker
from judges.java_judge import JavaJudge
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
PARTS = ("slot", "frozen", "source", "target", "worker", "cut")


@pytest.fixture(scope="module")
def mortal_source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The source, as whoever was last has left it."""
    with side(tmp_path_factory.mktemp("source-broker")) as made:
        yield made


@pytest.fixture(scope="module")
def mortal_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """The target, likewise."""
    with side(tmp_path_factory.mktemp("target-broker")) as made:
        yield made


@pytest.fixture(scope="module")
def first_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """A target whose transactions are of the first version: before KIP-890."""
    with side(tmp_path_factory.mktemp("first-target"), transaction_version=1) as made:
        yield made


def restarted(broker: Broker) -> Callable[[random.Random], None]:
    """SIGKILL, and a start after a while."""

    def kill(chance: random.Random) -> None:
        broker.kill()
        pause(chance)
        broker.start()

    return kill


def cut(chance: random.Random, sides: Sequence[Side]) -> None:
    """What the connections of either carry next arrives in half."""
    connections = chance.choice(sides).connections
    until(lambda: connections.cut(chance), seconds=SECONDS)


def cases() -> Iterator[object]:
    """What is hit, one part after the other: more than fifty rounds in all. Every fourth target has old transactions."""
    for seed in range(26):
        chance = random.Random(seed)
        hits = chance.sample(PARTS, 2)
        target = "first_target" if seed % 4 == 3 else "mortal_target"
        yield pytest.param(target, hits, seed, id=f"{'-'.join(hits)}-{seed}")


def advance(flow: Mirrored, worker: MirrorWorker) -> None:
    """Wait until something more is copied."""
    before = sum(flow.positions().values())
    until(lambda: sum(flow.positions().values()) > before or not worker.is_running, seconds=SECONDS)
    assert worker.is_running, worker.said()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("target", "hits", "seed"), [*cases()])
def test_every_record_is_at_the_target_once(  # noqa: PLR0917
    request: pytest.FixtureRequest,
    mortal_source: Side,
    judge: JavaJudge,
    tmp_path: Path,
    target: str,
    hits: list[str],
    seed: int,
) -> None:
    """In order, as both other clients read it; and the group's entries are exactly at the source's ends."""
    sides: list[Side] = [mortal_source, request.getfixturevalue(target)]
    brokers = [each.broker for each in sides]
    for each in brokers:
        each.resume()
        each.start()
    chance = random.Random(f"{hits} {seed}")
    topics = Topics(brokers[0].bootstrap)
    records = Records(topics, chance)
    records.create(2)
    flow = Mirrored(topics, brokers[1].bootstrap)
    from_there = {"source.cluster.bootstrap.servers": sides[0].bootstrap}
    worker = MirrorWorker(tmp_path, sides[1].bootstrap, flow.connector(from_there))
    hit = {
        "slot": worker.kill_slot,
        "frozen": worker.freeze_slot,
        "source": restarted(brokers[0]),
        "target": restarted(brokers[1]),
        "worker": worker.kill,
        "cut": partial(cut, sides=sides),
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

    assert {} == flow.differences(records.names, judge)
    assert flow.is_through(records.names)
    said = worker.said()
    assert not [word for word in FORBIDDEN if word in said], said


def test_without_transactions_records_may_be_copied_twice_and_are_never_lost(
    bootstrap: str, broker: Broker, tmp_path: Path
) -> None:
    """What was copied after the last position is copied again."""
    chance = random.Random(1)
    flow = Mirrored(Topics(bootstrap), broker.bootstrap)
    records = Records(flow.topics, chance)
    records.create(2)
    idempotent = flow.connector({"transaction.producer.enabled": "false"})
    worker = MirrorWorker(tmp_path, broker.bootstrap, idempotent)
    worker.start()
    try:
        with records.written():
            for each in (worker.kill_slot, worker.freeze_slot):
                advance(flow, worker)
                each(chance)
            advance(flow, worker)
        until(lambda: flow.is_through(records.names) or not worker.is_running, seconds=SECONDS)
        worker.stop()
    finally:
        worker.end()

    assert flow.is_through(records.names), worker.said()
    found = committed(broker.bootstrap, [f"{SOURCE}.{each}" for each in records.names])
    for name, partitions in committed(bootstrap, records.names).items():
        for number, of_partition in with_own_time(partitions).items():
            assert set(of_partition) == set(found[f"{SOURCE}.{name}"][number]), worker.said()
