"""A group's topics taken over from a worker of Kafka Connect as they are, and given back."""

from __future__ import annotations

import json
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import Producer

from end_to_end.committed_messages import messages
from end_to_end.either_worker import RunningWorker, Workers
from headrace.offsets.codec import encoded_key, encoded_value
from headrace.testing.judge import judged

pytestmark = [pytest.mark.broker, pytest.mark.slow]

_STRING = "org.apache.kafka.connect.storage.StringConverter"
_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
_UNKNOWN = "com.example.LegacySourceConnector"
_LINES = 4000


@dataclass
class Group:
    """A group's name, its workers, and the files that its connectors read."""

    bootstrap: str
    folder: Path
    exactly_once: bool
    written: dict[str, list[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = f"taken-{random.SystemRandom().getrandbits(32)}"
        self.workers = Workers(
            self.folder,
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.name,
                "key.converter": _STRING,
                "value.converter": _STRING,
                "exactly.once.source.support": "enabled" if self.exactly_once else "disabled",
                "offset.flush.interval.ms": "500",
                "session.timeout.ms": "6000",
                "heartbeat.interval.ms": "1000",
                "scheduled.rebalance.max.delay.ms": "0",
                **{
                    f"{each}.storage.topic": f"{self.name}-{each}"
                    for each in ("config", "offset", "status")
                },
                **{
                    f"{each}.storage.replication.factor": "1"
                    for each in ("config", "offset", "status")
                },
            },
        )

    def file(self, connector: str) -> Path:
        """What the *connector* reads."""
        return self.folder / f"{connector}.txt"

    def topic(self, connector: str) -> str:
        """Where its lines go."""
        return f"{self.name}-{connector}"

    def write(self, connector: str) -> None:
        """Add lines to its file, each another one."""
        before = self.written.setdefault(connector, [])
        lines = [b"%s %d" % (connector.encode(), len(before) + each) for each in range(_LINES)]
        with self.file(connector).open("ab") as file:
            file.write(b"\n".join(lines) + b"\n")
        before += lines

    def create(self, worker: RunningWorker, connector: str, **config: str) -> None:
        """Have the *worker* make a connector that reads its file."""
        given = {
            "connector.class": _SOURCE,
            "tasks.max": "1",
            "file": str(self.file(connector)),
            "topic": self.topic(connector),
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        worker.request("PUT", f"/connectors/{connector}/config", given)

    def put_unknown(self) -> None:
        """Have a connector of a class that no worker has any more, as after its jar was taken away."""
        properties = {"connector.class": _UNKNOWN, "name": "unknown", "legacy.empty": None}
        producer = Producer({"bootstrap.servers": self.bootstrap})
        value = json.dumps({"properties": properties}).encode()
        producer.produce(f"{self.name}-config", value, b"connector-unknown")
        assert not producer.flush(30)

    def abort_offset(self, connector: str) -> None:
        """Have the offset behind all lines of its file written, and not committed."""
        file = self.file(connector)
        writer = {"bootstrap.servers": self.bootstrap, "transactional.id": self.name}
        producer = Producer({**writer, "partitioner": "murmur2_random"})
        producer.init_transactions(30)
        producer.begin_transaction()
        key = encoded_key(connector, {"filename": str(file)})
        value = encoded_value({"position": file.stat().st_size})
        producer.produce(f"{self.name}-offset", value, key)
        producer.flush(30)
        producer.abort_transaction(30)

    def wait_for_all(self, worker: RunningWorker, connector: str) -> None:
        """Return when the connector has committed what lies in its file."""
        size = self.file(connector).stat().st_size
        worker.wait_for(lambda: worker.position(connector) == size)

    def records(self, which: str) -> list[tuple[str, object]]:
        """What lies in the group's topic of that name, in its order."""
        topic = f"{self.name}-{which}"
        return [
            (
                (each.key() or b"").decode(),
                None if each.value() is None else json.loads(each.value() or b""),
            )
            for each in messages(self.bootstrap, [topic])
        ]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=lambda each: each.name)
@pytest.mark.parametrize("exactly_once", [True, False], ids=["exactly-once", "at-least-once"])
def test_over_and_back(
    bootstrap: str, tmp_path: Path, end: signal.Signals, *, exactly_once: bool
) -> None:
    """Connectors go on where they were and as they were, in both directions; what is not ours is left as it is."""
    group = Group(bootstrap, tmp_path / "group", exactly_once)
    with group.workers.java() as java:
        _begun(group, java)
        members = group.workers.checked()["group"]["members"]
        assert [f"{group.workers.address}/"] == [each["url"] for each in members]
        group.write("running")
        java.end(end)
    before = group.records("config")
    _foreseen(group)
    with group.workers.ours() as ours:
        _gone_on(group, ours)
        group.write("running")
        ours.end(end)
    assert [] == _not_counts(group.records("config")[len(before) :])
    with group.workers.java() as java:
        _given_back(group, java)
    for name, lines in group.written.items():
        found = judged(bootstrap, group.topic(name), lines)
        assert (found.lost, found.foreign) == (0, 0), name
        if exactly_once or end is signal.SIGTERM:
            assert found.twice == 0, name


def test_made_here(bootstrap: str, tmp_path: Path) -> None:
    """What our worker has stored is what Kafka Connect's would have: it goes on, and stores no task again."""
    group = Group(bootstrap, tmp_path / "group", exactly_once=True)
    names = {"whole": _SOURCE, "alias": "FileStreamSource"}
    with group.workers.ours() as ours:
        for name, class_name in names.items():
            group.write(name)
            group.create(ours, name, connector_class=class_name)
            group.wait_for_all(ours, name)
        ours.end(signal.SIGTERM)
    before = group.records("config")
    with group.workers.java() as java:
        for name in names:
            group.write(name)
            group.wait_for_all(java, name)
    added = [key for key, _ in group.records("config")[len(before) :]]
    assert [] == [each for each in added if each.startswith(("task-", "commit-", "connector-"))]
    for name, lines in group.written.items():
        assert judged(bootstrap, group.topic(name), lines).exactly_once, name


def test_an_aborted_offset_does_not_lead_java_astray(bootstrap: str, tmp_path: Path) -> None:
    """As a slot leaves it that was killed in a transaction: without exactly-once, a Java worker would go on behind lost lines."""
    group = Group(bootstrap, tmp_path / "group", exactly_once=False)
    with group.workers.java() as java:
        group.write("running")
        group.create(java, "running")
        group.wait_for_all(java, "running")
        java.end(signal.SIGTERM)
    group.write("running")
    group.abort_offset("running")

    group.workers.settle()

    with group.workers.java() as java:
        group.write("running")
        group.wait_for_all(java, "running")
    assert judged(bootstrap, group.topic("running"), group.written["running"]).exactly_once


def _begun(group: Group, java: RunningWorker) -> None:
    """Connectors of each kind, in each state, with lines that are committed."""
    for name in ("running", "paused", "stopped"):
        group.write(name)
        group.create(java, name)
        group.wait_for_all(java, name)
    group.create(java, "sink", connector_class=_SINK, topics=group.topic("running"))
    java.wait_for(lambda: ["RUNNING", "RUNNING"] == java.states("sink"))
    group.put_unknown()
    java.wait_for(lambda: "FAILED" in java.states("unknown")[:1])
    java.request("PUT", "/connectors/paused/pause")
    java.request("PUT", "/connectors/stopped/stop")
    java.wait_for(lambda: ["PAUSED", "PAUSED"] == java.states("paused"))
    java.wait_for(lambda: ["STOPPED"] == java.states("stopped"))
    for name in ("paused", "stopped"):
        group.write(name)


def _foreseen(group: Group) -> None:
    """What will become of the connectors is told, and nothing is written for it."""
    found = {each["name"]: each for each in group.workers.checked()["connectors"]}
    then = {name: each["then"] for name, each in found.items()}
    states = {"running": "RUNNING", "paused": "PAUSED", "stopped": "STOPPED"}
    assert {**states, "sink": "FAILED", "unknown": "FAILED"} == then
    assert _SINK in "".join(found["sink"]["problems"])
    assert [each["partition"] for each in found["paused"]["offsets"]] == [
        {"filename": str(group.file("paused"))}
    ]


def _gone_on(group: Group, ours: RunningWorker) -> None:
    """Our worker has taken everything over, and shows what it cannot run."""
    ours.wait_for(lambda: f"{_SINK} is a sink; headrace runs sources only" in ours.traces("sink"))
    ours.wait_for(lambda: f"{_UNKNOWN}, available connectors are: files" in ours.traces("unknown"))
    for name in ("sink", "unknown"):
        assert "FAILED" in ours.states(name)[:1]
    group.write("running")
    group.wait_for_all(ours, "running")
    assert ["RUNNING", "RUNNING"] == ours.states("running")
    assert ["PAUSED", "PAUSED"] == ours.states("paused")
    assert ["STOPPED"] == ours.states("stopped")


def _given_back(group: Group, java: RunningWorker) -> None:
    """Kafka Connect's has everything again, and goes on with what was not running."""
    group.wait_for_all(java, "running")
    java.wait_for(lambda: ["RUNNING", "RUNNING"] == java.states("sink"))
    assert ["PAUSED", "PAUSED"] == java.states("paused")
    assert ["STOPPED"] == java.states("stopped")
    for name in ("paused", "stopped"):
        java.request("PUT", f"/connectors/{name}/resume")
        group.wait_for_all(java, name)


def _not_counts(records: list[tuple[str, object]]) -> list[tuple[str, object]]:
    """Those that say more than how many tasks may have to be fenced."""
    return [each for each in records if not each[0].startswith("tasks-fencing-")]
