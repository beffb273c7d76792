"""A mirror between two real brokers: every record of the source once at the target, and its position with it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from end_to_end.live import Life
from end_to_end.mirrored import SOURCE, EveryKind, Mirrored
from headrace.broker import Broker
from headrace.connect.partition import SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.offsets.codec import encoded_entries
from headrace.runtime.engine import LocalProcesses
from headrace.spark.engine import SparkEngine
from headrace.testing.judge import committed_records
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

# Looks at each record, and changes none.
TRANSFORMED = {
    "transforms": "keep",
    "transforms.keep.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.keep.predicate": "never",
    "predicates": "never",
    "predicates.never.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.never.pattern": "no topic at all",
}


@pytest.fixture
def flow(bootstrap: str, broker: Broker) -> Mirrored:
    """From the shared broker to the mortal one."""
    return Mirrored(Topics(bootstrap), broker.bootstrap)


@pytest.fixture
def life(broker: Broker, tmp_path: Path, spark_engine: SparkEngine) -> Life:
    """A worker of the target, on Spark."""
    return Life(broker.bootstrap, tmp_path, engine=spark_engine, processes=LocalProcesses())


@pytest.mark.parametrize(
    "settings",
    [{}, TRANSFORMED, {"transaction.producer.enabled": "false"}],
    ids=["unopened", "decoded", "idempotent"],
)
def test_every_kind_of_record_is_the_same_on_both_sides(
    flow: Mirrored, life: Life, settings: dict[str, str]
) -> None:
    """Whichever way it takes, and with the positions at the source's ends."""
    kinds = EveryKind(flow.topics, random.Random(1))
    kinds.create()
    life.connectors.append(flow.connector(settings))

    assert {} == life.run_once()

    assert 10 == len(kinds.names)
    assert {} == flow.differences(kinds.names)
    assert flow.ends(kinds.names) == flow.positions()


def test_partitions_and_topics_are_found_while_it_runs(flow: Mirrored, life: Life) -> None:
    """And what is written into what is known arrives as well."""
    kinds = EveryKind(flow.topics, random.Random(2))
    first = flow.topics.create("first")
    kinds.write(first, 30)
    life.connectors.append(flow.connector())
    with life.running():
        until(lambda: flow.is_through([first]), seconds=120)
        flow.topics.grow(first, 3)
        second = flow.topics.create("second", 2)
        for partition in (0, 2):
            kinds.write(first, 20, partition)
        kinds.write(second, 20, 1)
        until(lambda: flow.is_through([first, second]), seconds=120)

    assert {} == flow.differences([first, second])


def test_what_mirror_maker_has_copied_is_not_copied_again(flow: Mirrored, life: Life) -> None:
    """Its positions are taken over from the worker's offsets topic, once, and leave it."""
    topic = flow.topics.create("taken-over")
    values = flow.topics.write(topic, 30)
    copy = f"{SOURCE}.{topic}"
    admin = AdminClient({"bootstrap.servers": flow.target})
    admin.create_topics([NewTopic(copy, 1, 1)])[copy].result()
    place = SourcePartition({"cluster": SOURCE, "partition": 0, "topic": topic})
    left = encoded_entries(flow.name, {place: {"offset": 19}})
    offsets = f"g-{life.name}-offsets"
    ensure = CompactedTopic(name=offsets, partitions=2, replication=1)
    KafkaAdmin(client_config({"bootstrap.servers": flow.target})).ensure_compacted_topic(
        ensure, Deadline.after(30)
    )
    producer = Producer({"bootstrap.servers": flow.target, "partitioner": "murmur2_random"})
    for key, value in left:
        producer.produce(offsets, key=key, value=value)
    for value in values[:20]:
        producer.produce(copy, value=value, partition=0)
    assert 0 == producer.flush(30)
    life.connectors.append(flow.connector())

    assert {} == life.run_once()
    assert {} == life.run_once()

    assert values == life.values(copy)
    assert {(topic, 0): 30} == flow.positions()
    last = {each.key: each.value for each in committed_records(flow.target, offsets)}
    assert {key: None for key, _ in left} == last
