"""A mirror whose positions expire on the target within a minute: while it runs it keeps them all, and what is lost is told."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from end_to_end.live import Life
from end_to_end.mirrored import SOURCE, Mirrored
from end_to_end.served import served, states, stop
from headrace.broker import Broker
from headrace.mirror.policies import DefaultReplicationPolicy
from project.brokers import PROPERTIES
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(180)]

# A minute is the shortest that brokers take.
_SHORT = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "500"}


class Expiring:
    """A flow to a target that forgets positions; its topics are ``busy`` and ``quiet``."""

    def __init__(self, source: str, target: str, folder: Path) -> None:
        self.flow = Mirrored(Topics(source), target)
        folder.mkdir()
        self.life = Life(target, folder)
        self.names = [self.flow.topics.create("busy", 2), self.flow.topics.create("quiet")]
        for topic in self.names:
            self.flow.topics.write(topic, 10)
        self.life.connectors.append(self.flow.connector())

    @property
    def busy(self) -> str:
        """The topic that is written to on and on where anything is."""
        return self.names[0]

    def entries(self) -> Sequence[str]:
        """The partitions for which the group has entries, the flow's own among them; it is asked by name."""
        ranges = DefaultReplicationPolicy({}).offset_ranges_topic(SOURCE)
        remote = [f"{SOURCE}.{each}" for each in self.names]
        places = [
            TopicPartition(ranges, 0),
            *(TopicPartition(remote[0], each) for each in (0, 1)),
            TopicPartition(remote[1], 0),
        ]
        settings = {
            "bootstrap.servers": self.flow.target,
            "group.id": f"connect-{self.flow.name}",
        }
        found = list[TopicPartition]()

        def are_answered() -> bool:
            try:
                found[:] = consumer.committed(places, timeout=10)
            except KafkaException:
                # An entry is in an open transaction.
                return False
            return True

        with closing(Consumer(settings)) as consumer:
            until(are_answered)
        return [f"{each.topic}-{each.partition}" for each in found if each.offset >= 0]


class Aged:
    """Flows to one target for longer than it keeps positions: two that ran all the time, and two that were down."""

    def __init__(self, source: str, target: str, folder: Path) -> None:
        self.busy, self.idle, self.stopped, self.continued = (
            Expiring(source, target, folder / name) for name in ("busy", "idle", "stop", "continue")
        )
        self.down = (self.stopped, self.continued)
        self.lacked = list[tuple[int, int]]()

    def grow_old(self) -> None:
        """Returns when what was down has lost its positions, while the others run."""
        for each in self.down:
            assert {} == each.life.run_once()
            assert 4 == len(each.entries())
        for each in (self.busy, self.idle):
            until(lambda each=each: each.flow.is_through(each.names), seconds=60)

        def have_expired() -> bool:
            self.busy.flow.topics.write(self.busy.busy, 1)
            left = len(self.busy.entries()), len(self.idle.entries())
            if left != (4, 4):
                self.lacked.append(left)
            return not any(each.entries() for each in self.down)

        until(have_expired, seconds=120)


@pytest.fixture(scope="module")
def forgetful_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Keeps the entries of a group for a minute."""
    folder = tmp_path_factory.mktemp("forgetful-broker")
    with Broker(folder, properties={**PROPERTIES, **_SHORT}) as target:
        yield target


@pytest.fixture(scope="module")
def aged(
    bootstrap: str, forgetful_broker: Broker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Aged]:
    """The flows, of which two run until the end of all tests. It takes more than a minute."""
    made = Aged(bootstrap, forgetful_broker.bootstrap, tmp_path_factory.mktemp("aged"))
    with made.busy.life.running(), made.idle.life.running():
        made.grow_old()
        yield made


def test_flows_that_run_keep_all_their_entries(aged: Aged) -> None:
    """Also those of partitions without records, beside one that is copied all the time; and the flow's own."""
    assert [] == aged.lacked
    for each in (aged.busy, aged.idle):
        until(lambda each=each: each.flow.is_through(each.names), seconds=60)
        assert {} == each.flow.differences(each.names)


def test_a_flow_that_was_down_stops_where_it_has_copied_and_goes_on_as_it_is_told(
    aged: Aged,
) -> None:
    """By the command that its sentence names; what it has never copied is copied meanwhile. Nothing comes twice."""
    flow, names = aged.stopped.flow, aged.stopped.names
    busy, quiet = names
    flow.topics.write(busy, 5)
    new = flow.topics.create("new")
    flow.topics.write(new, 5)
    with served(aged.stopped.life) as http:
        http.put(f"/connectors/{flow.name}/config", json=flow.connector())
        until(lambda: flow.positions().get((new, 0)) == 5, seconds=60)
        until(lambda: states(http, flow.name) == ("FAILED", {"RUNNING"}), seconds=60)
        trace = http.get(f"/connectors/{flow.name}/status").json()["connector"]["trace"]
        for topic in names:
            assert f"{topic}-0 has no position in the group connect-{flow.name}" in trace
        told = re.findall(r"headrace offsets set .*?'({\"cluster\".*?})'", trace)
        assert 2 == len(told)
        assert {(new, 0): 5, (busy, 1): 0} == flow.positions()

        stop(http, flow.name)
        for each in told:
            last = {"partition": json.loads(each), "offset": {"offset": 9}}
            answer = http.patch(f"/connectors/{flow.name}/offsets", json={"offsets": [last]})
            assert answer.is_success, answer.text
        http.put(f"/connectors/{flow.name}/resume")
        until(lambda: flow.is_through([busy, quiet, new]), seconds=60)
        until(lambda: states(http, flow.name) == ("RUNNING", {"RUNNING"}), seconds=60)

    assert {} == flow.differences([busy, quiet, new])


def test_a_flow_that_was_down_begins_again_where_that_is_set(
    aged: Aged, caplog: pytest.LogCaptureFixture
) -> None:
    """What was copied comes once more, in order, and the log says so."""
    flow, life, names = aged.continued.flow, aged.continued.life, aged.continued.names
    first = {each: life.values(f"{SOURCE}.{each}") for each in names}
    more = {each: flow.topics.write(each, 3) for each in names}
    life.connectors[:] = [flow.connector({"mirror.on.expired": "continue"})]

    assert {} == life.run_once()

    assert flow.is_through(names)
    for each in names:
        assert first[each] + first[each] + more[each] == life.values(f"{SOURCE}.{each}")
        assert f"{each}-0 has no position in the group connect-{flow.name}" in caplog.text
