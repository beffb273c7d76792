"""Copying topics between two brokers: headrace's mirror beside MirrorMaker 2, each with the same topics and flows."""

from __future__ import annotations

import fnmatch
import itertools
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from confluent_kafka.admin import AdminClient

from benchmarks.broker_log import PartitionLog
from benchmarks.contender import BenchmarkError, end_all, tail
from benchmarks.kafka_source import Shape, fill
from benchmarks.measuring import TOPIC_SECONDS, Throughput
from benchmarks.meter import Meter
from benchmarks.mirror_delay import Arrival, CopyReader, PacedWriter
from benchmarks.mirror_makers import (
    HeadraceMirror,
    JavaMirrorMaker,
    Mirror,
    MirrorFlow,
    kill_all,
    output_of,
)
from benchmarks.spark_start import have_archive
from headrace.broker import Broker

HEADRACE: Final = HeadraceMirror()
MIRROR_MAKER: Final = JavaMirrorMaker()
MAKERS: Final[Sequence[Mirror]] = (HEADRACE, MIRROR_MAKER)
BROKERS: Final = ("source", "target")

_LOOK_SECONDS: Final = 0.05
_START_SECONDS: Final = 180.0
# MirrorMaker's Java is still compiling itself before, and headrace has copied much of a topic.
_WARM_SECONDS, _WARM_SHARE = 10.0, 0.15
# Long enough for its garbage collector to have been at work.
_MEASURED_SECONDS: Final = 20.0
# Between the counts of two transactions, whatever the interval.
_FEWEST_COMMITS: Final = 2
_STALLED_SECONDS: Final = 60.0
_DELAY_RATE, _DELAY_BYTES = 1000, 100
_DELAY_WARM_SECONDS: Final = 10.0
# What was committed before a kill is read by then.
_READ_SECONDS: Final = 1.0
_MANY_PARTITIONS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorCase:
    """A topic that is copied by so many tasks, by each of *makers*: a program, and whether exactly once."""

    key: str
    shape: Shape
    tasks: int
    makers: Sequence[tuple[Mirror, bool]] = ((HEADRACE, True), (MIRROR_MAKER, True))
    wanted: float | None = None
    """So many times MirrorMaker's records per CPU second are wanted."""

    @property
    def title(self) -> str:
        """For the report."""
        return f"{self.shape.title}, {self.tasks} task{'s' * (self.tasks > 1)}"


def cases(small: int, large: int) -> list[MirrorCase]:
    """What is copied for throughput: topics of *small* records of 100 bytes, and of *large* ones of 1 KB."""
    sizes = (("100b", "100 B", 100, small), ("1kb", "1 KB", 1000, large))
    batches = (("full", "1-MB batches", 1_000_000), ("16kb", "16-KB batches", 16_384))
    found = list[MirrorCase]()
    for (size, name, value_bytes, records), codec, (batch, told, batch_bytes) in itertools.product(
        sizes, ("none", "lz4"), batches
    ):
        key = f"mirror-{size}-{codec}-{batch}"
        compressed = "" if codec == "none" else f", {codec}"
        shape = Shape(
            title=f"{name}{compressed}, {told}",
            topic=key,
            records=records,
            value_bytes=value_bytes,
            compression=codec,
            batch_bytes=batch_bytes,
        )
        wanted = 3.0 if batch == "16kb" else 15.0 if value_bytes == sizes[0][2] else 8.0
        found += [
            MirrorCase(key=f"{key}-{tasks}", shape=shape, tasks=tasks, wanted=wanted)
            for tasks in (1, 2)
        ]
    return [*found, _many_partitions(large), *_promises(small)]


def _many_partitions(records: int) -> MirrorCase:
    shape = Shape(
        title=f"1 KB, 16-KB batches, {_MANY_PARTITIONS} partitions",
        topic="mirror-partitions",
        records=records,
        value_bytes=1000,
        batch_bytes=16_384,
        partitions=_MANY_PARTITIONS,
    )
    return MirrorCase(key="mirror-partitions", shape=shape, tasks=1)


def _promises(records: int) -> Iterator[MirrorCase]:
    """What exactly-once costs."""
    shape = Shape(title="100 B, 1-MB batches", topic=COST, records=records, value_bytes=100)
    yield MirrorCase(key=COST, shape=shape, tasks=1, makers=((HEADRACE, True), (HEADRACE, False)))


