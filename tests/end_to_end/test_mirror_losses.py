"""What a mirror does on two real brokers about what it cannot copy: told, and everything else copied."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from end_to_end.live import Life
from end_to_end.mirrored import SOURCE, Mirrored
from end_to_end.served import served, states, stop
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.timeout(180)]


@pytest.fixture
def flow(bootstrap: str, broker: Broker) -> Mirrored:
    """From the shared broker to the mortal one."""
    return Mirrored(Topics(bootstrap), broker.bootstrap)


@pytest.fixture
def life(broker: Broker, tmp_path: Path) -> Life:
    """A worker of the target."""
    return Life(broker.bootstrap, tmp_path)


def test_a_partition_that_lost_records_does_not_stop_the_others(flow: Mirrored, life: Life) -> None:
    """The connector is FAILED and its tasks are RUNNING, until someone has said where to go on."""
    topic = flow.topics.create("t", 2)
    for partition in (0, 1):
        flow.topics.write(topic, 10, partition)
    with served(life) as http:
        http.put(f"/connectors/{flow.name}/config", json=flow.connector())
        until(lambda: flow.is_through([topic]), seconds=60)
        stop(http, flow.name)
        flow.topics.write(topic, 10, 0)
        flow.topics.delete_records(topic, 15)
        flow.topics.write(topic, 5, 1)
        http.put(f"/connectors/{flow.name}/resume")
        until(lambda: flow.positions()[topic, 1] == 15, seconds=60)
        until(lambda: states(http, flow.name) == ("FAILED", {"RUNNING"}), seconds=60)
        status = http.get(f"/connectors/{flow.name}/status").json()
        assert f"{topic}-0 is to be copied from offset 10 on" in status["connector"]["trace"]

        stop(http, flow.name)
        place = {"cluster": SOURCE, "topic": topic, "partition": 0}
        offsets = {"offsets": [{"partition": place, "offset": {"offset": 14}}]}
        assert http.patch(f"/connectors/{flow.name}/offsets", json=offsets).is_success
        http.put(f"/connectors/{flow.name}/resume")
        until(lambda: flow.is_through([topic]), seconds=60)
        until(lambda: states(http, flow.name) == ("RUNNING", {"RUNNING"}), seconds=60)


@pytest.mark.slow
def test_a_partition_of_which_nothing_is_copied_by_its_offset_begins_where_its_log_does(
    flow: Mirrored, life: Life
) -> None:
    """As for MirrorMaker, whatever was deleted before."""
    topic = flow.topics.create("t")
    values = flow.topics.write(topic, 10)
    flow.topics.delete_records(topic, 4)
    place = {"cluster": SOURCE, "topic": topic, "partition": 0}
    created = {
        "name": flow.name,
        "config": flow.connector({"mirror.start": "latest"}),
        "initial_offsets": [{"partition": place, "offset": {"offset": -1}}],
    }
    with served(life) as http:
        assert http.post("/connectors", json=created).is_success
        until(lambda: flow.is_through([topic]), seconds=60)

    assert values[4:] == life.values(f"{SOURCE}.{topic}")


def test_a_topic_that_is_deleted_while_it_is_followed_does_not_stop_the_others(
    flow: Mirrored, life: Life
) -> None:
    """Where that is to be a failure; nothing has to be restarted."""
    deleted, kept = flow.topics.create("deleted"), flow.topics.create("kept")
    for topic in (deleted, kept):
        flow.topics.write(topic, 5)
    with served(life) as http:
        config = flow.connector({"mirror.on.removed": "fail"})
        http.put(f"/connectors/{flow.name}/config", json=config)
        until(lambda: flow.is_through([deleted, kept]), seconds=60)
        flow.topics.delete(deleted)
        until(lambda: states(http, flow.name) == ("FAILED", {"RUNNING"}), seconds=60)
        flow.topics.write(kept, 5)
        until(lambda: flow.positions()[kept, 0] == 10, seconds=60)
        trace = http.get(f"/connectors/{flow.name}/status").json()["connector"]["trace"]

    assert f"Of the topic {deleted}, 1 partition not on the brokers any more" in trace


def test_refused_records_are_told_and_where_errors_are_tolerated_dead_letters(
    flow: Mirrored, life: Life
) -> None:
    """Only those that the target does not take; the positions pass them in the same transaction."""
    topic = flow.topics.create("t")
    remote = f"{SOURCE}.{topic}"
    compacted = NewTopic(remote, 1, 1, config={"cleanup.policy": "compact"})
    admin = AdminClient({"bootstrap.servers": flow.target})
    admin.create_topics([compacted])[remote].result()
    producer = flow.topics.producer()
    for number in range(30):
        producer.produce(topic, f"v{number}", None if number in (12, 14) else f"k{number}")
        if number % 10 == 9:
            assert producer.flush(30) == 0
    life.connectors.append(flow.connector({"sync.topic.configs.enabled": "false"}))

    failures = life.run_once()

    assert f"The record at offset 12 of {topic}-0 cannot be copied" in str(failures[flow.name])
    letters = f"{topic}-letters"
    life.connectors[0] |= {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    assert {} == life.run_once()
    assert ["v12", "v14"] == life.values(letters)
    assert [f"v{each}" for each in range(30) if each not in (12, 14)] == life.values(remote)
    assert flow.is_through([topic])


INSERT_HEADER = {
    "header.converter": "org.apache.kafka.connect.storage.StringConverter",
    "transforms": "h",
    "transforms.h.type": "org.apache.kafka.connect.transforms.InsertHeader",
    "transforms.h.header": "by",
    "transforms.h.value.literal": "a mirror",
}


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, INSERT_HEADER], ids=["unopened", "transformed"])
def test_a_damaged_batch_stops_its_partition_behind_what_is_before_it(
    broker: Broker, bootstrap: str, tmp_path: Path, settings: dict[str, str]
) -> None:
    """Until a user says where to go on, or that errors are tolerated; the other partitions are copied."""
    flow, life = Mirrored(Topics(broker.bootstrap), bootstrap), Life(bootstrap, tmp_path)
    topic = flow.topics.create("t", 2)
    values = [flow.topics.write(topic, 10, 0) for _ in range(3)]
    others = flow.topics.write(topic, 10, 1)
    [log] = broker.log_file.parents[1].glob(f"kafka/{topic}-0/*.log")
    octets = log.read_bytes()
    at = octets.index(values[1][4].encode())
    with log.open("r+b") as file:
        file.seek(at)
        file.write(b"#")
    life.connectors.append(flow.connector(settings))

    said = str(life.run_once()[flow.name])

    assert f"The record batch at offset 10 of partition {topic}-0 is corrupt: its checksum" in said
    assert "With errors.tolerance=all it is passed over, up to its last offset 19" in said
    assert f"headrace offsets set {flow.name} " in said
    assert """'{"offset":19}' goes on after it, at offset 20,""" in said
    assert {(topic, 0): 10, (topic, 1): 10} == flow.positions()
    flow.topics.write(topic, 5, 1)
    assert said == str(life.run_once()[flow.name])
    assert {(topic, 0): 10, (topic, 1): 15} == flow.positions()
    life.connectors[0]["errors.tolerance"] = "all"
    assert {} == life.run_once()
    assert {(topic, 0): 30, (topic, 1): 15} == flow.positions()
    copied = Counter(life.values(f"{SOURCE}.{topic}"))
    copied.subtract([*values[0], *values[2], *others])
    assert 5 == copied.total() == sum(map(abs, copied.values()))


@pytest.mark.slow
def test_a_remote_topic_deleted_while_nothing_ran_is_told(flow: Mirrored, life: Life) -> None:
    """The broker removes the positions with it, and the ranges say that there were some; others are copied."""
    topic, other = flow.topics.create("t"), flow.topics.create("u")
    for each in (topic, other):
        flow.topics.write(each, 10)
    life.connectors.append(flow.connector())
    assert {} == life.run_once()
    remote = Topics(flow.target)
    remote.delete(f"{SOURCE}.{topic}")
    until(lambda: (topic, 0) not in flow.positions())
    new = flow.topics.create("v")
    for each in (other, new):
        flow.topics.write(each, 5)

    failures = life.run_once()

    assert f"The remote topic {SOURCE}.{topic} is gone" in str(failures[flow.name])
    assert {(other, 0): 15, (new, 0): 5} == flow.positions()
    assert f"{SOURCE}.{topic}" not in remote.admin.list_topics(timeout=10).topics
    life.connectors[:] = [flow.connector({"mirror.on.remote.removed": "continue"})]
    assert {} == life.run_once()
    assert {} == flow.differences([topic, other, new])


@pytest.mark.slow
def test_a_remote_topic_that_was_deleted_is_not_created_for_renamed_records(
    flow: Mirrored, life: Life
) -> None:
    """Although topic.creation.* is set, as which a transformation names one that is nobody's remote topic is created."""
    topic, other, third = (flow.topics.create(name) for name in ("t", "u", "v"))
    for each in (topic, other, third):
        flow.topics.write(each, 10)
    renamed = f"renamed-{third}"
    route = {
        f"transforms.{name}.{key}": value
        for name, old, new in (("a", topic, f"{SOURCE}.{other}"), ("b", third, renamed))
        for key, value in {
            "type": "org.apache.kafka.connect.transforms.RegexRouter",
            "regex": re.escape(f"{SOURCE}.{old}"),
            "replacement": new,
        }.items()
    }
    creation = {
        f"topic.creation.default.{key}": "1" for key in ("replication.factor", "partitions")
    }
    life.connectors.append(flow.connector({"transforms": "a, b", **route, **creation}))
    assert {} == life.run_once()
    target = Topics(flow.target)
    assert [20, 10] == [len(life.values(each)) for each in (f"{SOURCE}.{other}", renamed)]
    target.delete(f"{SOURCE}.{other}")
    until(lambda: (other, 0) not in flow.positions())
    for each in (topic, third):
        flow.topics.write(each, 5)

    failures = str(life.run_once()[flow.name])

    assert f"The remote topic {SOURCE}.{other} is gone from the target" in failures
    assert f"The topic {SOURCE}.{other}, as which records are written" in failures
    assert f"{SOURCE}.{other}" not in target.admin.list_topics(timeout=10).topics
    assert {(topic, 0): 10, (third, 0): 15} == flow.positions()
