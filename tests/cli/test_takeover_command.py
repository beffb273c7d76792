"""`headrace takeover --check` on topics that a worker of Kafka Connect might have left."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from headrace.broker.folder import as_text
from headrace.cli.main import commands
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.worker.takeover import once
from waiting import until

pytestmark = pytest.mark.broker

_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_KEY = b'["lines",{"filename":"/in"}]'


class Group:
    """A group without workers; its topics are there once they have been made."""

    def __init__(self, bootstrap: str, folder: Path) -> None:
        self.bootstrap = bootstrap
        self.name = f"left-{uuid4().hex[:8]}"
        self.file = folder / "worker.properties"
        self.settings = {
            "bootstrap.servers": bootstrap,
            "group.id": self.name,
            "key.converter": "string",
            "value.converter": "string",
            **{
                f"{each}.storage.topic": f"{self.name}-{each}"
                for each in ("config", "offset", "status")
            },
        }
        self.file.write_text(as_text(self.settings))

    def make_topics(self, partitions: Mapping[str, int] | None = None) -> None:
        """Create the three that Kafka Connect has."""
        admin = KafkaAdmin(client_config({"bootstrap.servers": self.bootstrap}))
        for each in ("config", "offset", "status"):
            made = (partitions or {}).get(each, 1)
            topic = CompactedTopic(name=f"{self.name}-{each}", partitions=made, replication=1)
            admin.ensure_compacted_topic(topic, Deadline.after(20))

    def put(self, which: str, *records: tuple[bytes, bytes | None], abort: bool = False) -> None:
        """Write to one of them, in a transaction."""
        writer = {"bootstrap.servers": self.bootstrap, "transactional.id": self.name}
        producer = Producer(writer)
        producer.init_transactions(30)
        producer.begin_transaction()
        for key, value in records:
            producer.produce(f"{self.name}-{which}", value, key)
        producer.flush(30)
        (producer.abort_transaction if abort else producer.commit_transaction)(30)

    def connector(self, name: str, **properties: str | None) -> tuple[bytes, bytes]:
        """The record of a connector's configuration."""
        given = {"name": name, **{key.replace("_", "."): each for key, each in properties.items()}}
        return f"connector-{name}".encode(), json.dumps({"properties": given}).encode()

    def check(self, *options: str) -> Result:
        """Ask the command."""
        arguments = ["takeover", "--check", *options, str(self.file)]
        return CliRunner().invoke(commands, arguments, standalone_mode=False)

    def settle(self) -> Result:
        """Have it write."""
        arguments = ["takeover", "--settle", str(self.file)]
        return CliRunner().invoke(commands, arguments, standalone_mode=False)

    def found(self) -> dict[str, Any]:
        """What it answers a program."""
        return json.loads(self.check("--json").stdout)


@pytest.fixture
def group(bootstrap: str, tmp_path: Path) -> Group:
    """A group of the test's own."""
    return Group(bootstrap, tmp_path)


def _lines(group: Group) -> tuple[bytes, bytes]:
    return group.connector("lines", connector_class=_SOURCE, file="/in", topic="t", empty=None)


def test_nothing_is_created(group: Group, bootstrap: str) -> None:
    """A group that never was has no connectors, and a worker would create its topics."""
    told = group.check()

    assert 0 == told.return_value, told.output
    assert "There are no connectors." in told.output
    assert 4 == told.output.count("will be created")
    assert "rights to write and to create were not tried" in told.output
    names = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics
    assert [] == [each for each in names if each.startswith(group.name)]


def test_what_runs_on_is_shown_with_its_offsets(group: Group) -> None:
    """The class, the states, the tasks and the committed offsets, to the digit."""
    group.make_topics()
    tasks = (b"task-lines-0", b'{"properties":{}}'), (b"commit-lines", b'{"tasks":1}')
    group.put("config", _lines(group), *tasks)
    group.put("offset", (_KEY, b'{"position":9007199254740993}'))
    status = b'{"state":"UNASSIGNED","trace":null,"worker_id":"w","generation":3}'
    group.put("status", (b"status-connector-lines", status))

    [found] = group.found()["connectors"]

    offset = {"partition": {"filename": "/in"}, "offset": {"position": 9007199254740993}}
    assert found == {
        "name": "lines",
        "class": _SOURCE,
        "target_state": "RUNNING",
        "state": "UNASSIGNED",
        "tasks": 1,
        "offsets": [{**offset, "aborted": None, "removed": False, "other_key": False}],
        "problems": [],
        "then": "RUNNING",
    }
    told = group.check()
    assert 0 == told.return_value
    assert '{"filename":"/in"}  {"position":9007199254740993}  same' in told.output


