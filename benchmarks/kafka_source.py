"""Reading Kafka: headrace's source in Spark beside Spark's own, and beside ``consume`` of the bare client.

Everything is read in one process with one warm session, whose whole tree of processes is measured; the broker is no part of it.
"""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from benchmarks.contender import ROOT, BenchmarkError
from benchmarks.process_tree import TICKS_PER_SECOND, read_tree
from benchmarks.samples import fields_of, json_line
from headrace.jvm.jars import class_path
from headrace.jvm.java import find_java
from headrace.pids import read_stat

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

KEY: Final = "kafka-source"
"""Names it on the command line."""

PARTITIONS: Final = 2
TASKS: Final = (1, 2)
"""One task reads one partition, half of a topic's records, and two read both."""

COLUMNS: Final = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")

_DIFFERENT = 10_000
_SETTINGS: Final = {"kafka.isolation.level": "read_committed", "startingOffsets": "earliest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A topic: *records* in all, with values of *value_bytes*, in batches of at most *batch_bytes* before compression."""

    title: str
    topic: str
    records: int
    value_bytes: int
    compression: str = "none"
    batch_bytes: int = 1_000_000
    partitions: int = PARTITIONS

    def read_by(self, tasks: int) -> int:
        """How many records so many tasks read, each one partition."""
        return self.records // self.partitions * tasks


START: Final = Shape(title="two records", topic="start", records=PARTITIONS, value_bytes=100)
"""What is read to measure how long it takes to begin."""


def shapes(small: int, large: int) -> list[Shape]:
    """The topics, with *small* records of 100 bytes, and *large* ones of 1 KB."""
    return [
        START,
        Shape(title="100 B", topic="small", records=small, value_bytes=100),
        Shape(title="100 B, lz4", topic="small-lz4", records=small, value_bytes=100, compression="lz4"),
        Shape(title="1 KB", topic="large", records=large, value_bytes=1000),
        Shape(title="1 KB, lz4", topic="large-lz4", records=large, value_bytes=1000, compression="lz4"),
        Shape(
            title="100 B, 16-KB batches",
            topic="small-batches",
            records=small,
            value_bytes=100,
            batch_bytes=16_384,
        ),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What is done with the records in Spark, which needs *columns* of them. *run* returns how many there were, if it can."""

    key: str
    title: str
    columns: Sequence[str]
    run: Callable[[DataFrame], int | None]
    streams: bool = False


def _written(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _counted_by_key(frame: DataFrame) -> int:
    from pyspark.sql.functions import expr  # noqa: PLC0415

    aggregates = expr("count(*) as records"), expr("sum(octet_length(value)) as bytes")
    return sum(row["records"] for row in frame.groupBy("key").agg(*aggregates).collect())


def _streamed(frame: DataFrame) -> int:
    with tempfile.TemporaryDirectory(prefix="headrace-benchmark-") as folder:
        writer = frame.writeStream.format("noop").option("checkpointLocation", folder)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sum(progress["numInputRows"] for progress in query.recentProgress)


WORKS: Final = (
    Work(key="noop", title="no-op sink, all columns", columns=COLUMNS, run=_written),
    Work(key="values", title="no-op sink, key and value", columns=COLUMNS[:2], run=_written),
    Work(key="count", title="count", columns=("offset",), run=lambda frame: frame.count()),
    Work(
        key="by-key",
        title="records and bytes per key",
        columns=COLUMNS[:2],
        run=_counted_by_key,
    ),
    Work(
        key="stream",
        title="streaming query into a no-op sink, key and value",
        columns=COLUMNS[:2],
        run=_streamed,
        streams=True,
    ),
)

HEADRACE, HEADRACE_WHOLE, SPARK = "headrace", "headrace without `columns`", "Spark's own"
ALONE, CONSUME = "headrace's reader alone", "`consume` and fields"
OUTSIDE: Final = "up to the hand-over to Spark, all columns"
"""The title of what is read without Spark."""

_FORMATS: Final[Mapping[str, str]] = {
    HEADRACE: "headrace-kafka",
    HEADRACE_WHOLE: "headrace-kafka",
    SPARK: "kafka",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing to measure: *reader* does *work*, a title of WORKS or OUTSIDE, on the topic of *shape*, a title of one."""

    shape: str
    tasks: int
    work: str
    reader: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one run of a case took, of all processes but the broker."""

    case: Case
    records: int
    seconds: float
    cpu_seconds: float


def cases(given: Sequence[Shape]) -> list[list[Case]]:
    """All cases; in a list together are those whose readers are compared."""
    together = [(OUTSIDE, (ALONE, CONSUME)), *((work.title, _readers(work)) for work in WORKS)]
    return [
        [Case(shape=shape.title, tasks=tasks, work=work, reader=reader) for reader in readers]
        for shape, tasks, (work, readers) in itertools.product(given, TASKS, together)
        if shape != START or tasks == 1
    ]


def _readers(work: Work) -> Sequence[str]:
    # Where all columns are wanted, there is no difference.
    return (HEADRACE, SPARK) if work.columns == COLUMNS else tuple(_FORMATS)


def schedule(compared: Sequence[Sequence[Case]], rounds: int) -> list[Case]:
    """The order of runs: everything once a round, and who came first in one round comes last in the next."""
    return [
        case
        for number in range(rounds)
        for each in compared
        for case in (each[::-1] if number % 2 else each)
    ]


def measured_reads(
    bootstrap: str, given: Sequence[Shape], *, rounds: int, say: Callable[[str], None]
) -> Iterator[Measured]:
    """Fill the topics of *given*, which must not exist, and measure all cases *rounds* times.

    Raises BenchmarkError when reading fails, or finds more or fewer records.
    """
    jars = class_path("spark-kafka", java=find_java()).replace(os.pathsep, ",")
    for shape in given:
        say(f"filling a topic: {shape.records:,} records, {shape.title}")
        fill(bootstrap, shape)
    say("warming up the session")
    orders = {
        "bootstrap": bootstrap,
        "jars": jars,
        "rounds": rounds,
        "shapes": [asdict(shape) for shape in given],
    }
    command = [sys.executable, "-m", "benchmarks.kafka_source", json.dumps(orders)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            document = json.loads(line)
            yield Measured(**document | {"case": Case(**document["case"])})
    if process.returncode:
        raise BenchmarkError(f"Reading Kafka ended with exit code {process.returncode}; see above.")


def fill(bootstrap: str, shape: Shape) -> None:
    """Create the topic of *shape*, and write its records."""
    from confluent_kafka import Producer  # noqa: PLC0415 - as everywhere here: each process needs only some of it
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415
    from confluent_kafka.cimpl import NewTopic  # noqa: PLC0415

    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(shape.topic, shape.partitions, 1)])[shape.topic].result(30)
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": shape.compression,
            "batch.size": shape.batch_bytes,
            "linger.ms": 100,
            "delivery.report.only.error": True,
        }
    )
    messages = [_message(number, shape.value_bytes) for number in range(_DIFFERENT)]
    for partition in range(shape.partitions):
        left = shape.read_by(1)
        while left:
            _produce(producer, shape.topic, messages[:left], partition)
            left -= min(left, len(messages))
            # Full batches come of a full queue; it must not be refused.
            producer.flush()


def _message(number: int, size: int) -> dict[str, bytes]:
    """A key out of 10,000, and a value that compresses as lines of JSON do."""
    lines = (json_line(each) for each in itertools.count(number))
    value = ""
    while len(value) < size:
        value += next(lines)
    return {"key": b"sensor-%04d" % (fields_of(number)[6]), "value": value[:size].encode()}


def _produce(producer: Any, topic: str, messages: list[dict[str, bytes]], partition: int) -> None:  # noqa: ANN401 (untyped)
    if producer.produce_batch(topic, messages, partition=partition) != len(messages):
        raise BenchmarkError("The producer refused records.")


class Scene:
    """A session, and two processes that read without it."""

    def __init__(
        self, session: SparkSession, pool: Executor, bootstrap: str, given: Sequence[Shape]
    ) -> None:
        self._session = session
        self._pool = pool
        self._bootstrap = bootstrap
        self._shapes = {shape.title: shape for shape in given}
        self._works = {work.title: work for work in WORKS}

    def measured(self, case: Case) -> Measured:
        """One run of *case*."""
        shape = self._shapes[case.shape]
        expected = shape.read_by(case.tasks)
        cpu, began = _cpu_seconds(), time.monotonic()
        read = self._read(case, shape)
        seconds, cpu = time.monotonic() - began, _cpu_seconds() - cpu
        if read not in (None, expected):
            raise BenchmarkError(f"There are {expected:,} records, and {read:,} were read: {case}")
        return Measured(case=case, records=expected, seconds=seconds, cpu_seconds=cpu)

    def _read(self, case: Case, shape: Shape) -> int | None:
        if case.work == OUTSIDE:
            read = _read_alone if case.reader == ALONE else _consumed
            futures = [
                self._pool.submit(read, self._bootstrap, shape.topic, partition, shape.read_by(1))
                for partition in range(case.tasks)
            ]
            return sum(future.result() for future in futures)
        work = self._works[case.work]
        return work.run(self._frame(work, case, shape))

    def _frame(self, work: Work, case: Case, shape: Shape) -> DataFrame:
        source = self._session.readStream if work.streams else self._session.read
        options = _options(self._bootstrap, shape.topic, range(case.tasks))
        if case.reader == HEADRACE:
            options["columns"] = ",".join(work.columns)
        frame = source.format(_FORMATS[case.reader]).options(**options).load()
        return frame.select(*work.columns)


def _options(bootstrap: str, topic: str, partitions: Sequence[int]) -> dict[str, str]:
    assigned = json.dumps({topic: list(partitions)})
    return {**_SETTINGS, "kafka.bootstrap.servers": bootstrap, "assign": assigned}


def _read_alone(bootstrap: str, topic: str, partition: int, records: int) -> int:
    """What a task of headrace's source does, up to the hand-over to Spark."""
    from headrace.kafka.topic_partition import TopicPartition  # noqa: PLC0415
    from headrace.spark.kafka.options import kafka_source_options  # noqa: PLC0415
    from headrace.spark.kafka.planning import OffsetRange  # noqa: PLC0415
    from headrace.spark.kafka.reading import KafkaInputPartition, RangeReader  # noqa: PLC0415

    options = kafka_source_options(_options(bootstrap, topic, [partition]))
    task = KafkaInputPartition((OffsetRange(TopicPartition(topic, partition), 0, records),))
    return sum(len(batch) for batch in RangeReader(options).read(task))


def _consumed(bootstrap: str, topic: str, partition: int, records: int) -> int:
    """The same fields with the client library."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "benchmark",
            "enable.auto.commit": False,
            "isolation.level": _SETTINGS["kafka.isolation.level"],
            # By default it waits for a second when its queue is full.
            "fetch.queue.backoff.ms": 5,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    read = 0
    while read < records:
        # It would wait for the rest of a larger number.
        for message in consumer.consume(min(10_000, records - read), 1.0):
            if (error := message.error()) is not None:
                raise BenchmarkError(f"The client could not read: {error}")
            _ = message.key(), message.value(), message.topic(), message.partition()
            _ = message.offset(), message.timestamp()
            read += 1
    consumer.close()
    return read


def _cpu_seconds() -> float:
    """What this process and all below it have used so far."""
    stats = map(read_stat, read_tree([os.getpid()]))
    return sum(stat.ticks for stat in stats if stat is not None) / TICKS_PER_SECOND


def _run(orders: Mapping[str, Any]) -> None:
    from headrace.spark.session import SparkSettings, open_session  # noqa: PLC0415

    conf = {
        "spark.jars": orders["jars"],
        "spark.driver.memory": "2g",
        "spark.sql.adaptive.enabled": "true",
    }
    given = [Shape(**shape) for shape in orders["shapes"]]
    session = open_session(SparkSettings(master=f"local[{PARTITIONS}]", conf=conf))
    spawning = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PARTITIONS, mp_context=spawning) as pool:
        scene = Scene(session, pool, orders["bootstrap"], given)
        for case in schedule(cases(given[:2]), 1):
            scene.measured(case)
        for case in schedule(cases(given), orders["rounds"]):
            print(json.dumps(asdict(scene.measured(case))), flush=True)
    session.stop()


if __name__ == "__main__":
    _run(json.loads(sys.argv[1]))
