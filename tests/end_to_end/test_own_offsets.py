"""A connector with an offsets topic of its own: two places, one truth (KIP-618)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from doubles.process_engine import ProcessEngine
from doubles.puppets import PLANNED, reading
from end_to_end import dying_copies
from end_to_end.live import Life, numbers
from end_to_end.places import in_topic
from end_to_end.scene import SENDERS, Scene
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.testing.judge import committed_records

pytestmark = pytest.mark.broker

KEY = "offsets.storage.topic"
MODES = {
    "exactly once": {},
    "at least once, topic": {"exactly.once.source.support": "disabled"},
    "at least once, file": {"exactly.once.source.support": "disabled"},
}


@pytest.fixture(params=MODES)
def life(bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest) -> Life:
    """A worker in each mode; its own offsets are in a topic, or in its file."""
    life = Life(bootstrap, tmp_path)
    life.worker |= MODES[request.param]
    if "file" not in request.param:
        life.worker["offset.storage.topic"] = f"{life.name}-worker-s"
    return life


@pytest.mark.parametrize("sender", SENDERS)
def test_what_is_committed_is_in_both_places(life: Life, sender: str) -> None:
    """The connector's topic is made; a clean end leaves nothing to be copied."""
    name = life.add(PLANNED, reading(life.next_name(), 300))
    own = f"{life.name}-own"
    life.connectors[0] |= {KEY: own, "headrace.sender": sender}

    assert {} == life.run_once()
    found = in_topic(life.bootstrap, own, name)
    assert found
    if topic := life.worker.get("offset.storage.topic"):
        assert found == in_topic(life.bootstrap, topic, name)


def test_a_topic_of_its_own_may_come_and_go(life: Life) -> None:
    """The connector goes on where it was, each time."""
    topic = life.next_name()
    life.add(PLANNED, reading(topic, 100))
    own = f"{life.name}-own"
    for count, config in ((100, {}), (200, {KEY: own}), (300, {})):
        name = life.connectors.pop()["name"]
        assert name == life.add(PLANNED, reading(topic, count))
        life.connectors[0] |= config
        assert {} == life.run_once()

    assert numbers(300) == life.values(topic)


@pytest.mark.parametrize("transform", [False, True])
def test_records_for_the_offsets_topic_fail_the_connector(
    bootstrap: str, tmp_path: Path, *, transform: bool
) -> None:
    """Also when a transformation makes them go there; nothing of them is in the topic."""
    life = Life(bootstrap, tmp_path)
    own = f"{life.name}-own"
    life.add(PLANNED, reading("elsewhere" if transform else own, 10))
    life.connectors[0][KEY] = own
    if transform:
        life.connectors[0] |= {
            "transforms": "r",
            "transforms.r.type": "RegexRouter",
            "transforms.r.regex": ".*",
            "transforms.r.replacement": own,
        }
    ((name, failure),) = life.run_once().items()

    told = str(failure)
    assert "Source tasks may not produce to their own offsets topics" in told
    assert f"connector {name} is destined for topic {own!r}" in told
    assert [] == life.values(own)


def test_a_topic_that_forgets_is_refused(bootstrap: str, tmp_path: Path) -> None:
    """As the worker's is."""
    life = Life(bootstrap, tmp_path)
    life.add(PLANNED, reading(life.next_name(), 10))
    life.connectors[0][KEY] = f"{life.name}-own"
    KafkaAdmin(client_config({"bootstrap.servers": bootstrap})).ensure_topic(
        f"{life.name}-own", Deadline.after(20), partitions=1, replication=1
    )
    (failure,) = life.run_once().values()

    assert "supplied via the 'offsets.storage.topic' property is required" in str(failure)


def test_the_worker_s_topic_under_another_address_is_one_store(
    bootstrap: str, tmp_path: Path
) -> None:
    """A copy into the same topic would come behind newer offsets."""
    life = Life(bootstrap, tmp_path, worker=dict(MODES["at least once, topic"]))
    life.worker["offset.storage.topic"] = topic = f"{life.name}-worker-s"
    names = {"127.0.0.1": "localhost", "localhost": "127.0.0.1"}
    host, _, port = bootstrap.rpartition(":")
    name = life.add(PLANNED, reading(life.next_name(), 300))
    life.connectors[0] |= {
        KEY: topic,
        "producer.override.bootstrap.servers": f"{names[host]}:{port}",
    }

    assert {} == life.run_once()
    written = [(each.key, each.value) for each in committed_records(bootstrap, topic)]
    assert written
    assert len(set(written)) == len(written)
    assert numbers(300) == life.values(name)


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.kill
@pytest.mark.parametrize(("victim", "sender"), [("slot", "wire"), ("worker", "client")])
def test_a_kill_between_the_commit_and_its_copy_loses_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, processes: ProcessEngine, victim: str, *, sender: str
) -> None:
    """The own topic wins, the copies catch up, and without the own topic it goes on from them."""
    scene = Scene(bootstrap, tmp_path, f"own-offsets-{victim}-{os.getpid()}")
    own = f"{scene.topic}-own"
    scene.connector = {KEY: own, "connector.class": "end_to_end.dying_copies:DyingFiles"}
    scene.connector["headrace.sender"] = sender
    scene.worker = {"plugin.modules": "end_to_end.dying_copies"}
    expected = scene.write(records=4_000)
    mark = dying_copies.armed(scene, victim)
    if victim == "worker":
        assert -9 == dying_copies.run_until_death(scene)
    before = scene.run_once(processes)
    in_own = in_topic(bootstrap, own, scene.topic)
    in_worker_s = in_topic(bootstrap, f"g-{scene.topic}-offsets", scene.topic)
    del scene.connector[KEY]
    after = scene.run_once(processes)

    assert (True, {}, {}) == (mark.exists(), before, after)
    assert in_own == in_worker_s
    assert scene.verdict(expected).exactly_once, scene.verdict(expected)
