"""Bad records in a real broker: with their offsets in one transaction, through kills and refusals."""

from __future__ import annotations

import json
import os
import random
import signal
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from doubles.process_engine import ProcessEngine
from end_to_end.live import Life
from end_to_end.scene import SENDERS, Scene, is_claim, pause
from end_to_end.test_failures import make_topic
from headrace.observe.events import MicroBatchEnded
from headrace.testing.judge import committed_records, judged

pytestmark = pytest.mark.broker


def tolerant(dead: str | None) -> dict[str, str]:
    """The settings of a connector that passes over bad records."""
    settings = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    return settings | ({} if dead is None else {"errors.deadletterqueue.topic.name": dead})


def write_mixed(folder: Path, *, files: int = 2, lines: int = 12_000) -> tuple[list[bytes], ...]:
    """Files of which every seventh line is bad; the good lines and the bad ones."""
    good, bad = list[bytes](), list[bytes]()
    for number in range(files):
        rows = [
            b"bad %d %d" % (number, line)
            if line % 7 == 3
            else b'{"file":%d,"line":%d}' % (number, line)
            for line in range(lines)
        ]
        (folder / f"part-{number}.jsonl").write_bytes(b"\n".join(rows) + b"\n")
        good += [row for row in rows if row.startswith(b"{")]
        bad += [row for row in rows if row.startswith(b"bad")]
    return good, bad


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.kill
@pytest.mark.parametrize(("seed", "sender"), [*enumerate(SENDERS)])
def test_a_killed_slot_loses_no_letter_and_doubles_none(
    bootstrap: str, tmp_path: Path, processes: ProcessEngine, seed: int, *, sender: str
) -> None:
    """Records and letters together are the input, each once; the topic was made with one partition."""
    topic = f"letters-{seed}-{os.getpid()}"
    dead = f"{topic}-dead"
    scene = Scene(bootstrap, tmp_path, topic, connector=tolerant(dead))
    scene.connector["headrace.sender"] = sender
    good, bad = write_mixed(scene.files)

    with scene.running(processes) as wait:
        scene.witness.wait_for(is_claim, seconds=120)
        chance = random.Random(seed)
        pause(chance, 1.2)
        os.kill(chance.choice(scene.witness.pids()), signal.SIGKILL)
        failures = wait()

    assert {} == failures
    assert scene.witness.replanned()
    assert judged(bootstrap, topic, good).exactly_once
    assert judged(bootstrap, dead, bad).exactly_once
    topics = AdminClient({"bootstrap.servers": bootstrap}).list_topics(dead, timeout=10).topics
    assert 1 == len(topics[dead].partitions)


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots that passes JSON on."""
    (tmp_path / "in").mkdir()
    props = {"value.converter": "json", "value.converter.schemas.enable": "false"}
    return Life(bootstrap, tmp_path, worker=props)


def add_files(life: Life, **settings: str) -> str:
    """A connector for the files in the folder ``in``; its topic."""
    return life.add("files", files_path=str(life.folder / "in"), files_min_age_ms="0", **settings)


@pytest.mark.parametrize("sender", SENDERS)
@pytest.mark.parametrize("exactly_once", ["enabled", "disabled"])
def test_another_client_reads_what_was_wrong(life: Life, exactly_once: str, sender: str) -> None:
    """A line that is no JSON with its bytes, one that is too large by reference; the rest is sent."""
    life.worker["exactly.once.source.support"] = exactly_once
    file = life.folder / "in" / "a.jsonl"
    file.write_bytes(b'1\nno\n"%s"\n4\n' % (b"x" * 30_000))
    dead = f"{life.next_name()}-dead"
    topic = add_files(life, producer_override_max_request_size="20000")
    life.connectors[0] |= tolerant(dead) | {"headrace.sender": sender}

    assert {} == life.run_once()
    assert {} == life.run_once()

    assert ["1", "4"] == life.values(topic)
    letters = list(committed_records(life.bootstrap, dead))
    assert [b"no", None] == [each.value for each in letters]
    first, second = [
        {key.removeprefix("__connect.errors."): value.decode() for key, value in each.headers}
        for each in letters
    ]
    assert (topic, "TASK_POLL", str(file)) == (
        first["topic"],
        first["stage"],
        first["source.object"],
    )
    assert "KAFKA_PRODUCE" == second["stage"]
    assert 3 == json.loads(second["source.reference"])["sourceOffset"]["recordCount"]
    told = [each for each in life.heard(MicroBatchEnded) if isinstance(each, MicroBatchEnded)]
    assert [2] == [each.dead_lettered for each in told if each.dead_lettered]


def test_without_a_topic_they_are_counted(life: Life) -> None:
    """The end of the micro-batch tells how many."""
    (life.folder / "in" / "a.jsonl").write_bytes(b"1\nno\n3\nno\n")
    topic = add_files(life)
    life.connectors[0] |= tolerant(None)

    assert {} == life.run_once()

    assert ["1", "3"] == life.values(topic)
    told = [each for each in life.heard(MicroBatchEnded) if isinstance(each, MicroBatchEnded)]
    assert [2] == [each.skipped for each in told]


@pytest.mark.parametrize("sender", SENDERS)
def test_a_letter_that_the_broker_refuses_fails_the_task(life: Life, sender: str) -> None:
    """Neither it nor what comes after it is there, and the topic of letters is named."""
    (life.folder / "in" / "a.jsonl").write_bytes(b"1\n" + b"no" * 1_000 + b"\n3\n")
    dead = f"{life.next_name()}-dead"
    make_topic(life.bootstrap, dead, max_message_bytes="100")
    topic = add_files(life)
    life.connectors[0] |= tolerant(dead) | {"headrace.sender": sender}

    failures = life.run_once()

    assert dead in str(failures[topic])
    # The wire knows it before it sends; then what precedes may be committed, as before any record that fails the task.
    assert life.values(topic) in ([[]] if sender == "client" else [[], ["1"]])
    assert [] == life.values(dead)


def test_a_topic_that_cannot_be_made_says_what_to_set(life: Life) -> None:
    """Kafka Connect's default is three copies; this broker is alone."""
    (life.folder / "in" / "a.jsonl").write_bytes(b"1\n")
    topic = add_files(life)
    life.connectors[0] |= {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": f"{topic}-dead",
    }

    failures = life.run_once()

    assert "errors.deadletterqueue.topic.replication.factor" in str(failures[topic])
    assert [] == life.values(topic)