COST: Final = "mirror-cost"
DELAY: Final = "mirror-delay"
"""Names delays and restarts on the command line."""
QUICK: Final = ("mirror-100b-none-full-1", "mirror-1kb-none-full-1", "mirror-1kb-none-16kb-1")
"""What is taken when it is to be quick and nothing is named."""


class Seen(NamedTuple):
    """How many records of a copy were committed at a moment, in seconds since the epoch."""

    at: float
    records: int


class Steady(NamedTuple):
    """Between the end of one transaction and that of a later one."""

    begin: Seen
    end: Seen

    @property
    def records(self) -> int:
        """That were copied meanwhile."""
        return self.end.records - self.begin.records

    @property
    def seconds(self) -> float:
        """What it took."""
        return self.end.at - self.begin.at


def steady(commits: Sequence[Seen], total: int) -> Steady | None:
    """The part of a run in which nothing starts any more, when it is seen whole. Pure.

    *commits* are the growing counts, each when it was first seen. The part begins when enough is copied, or enough time
    has passed, and ends with the last of *total* records, or when it is long enough.
    """
    if not commits:
        return None
    first = commits[0].at
    warm = (
        each
        for each in commits
        if each.records >= _WARM_SHARE * total or each.at >= first + _WARM_SECONDS
    )
    begin = next(warm, None)
    if begin is None:
        return None
    later = [each for each in commits if each.at > begin.at]
    is_over = bool(later) and (
        later[-1].records == total or later[-1].at >= begin.at + _MEASURED_SECONDS
    )
    return Steady(begin, later[-1]) if is_over and len(later) >= _FEWEST_COMMITS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied(Throughput):
    """What one run of a case took; *seconds* and *cpu_seconds* are those of *records*, the start is not in them."""

    case: MirrorCase
    maker: str
    exactly_once: bool
    start_seconds: float
    start_cpu_seconds: float
    rss_bytes: int
    slot_rss_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Delayed:
    """At a steady rate: seconds until records are read from the copy, and from a kill to the first new one."""

    maker: str
    median: float
    p99: float
    after_kill: float
    percent: float
    """Per cent of a core that all processes take at that rate."""


