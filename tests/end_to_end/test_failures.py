"""What a worker does when something is wrong: with a file, a record, a topic, or the broker."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from doubles.puppets import (
    PLANNED,
    POLLED,
    Puppet,
    endless,
    memory_of,
    reading,
)
from end_to_end.live import Life, numbers
from headrace.broker import Broker
from headrace.connect.connector import Plan
from headrace.connect.errors import ConnectError
from headrace.connect.task import Polled, SourceTask
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.observe.events import ConnectorFailed, MicroBatchStarted, Replanned, Waiting
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots."""
    return Life(bootstrap, tmp_path)


def make_topic(bootstrap: str, name: str, **config: str) -> None:
    """Create a topic of one partition."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(name, 1, 1, config=given)])[name].result()


# ------------------------------------------------------------------ records


def test_a_line_that_is_not_json_fails_the_connector_and_can_be_mended(
    life: Life, tmp_path: Path
) -> None:
    """The message names file and byte; what precedes it is in Kafka once, and a second run goes on."""
    life.worker |= {"value.converter": "json", "value.converter.schemas.enable": "false"}
    file = tmp_path / "in" / "a.jsonl"
    file.parent.mkdir()
    good = [json.dumps({"n": number}) for number in range(500)]
    before = "".join(f"{line}\n" for line in good[:300])
    file.write_text(before + "{not json\n" + "".join(f"{line}\n" for line in good[300:]))
    topic = life.add("files", files_path=str(file.parent), files_min_age_ms="0")

    failures = life.run_once()

    assert str(file) in str(failures[topic])
    assert f"byte {len(before)}" in str(failures[topic])
    assert 300 == len(life.values(topic))
    # As most editors do: shorter, and another file under the name.
    other = tmp_path / "mended.jsonl"
    other.write_text(before + '{"n":1}\n' + "".join(f"{line}\n" for line in good[300:]))
    other.rename(file)
    assert {} == life.run_once()
    found = [json.loads(each)["n"] for each in life.values(topic)]
    assert [*range(300), 1, *range(300, 500)] == found


def test_a_record_that_the_producer_refuses_names_file_and_position(
    life: Life, tmp_path: Path
) -> None:
    """Nothing of its transaction is left, and it is not tried for ever."""
    file = tmp_path / "in" / "a.txt"
    file.parent.mkdir()
    file.write_text("short\n" + "x" * 3_000 + "\nshort\n")
    topic = life.add(
        "files",
        files_path=str(file.parent),
        files_min_age_ms="0",
        files_format="lines",
        producer_override_max_request_size="2000",
    )

    failures = life.run_once()

    assert str(file) in str(failures[topic])
    assert "Raise max.request.size" in str(failures[topic])
    assert 1 == len(life.heard(MicroBatchStarted))
    assert [] == life.values(topic)


@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_a_record_that_the_topic_refuses_fails_the_connector(life: Life, exactly_once: str) -> None:
    """Planning again would not make it smaller; nothing of it counts as read."""
    life.worker["exactly.once.source.support"] = exactly_once
    topic = life.next_name()
    make_topic(life.bootstrap, topic, max_message_bytes="500")
    # It sends small records together, also where a topic does not take them so; the wire does not.
    life.add(PLANNED, reading(topic, 1000, at_once=500), headrace_sender="client")

    failures = life.run_once()

    assert f"topic {topic!r}" in str(failures[topic])
    assert "max.message.bytes" in str(failures[topic])
    assert 1 == len(life.heard(MicroBatchStarted))
    assert [] == life.values(topic)


def test_a_failure_of_a_task_that_no_one_thought_of_is_shown_with_its_trace(life: Life) -> None:
    """The connector fails; the author finds the line."""

    def poll(_: SourceTask) -> Polled:
        raise ZeroDivisionError("of all things")

    topic = life.add(POLLED, Puppet(poll=poll))

    failures = life.run_once()

    assert f"Task {topic}-0 failed: of all things" == str(failures[topic])


# ------------------------------------------------------------------ topics


@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_a_topic_that_does_not_exist_is_named(
    strict_broker: Broker, tmp_path: Path, exactly_once: str
) -> None:
    """With what to do, once, when the broker makes no topics by itself."""
    life = Life(strict_broker.bootstrap, tmp_path)
    life.worker["exactly.once.source.support"] = exactly_once
    topic = life.next_name()
    life.add(
        PLANNED,
        reading(topic, 10),
        producer_override_topic_metadata_propagation_max_ms="1000",
    )

    failures = life.run_once()

    assert f"topic {topic!r}" in str(failures[topic])
    assert "Create the topic" in str(failures[topic])
    assert 1 == len(life.heard(MicroBatchStarted))


@pytest.mark.slow
def test_a_transaction_in_a_shared_offsets_topic_is_waited_for_and_named(life: Life) -> None:
    """Another connector's open transaction hides offsets; the start says so and goes on when it ends."""
    shared = f"{life.name}-shared-offsets"
    make_topic(life.bootstrap, shared, cleanup_policy="compact")
    life.worker["offset.storage.topic"] = shared
    config = producer_config(
        {"bootstrap.servers": life.bootstrap}, transactional_id=f"{life.name}-other"
    )
    other = make_sender(config)
    other.open()
    other.begin()
    other.send_offsets(shared, [(b'["other",{"a":1}]', b'{"b":1}')])
    topic = life.next_name()
    life.add(PLANNED, reading(topic, 10))
    ended = threading.Event()

    def end() -> None:
        life.witness.wait_for(lambda event: isinstance(event, Waiting))
        other.commit()
        ended.set()

    threading.Thread(target=end, daemon=True).start()
    # The other sender's records have to be in the log before the worker looks at its end.
    other.flush()
    assert {} == life.run_once()

    assert ended.is_set()
    assert shared in life.waits()[0]
    assert "another producer has an open transaction" in life.waits()[0]
    assert numbers(10) == life.values(topic)
    other.close()


