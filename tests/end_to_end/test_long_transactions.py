"""One poll that returns more than a transaction can hold, on a broker that takes eight megabytes a second."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from doubles.puppets import PLANNED, SOURCE, Puppet, memory_of, next_number, numbered
from end_to_end.live import Life
from headrace.broker import Broker
from headrace.connect.connector import Plan, PlanRequest
from headrace.connect.task import Polled, SourceTask, Split
from headrace.jvm.jars import class_path
from headrace.jvm.java import find_java
from headrace.observe.events import ConnectorFailed, SlotProgress

pytestmark = [pytest.mark.broker, pytest.mark.slow]

BYTES_PER_SECOND = 8_000_000
ROWS, ROW_BYTES = 4096, 16 * 1024
"""Eight seconds of that broker."""
TIMEOUT_MS = 5_000


@pytest.fixture(scope="module")
def slow_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with a quota, which ends late transactions soon."""
    properties = {
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
        # With more windows, the first ten seconds would be without a quota.
        "quota.window.num": "2",
    }
    with Broker(tmp_path_factory.mktemp("slow-broker"), properties=properties) as own:
        java = find_java()
        command = [str(java.executable), "-XX:TieredStopAtLevel=1"]
        command += ["-cp", class_path("broker", java=java), "kafka.admin.ConfigCommand"]
        command += ["--bootstrap-server", own.bootstrap, "--alter", "--entity-type", "clients"]
        command += ["--entity-default", "--add-config", f"producer_byte_rate={BYTES_PER_SECOND}"]
        subprocess.run(command, check=True, capture_output=True, timeout=60)
        yield own


def all_at_once(topic: str) -> Puppet:
    """A planned source whose only poll returns everything that is left, as one batch."""

    def plan(request: PlanRequest) -> Plan:
        at = next_number(request.offsets)
        split = Split(partition=SOURCE, offset={"next": at})
        return Plan(shares=[[split]]) if at < ROWS else Plan()

    def poll(task: SourceTask) -> Polled:
        at = next_number(task.context.offsets)
        if memory_of(task).setdefault("polled", 0):
            return None
        memory_of(task)["polled"] = 1
        whole = numbered(topic, at, ROWS - at)
        texts = [text.ljust(ROW_BYTES) for text in whole.values.to_pylist()]
        return replace(whole, values=pa.array(texts, pa.utf8()))

    return Puppet(plan=plan, poll=poll)


def run(life: Life, **settings: str) -> tuple[str, Mapping[str, Exception]]:
    """Run until all is read, with transactions of at most five seconds; the topic and the failures."""
    topic = life.add(
        PLANNED,
        all_at_once(life.next_name()),
        producer_override_transaction_timeout_ms=str(TIMEOUT_MS),
        # What waits for the broker is half a second of it.
        producer_override_buffer_memory="4000000",
        **settings,
    )
    return topic, life.run_once()


def sent(life: Life, topic: str) -> list[int]:
    """The numbers in *topic* that another client reads as committed."""
    return [int(text) for text in life.values(topic)]


def test_a_large_batch_is_committed_in_pieces(slow_broker: Broker, tmp_path: Path) -> None:
    """It takes longer than a transaction may, and each of them is in time."""
    life = Life(slow_broker.bootstrap, tmp_path)
    life.worker["headrace.lease.ms"] = "4500"

    topic, failures = run(life, transaction_boundary_interval_ms="500")

    assert {} == failures
    assert list(range(ROWS)) == sent(life, topic)
    progress = [each for each in life.witness.events if isinstance(each, SlotProgress)]
    assert progress[-1].tasks[0].transaction_sizes.most < ROWS / 2


def test_a_poll_that_is_one_transaction_fails_when_it_takes_too_long(
    slow_broker: Broker, tmp_path: Path
) -> None:
    """With the boundary, the time-out and what to do; nothing of it is there, and nothing counts as read."""
    life = Life(slow_broker.bootstrap, tmp_path)
    life.worker["headrace.lease.ms"] = "4500"

    topic, failures = run(life, transaction_boundary="poll")

    told = str(failures[topic])
    assert "was unable to finish writing records to Kafka" in told
    assert (
        "With transaction.boundary=poll everything that one poll returns is one transaction."
        in told
    )
    assert "transaction.timeout.ms is 5000; a retry would take as long." in told
    assert [] == sent(life, topic)
    assert 1 == len(life.heard(ConnectorFailed))