def test_what_cannot_run_is_told(group: Group) -> None:
    """A sink and a class that is not there fail if they are to run; what is stopped stays so."""
    group.make_topics()
    stopped = b"target-state-gone", b'{"state":"PAUSED","state.v2":"STOPPED"}'
    group.put(
        "config",
        group.connector("sink", connector_class="FileStreamSink"),
        group.connector("gone", connector_class="com.example.Gone"),
        stopped,
        (b"connector-odd", b"no JSON"),
    )

    told = group.check()

    assert 1 == told.return_value
    assert (
        "sink: connector.class: FileStreamSink is a sink; headrace runs sources only."
        in told.output
    )
    assert "matches com.example.Gone" in told.output
    assert f"Passed over: topic '{group.name}-config', partition 0, offset 3" in told.output
    then = {each["name"]: each["then"] for each in group.found()["connectors"]}
    assert {"sink": "FAILED", "gone": "STOPPED"} == then


def test_an_offset_that_was_not_committed_is_told(group: Group) -> None:
    """A Java worker without exactly-once reads it; one under a key in another order it does not find."""
    group.make_topics()
    group.put("config", _lines(group))
    group.put("offset", (_KEY, b'{"position":10}'))
    other = b'["lines",{"topic":"t","cluster":"c"}]'
    group.put("offset", (other, b'{"offset":1}'))
    group.put("offset", (_KEY, b'{"position":20}'), abort=True)

    [found] = group.found()["connectors"]

    by_offset = {json.dumps(each["offset"]): each for each in found["offsets"]}
    assert {"position": 20} == by_offset['{"position": 10}']["aborted"]
    assert by_offset['{"offset": 1}']["other_key"] is True
    assert 'takes {"position":20}, which was not committed' in group.check().output

    assert "Offsets written again: 2." in group.settle().output

    offsets = [each for connector in group.found()["connectors"] for each in connector["offsets"]]
    assert [None, None] == [each["aborted"] for each in offsets]
    assert [False, False] == [each["other_key"] for each in offsets]
    assert {"10", "1"} == {str(*each["offset"].values()) for each in offsets}
    assert "Offsets written again: 0." in group.settle().output


def test_an_offset_whose_removal_was_not_committed_is_told(group: Group) -> None:
    """A Java worker without exactly-once would find none, and begin anew; one whose removal was committed has none anyway."""
    group.make_topics()
    group.put("config", _lines(group))
    gone = b'["lines",{"filename":"/gone"}]'
    group.put("offset", (_KEY, b'{"position":10}'), (gone, b'{"position":5}'))
    group.put("offset", (gone, None))
    group.put("offset", (_KEY, None), (gone, None), abort=True)

    [found] = group.found()["connectors"]

    assert [({"position": 10}, True)] == [
        (each["offset"], each["removed"]) for each in found["offsets"]
    ]
    assert "finds none, as it was removed in a transaction" in group.check().output

    assert "Offsets written again: 1." in group.settle().output
    [found] = group.found()["connectors"]
    assert [({"position": 10}, False)] == [
        (each["offset"], each["removed"]) for each in found["offsets"]
    ]


def test_a_topic_that_cannot_be_used_is_told(group: Group) -> None:
    """In the words in which a worker would refuse it."""
    group.make_topics({"config": 2})

    told = group.check()

    assert 1 == told.return_value
    assert "required to have a single partition" in told.output


def test_members_are_in_the_way(group: Group) -> None:
    """They are named by the brokers, not by themselves."""
    member = {"bootstrap.servers": group.bootstrap, "group.id": group.name, "client.id": "still"}
    group.make_topics()
    consumer = Consumer(member)
    try:
        consumer.subscribe([f"{group.name}-offset"])
        until(lambda: consumer.poll(0.1) is None and consumer.assignment())

        told = group.check()

        assert 1 == told.return_value
        assert "Stop these workers first" in told.output
        assert "still" in told.output
        refused = group.settle()
        assert "Stop them first" in str(refused.exception)
    finally:
        consumer.close()


def test_that_kafka_is_waited_for_is_told_once() -> None:
    """A worker's log has it again and again, for who looks later."""
    told = list[str]()
    tell = once(told.append)

    for each in ("a", "a", "b", "a"):
        tell(each)

    assert ["a", "b"] == told