class MirrorScene:
    """Two brokers below *folder*, and topics of the source that stay until another one is wanted. One thread owns it."""

    def __init__(self, brokers: Sequence[Broker], folder: Path) -> None:
        self._folder = folder
        self._source, self._target = (each.bootstrap for each in brokers)
        self._admins = [
            AdminClient({"bootstrap.servers": each.bootstrap, "log_level": 0}) for each in brokers
        ]
        self._runs = 0
        self._filled: str | None = None

    def copied(self, case: MirrorCase, maker: Mirror, *, exactly_once: bool) -> Copied:
        """One run; raises BenchmarkError, with the end of the program's output, when it fails."""
        self._fill(case.shape)
        flow = self._flow(case.shape, case.tasks, exactly_once=exactly_once)
        with tempfile.TemporaryDirectory(dir=self._folder) as name:
            launched = time.time()
            process = maker.launch(flow, Path(name))
            meter = Meter([process.pid], slot_marker=maker.slot_marker).start()
            try:
                commits = self._watched(flow, case.shape, process)
            except BenchmarkError as error:
                raise BenchmarkError(f"{error}\n{tail(output_of(Path(name)))}") from error
            finally:
                usage = meter.stop()
                end_all([process])
                self._admins[1].delete_topics([flow.remote_topic])
        part = steady(commits, case.shape.read_by(case.shape.partitions))
        assert part is not None
        return Copied(
            case=case,
            maker=maker.title,
            exactly_once=exactly_once,
            records=part.records,
            seconds=part.seconds,
            cpu_seconds=usage.cpu_seconds(part.begin.at, part.end.at),
            start_seconds=commits[0].at - launched,
            start_cpu_seconds=usage.cpu_seconds(launched, commits[0].at),
            rss_bytes=usage.peak_rss_bytes,
            slot_rss_bytes=usage.peak_slot_rss_bytes,
        )

    def delayed(self, maker: Mirror, *, seconds: float) -> Delayed:
        """Delays over *seconds*, then a kill and a start of another process."""
        shape = Shape(title="", topic=f"paced-{self._runs}", records=0, value_bytes=0, partitions=1)
        fill(self._source, shape)
        flow = self._flow(shape, 1)
        reader = CopyReader(self._target, flow.remote_topic)
        writer = PacedWriter(self._source, flow.topic, rate=_DELAY_RATE, size=_DELAY_BYTES)
        with tempfile.TemporaryDirectory(dir=self._folder) as name, writer:
            process = maker.launch(flow, Path(name))
            try:
                reader.first(_START_SECONDS)
                reader.read(_DELAY_WARM_SECONDS)
                meter = Meter([process.pid]).start()
                began = time.time()
                arrived = reader.read(seconds)
                cpu_seconds = meter.stop().cpu_seconds(began, time.time())
                kill_all(process)
                killed = time.time()
                process = maker.launch(flow, Path(name))
                reader.read(_READ_SECONDS)
                after = reader.first(_START_SECONDS)
            except BenchmarkError as error:
                raise BenchmarkError(f"{error}\n{tail(output_of(Path(name)))}") from error
            finally:
                end_all([process])
                reader.close()
        return Delayed(
            maker=maker.title,
            **_of_delays(arrived),
            after_kill=after[0].read - killed,
            percent=100 * cpu_seconds / seconds,
        )

    def _flow(self, shape: Shape, tasks: int, *, exactly_once: bool = True) -> MirrorFlow:
        self._runs += 1
        return MirrorFlow(
            alias=f"run{self._runs}",
            source=self._source,
            target=self._target,
            topic=shape.topic,
            tasks=tasks,
            compression=shape.compression,
            exactly_once=exactly_once,
        )

    def _fill(self, shape: Shape) -> None:
        """Have the topic there, alone on the disk."""
        if self._filled == shape.topic:
            return
        if self._filled is not None:
            self._admins[0].delete_topics([self._filled])[self._filled].result(TOPIC_SECONDS)
        fill(self._source, shape)
        self._filled = shape.topic

    def _watched(
        self, flow: MirrorFlow, shape: Shape, process: subprocess.Popen[bytes]
    ) -> list[Seen]:
        """The growing counts of the copy, until the steady part of the run is over."""
        total = shape.read_by(shape.partitions)
        logs, commits = dict[str, PartitionLog](), list[Seen]()
        moved = time.monotonic() + _START_SECONDS
        while steady(commits, total) is None:
            if len(logs) < shape.partitions:
                for folder in self._folder.glob(f"{BROKERS[1]}/*/{flow.remote_topic}-*"):
                    logs.setdefault(folder.name, PartitionLog(folder))
            committed = sum(each.follow().committed for each in logs.values())
            if committed > total:
                raise BenchmarkError(f"{committed:,} records were committed instead of {total:,}.")
            if committed > (commits[-1].records if commits else 0):
                commits.append(Seen(time.time(), committed))
                moved = time.monotonic() + _STALLED_SECONDS
            elif process.poll() is not None or time.monotonic() > moved:
                raise BenchmarkError(f"{committed:,} of {total:,} records were copied.")
            time.sleep(_LOOK_SECONDS)
        return commits


def measured_copies(
    folder: Path,
    wanted: Sequence[MirrorCase],
    *,
    rounds: int,
    delay_seconds: float | None,
    say: Callable[[str], None],
) -> Iterator[Copied | Delayed | BenchmarkError]:
    """Run all of *wanted*, each *rounds* times by each program, and delays if they are wanted; a failed run is an error.

    Who came first in one round comes last in the next.
    """
    have_archive()
    properties = {"log.segment.delete.delay.ms": "1000"}
    with (
        Broker(folder / BROKERS[0], properties=properties) as source,
        Broker(folder / BROKERS[1], properties=properties) as target,
    ):
        scene = MirrorScene((source, target), folder)
        for case in wanted:
            for number in range(rounds):
                for maker, exactly_once in case.makers[:: -1 if number % 2 else 1]:
                    say(f"{case.title}: {maker.title} ({case.key})")
                    try:
                        yield scene.copied(case, maker, exactly_once=exactly_once)
                    except BenchmarkError as error:
                        yield error
        for maker in MAKERS if delay_seconds else ():
            say(f"delays and a kill: {maker.title} ({DELAY})")
            try:
                yield scene.delayed(maker, seconds=delay_seconds or 0.0)
            except BenchmarkError as error:
                yield error


def chosen_cases(given: Sequence[MirrorCase], patterns: Sequence[str]) -> list[MirrorCase]:
    """The cases whose keys match one of *patterns* (``*`` and ``?``), in their order."""
    return [each for each in given if any(fnmatch.fnmatchcase(each.key, one) for one in patterns)]


def _of_delays(arrived: Sequence[Arrival]) -> dict[str, float]:
    delays = statistics.quantiles([each.delay for each in arrived], n=100)
    return {"median": delays[49], "p99": delays[98]}
