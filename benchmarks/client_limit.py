"""The contender that does nothing but send: values made before, through ``produce_batch``."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contender import BenchmarkError, Job, started, wait_for_success
from benchmarks.values import read_values
from headrace.kafka.client_config import producer_config

BATCH = 2_000
# The least of what is queued; large values go in smaller batches.
BATCH_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimit:
    """*slots* processes with an idempotent producer each, with the settings of headrace's own.

    The values go round and round, so they stay in the processor's caches: no reader is as fast.
    """

    slots: int = 1
    slot_marker: str | None = None

    def launch(self, job: Job) -> Sequence[subprocess.Popen[bytes]]:
        """Start the processes, which make their values and then wait."""
        base = [sys.executable, "-m", "benchmarks.client_limit", job.bootstrap, job.topic]
        counts = [job.sample.records // self.slots] * self.slots
        counts[0] += job.sample.records - sum(counts)
        values = str(job.sample.values)
        return [started([*base, values, str(count)], job, listens=True) for count in counts]

    def begin(self, job: Job, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Start to send, all at once."""
        for each in processes:
            if each.stdin is None:
                raise BenchmarkError("The process does not listen.")
            each.stdin.write(b"go\n")
            each.stdin.close()

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """They end by themselves."""
        wait_for_success(processes)


def send(bootstrap: str, topic: str, values: Path, count: int) -> None:
    """Send *count* records with *values*, a file of them, again and again, after ``begin``."""
    from confluent_kafka import Producer  # noqa: PLC0415 - only the sending processes need it

    settings = producer_config({"bootstrap.servers": bootstrap}).settings
    producer = Producer({**settings, "delivery.report.only.error": True})
    messages = [{"value": value} for value in read_values(values)]
    size = sum(len(each["value"]) for each in messages) // len(messages)
    rows = max(1, min(BATCH, BATCH_BYTES // max(1, size)))
    batches = [messages[at : at + rows] for at in range(0, len(messages), rows)]
    # The topic's leader is known before the clock starts.
    producer.list_topics(topic, timeout=30)
    sys.stdin.readline()
    sent = 0
    while sent < count:
        for batch in batches:
            sent += _send(producer, topic, batch[: count - sent])
    producer.flush()


def _send(producer: object, topic: str, batch: list[dict[str, bytes]]) -> int:
    waiting = batch
    while waiting:
        accepted = producer.produce_batch(topic, waiting)  # pyright: ignore[reportAttributeAccessIssue]
        producer.poll(0)  # pyright: ignore[reportAttributeAccessIssue]
        if accepted == len(waiting):
            break
        waiting = [message for message in waiting if message.pop("_error", None) is not None]
        producer.poll(0.01)  # pyright: ignore[reportAttributeAccessIssue]
    return len(batch)


if __name__ == "__main__":
    send(sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]))