# ------------------------------------------------------------------ the broker


def test_a_broker_that_is_down_at_the_start_is_given_up_after_the_deadline(
    tmp_path: Path,
) -> None:
    """The reason and the setting are in the message."""
    life = Life("127.0.0.1:1", tmp_path)
    life.worker["headrace.start.deadline.ms"] = "1500"
    life.add(PLANNED, Puppet(plan=lambda _: Plan()))
    started = time.monotonic()

    with pytest.raises(ConnectError, match=r"headrace\.start\.deadline\.ms") as failure:
        life.run_once()

    assert 1.0 < time.monotonic() - started < 15
    assert "Failed to connect" in str(failure.value)


@pytest.mark.kill
@pytest.mark.slow
def test_a_broker_that_goes_away_is_waited_for(strict_broker: Broker, tmp_path: Path) -> None:
    """Busy and idle connectors tell that they wait, and go on by themselves; nothing is lost or twice."""
    life = Life(strict_broker.bootstrap, tmp_path)
    busy = life.next_name()
    make_topic(life.bootstrap, busy)
    life.add(POLLED, endless(busy), transaction_boundary_interval_ms="100")
    idle = life.add(PLANNED, Puppet())
    with life.running():
        until(lambda: len(life.values(busy)) > 100)
        strict_broker.kill()
        for name in (busy, idle):
            life.witness.wait_for(lambda e, n=name: isinstance(e, Waiting) and e.connector == n)
        strict_broker.start()
        before = len(life.values(busy))
        until(lambda: len(life.values(busy)) > before + 100)

    found = life.values(busy)
    assert numbers(len(found)) == found
    assert [] == life.heard(ConnectorFailed)


def test_a_transaction_that_outlives_its_time_is_told_and_planned_again(
    strict_broker: Broker, tmp_path: Path
) -> None:
    """With Kafka Connect's advice, and nothing twice."""
    life = Life(strict_broker.bootstrap, tmp_path)
    life.worker["headrace.lease.ms"] = "2000"
    topic = life.next_name()
    make_topic(life.bootstrap, topic)
    source = reading(topic, 30)
    go_on, slow = source.poll, threading.Event()

    def poll(task: SourceTask) -> Polled:
        if memory_of(task).get("at") == 20 and not slow.is_set():
            slow.set()
            threading.Event().wait(4.5)
        return go_on(task)

    source.poll = poll
    life.add(
        PLANNED,
        source,
        # By its own clock; the wire goes on until the broker has looked, which it does every ten seconds.
        headrace_sender="client",
        producer_override_transaction_timeout_ms="2600",
        transaction_boundary_interval_ms="2500",
    )

    assert {} == life.run_once()

    (replanned,) = [each for each in life.witness.events if isinstance(each, Replanned)]
    assert "was unable to finish writing records to Kafka" in replanned.reason
    assert "increase the transaction timeout" in replanned.reason
    assert numbers(30) == life.values(topic)
