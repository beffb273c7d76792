"""Measures one run of a contender: in a topic of its own, by the clock of the broker's log, with a meter."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.broker_log import PartitionLog, Tally
from benchmarks.contender import BenchmarkError, Contender, Job, end_all, tail
from benchmarks.download import Download
from benchmarks.meter import Meter
from benchmarks.samples import Sample
from benchmarks.usage import Usage
from headrace.broker import Broker

LOOK_SECONDS = 0.2
TOPIC_SECONDS = 30.0
# A busy machine's slowest contender, after a slow start; ten times as fast where nothing else runs.
START_SECONDS = 180.0
SLOWEST_RATE = 5_000
BROKER_SETTINGS = {
    # Each batch and each commit marker has the time when it was appended.
    "log.message.timestamp.type": "LogAppendTime",
    # The topics of one run must not fill the disk of the next.
    "log.segment.delete.delay.ms": "1000",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """So many *records* took *seconds*, and *cpu_seconds* of all processes of what was measured."""

    records: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Records a second."""
        return self.records / self.seconds

    @property
    def cpu_per_million(self) -> float:
        """CPU seconds of these processes per million records."""
        return self.cpu_seconds / self.records * 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement(Throughput):
    """What one run took. *seconds* from the first record landed to the last one committed."""

    start_seconds: float
    start_cpu_seconds: float
    transactions: int
    peak_rss_bytes: int
    peak_slot_rss_bytes: int


class Bench:
    """Runs contenders one after the other against one broker; *folder* is for everything.

    *registry* and *store* are addresses; see :class:`~benchmarks.contender.Job`.
    """

    def __init__(self, broker: Broker, folder: Path, *, registry: str, store: str) -> None:
        self._registry = registry
        self._store = store
        self._broker = broker
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self._runs = 0

    def measure(self, contender: Contender | Download, sample: Sample) -> Measurement:
        """One run; raises BenchmarkError, with the end of the contender's output, when it fails."""
        self._runs += 1
        topic = f"benchmark-{self._runs}"
        self._admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TOPIC_SECONDS)
        try:
            with tempfile.TemporaryDirectory(dir=self._folder) as name:
                job = Job(
                    bootstrap=self._broker.bootstrap,
                    topic=topic,
                    sample=sample,
                    folder=Path(name),
                    registry=self._registry,
                    store=self._store,
                )
                if isinstance(contender, Download):
                    return _of_download(job, contender)
                return self._run(contender, job)
        finally:
            self._admin.delete_topics([topic])[topic].result(TOPIC_SECONDS)

    def _run(self, contender: Contender, job: Job) -> Measurement:
        launched = time.time()
        processes = contender.launch(job)
        meter = Meter([each.pid for each in processes], slot_marker=contender.slot_marker).start()
        try:
            contender.begin(job, processes)
            tally = _awaited(self._log(job.topic), job.sample.records, processes)
            contender.end(processes)
        except BenchmarkError as error:
            end_all(processes)
            raise BenchmarkError(f"{error}\n{tail(job.log)}") from error
        finally:
            end_all(processes)
            usage = meter.stop()
        return _measurement(launched, tally, usage)

    def _log(self, topic: str) -> PartitionLog:
        """The topic's log; the broker makes its folder a moment after the topic."""
        deadline = time.monotonic() + TOPIC_SECONDS
        while True:
            for folder in self._folder.glob(f"broker/**/{topic}-0"):
                return PartitionLog(folder)
            if time.monotonic() > deadline:
                raise BenchmarkError(f"The broker does not make a log for the topic {topic}.")
            time.sleep(LOOK_SECONDS)


def _awaited(
    log: PartitionLog, records: int, processes: Sequence[subprocess.Popen[bytes]]
) -> Tally:
    """The log's tally as soon as *records* are committed."""
    deadline = time.monotonic() + START_SECONDS + records / SLOWEST_RATE
    while True:
        ended = all(each.poll() is not None for each in processes)
        tally = log.follow()
        if tally.committed > records:
            raise BenchmarkError(
                f"{tally.committed:,} records were committed instead of {records:,}."
            )
        if tally.committed == records:
            return tally
        if ended or time.monotonic() > deadline:
            why = "it has ended" if ended else "it takes too long"
            raise BenchmarkError(
                f"{tally.committed:,} of {records:,} records are committed; {why}."
            )
        time.sleep(LOOK_SECONDS)


def _of_download(job: Job, contender: Download) -> Measurement:
    found = contender.run(job)
    return Measurement(
        records=job.sample.records,
        start_seconds=0.0,
        start_cpu_seconds=0.0,
        seconds=found["seconds"],
        cpu_seconds=found["cpu_seconds"],
        transactions=0,
        peak_rss_bytes=int(found["peak_rss_bytes"]),
        peak_slot_rss_bytes=0,
    )


def _measurement(launched: float, tally: Tally, usage: Usage) -> Measurement:
    if tally.first_landed_ms is None or tally.last_committed_ms is None:
        raise BenchmarkError("Nothing was written.")
    first, last = tally.first_landed_ms / 1e3, tally.last_committed_ms / 1e3
    return Measurement(
        records=tally.committed,
        start_seconds=first - launched,
        start_cpu_seconds=usage.cpu_seconds(launched, first),
        seconds=last - first,
        cpu_seconds=usage.cpu_seconds(first, last),
        transactions=tally.transactions,
        peak_rss_bytes=usage.peak_rss_bytes,
        peak_slot_rss_bytes=usage.peak_slot_rss_bytes,
    )
