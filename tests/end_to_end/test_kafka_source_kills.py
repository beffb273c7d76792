"""Whatever part of a query from Kafka is killed, and whatever is added meanwhile: the table has every record once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from end_to_end.scene import pause
from headrace.broker import Broker
from headrace.pids import identity_of, read_stat
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(1200),
]

TESTS = Path(__file__).parent.parent
SECONDS = 300.0
# It lives for a minute: the optimising compiler would take as much as it gives.
QUICK_JVM = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
JVM = b"org.apache.spark.deploy.SparkSubmit"
EXECUTOR = b"CoarseGrainedExecutorBackend"
_SENT_AT_ONCE, _PAUSE_SECONDS = 120, 0.3
# What a reader must never make of a kill: it would be a loss, or a lie.
FORBIDDEN = (
    "DataLossError",
    "PartitionLossError",
    "CorruptBatch",
    "was not written by this source",
)


class Records:
    """Writes on and on into partitions that become more: plainly, and in transactions of which some are aborted."""

    def __init__(self, topics: Topics, chance: random.Random) -> None:
        self._topics, self._chance = topics, random.Random(chance.random())
        self._partitions = list[tuple[str, int]]()
        self._ended = threading.Event()
        self.acknowledged = list[str]()

    def create(self, partitions: int) -> None:
        """One more topic."""
        topic = self._topics.create(f"t{len({topic for topic, _ in self._partitions})}", partitions)
        self._partitions += [(topic, number) for number in range(partitions)]

    def grow(self) -> None:
        """One more partition of some topic, or one more topic."""
        if self._chance.random() < 0.3:
            self.create(2)
            return
        topic, _ = self._chance.choice(self._partitions)
        number = sum(topic == other for other, _ in self._partitions)
        self._topics.grow(topic, number + 1)
        self._partitions.append((topic, number))

    @property
    def names(self) -> list[str]:
        """The topics."""
        return sorted({topic for topic, _ in self._partitions})

    @contextmanager
    def written(self) -> Generator[None]:
        """While this lasts, records are written."""
        thread = threading.Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(SECONDS)

    def _write(self) -> None:
        settings = {"enable.idempotence": True, "topic.metadata.refresh.interval.ms": 500}
        plain = self._topics.producer(**settings)
        transactional: Producer | None = None
        while not self._ended.wait(_PAUSE_SECONDS):
            topic, partition = self._chance.choice(self._partitions)
            values = self._topics.values(topic, self._chance.randrange(1, _SENT_AT_ONCE), partition)
            try:
                if self._chance.random() < 0.5:
                    self._send(plain, topic, partition, values)
                    continue
                transactional = transactional or self._begun()
                self._topics.produce(transactional, topic, values, partition)
                if self._chance.random() < 0.3:
                    transactional.abort_transaction(30)
                else:
                    transactional.commit_transaction(30)
                    self.acknowledged += values
                transactional.begin_transaction()
            except KafkaException:
                # What became of it is the other client's to say; another producer ends what is open.
                transactional = None
        self._begun().abort_transaction(30)

    def _send(self, producer: Producer, topic: str, partition: int, values: list[str]) -> None:
        def note(error: KafkaError | None, message: object) -> None:
            if error is None:
                self.acknowledged.append(message.value().decode())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]

        for value in values:
            producer.produce(topic, value=value, partition=partition, on_delivery=note)
        producer.flush(60)

    def _begun(self) -> Producer:
        while True:
            try:
                return self._topics.transactional("writer")
            except KafkaException:
                continue


class Query:
    """The query's process and what it has started; what is killed is started again."""

    def __init__(self, folder: Path, master: str, options: dict[str, str]) -> None:
        self.folder = folder
        self._asked = {
            "folder": str(folder),
            "master": master,
            "conf": QUICK_JVM,
            "options": options,
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """In a process of its own."""
        path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
        with (self.folder / "query.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "end_to_end.kafka_query", json.dumps(self._asked)],
                env={**os.environ, "PYTHONPATH": path},
                stdout=log,
                stderr=log,
            )

    def end(self) -> None:
        """Whatever has happened."""
        for pid in self.processes(b""):
            _kill(pid)
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def is_running(self) -> bool:
        """Whether the program is."""
        return self._process is not None and self._process.poll() is None

    def processes(self, mark: bytes) -> list[int]:
        """Those below the program that have *mark* in their command."""
        if self._process is None:
            return []
        stats = [
            stat
            for each in Path("/proc").iterdir()
            if each.name.isdecimal() and (stat := read_stat(int(each.name)))
        ]
        below, found = {self._process.pid}, list[int]()
        while more := [
            each.pid
            for each in stats
            if each.parent in below - {each.pid} and each.pid not in below
        ]:
            below.update(more)
            found += more
        return [pid for pid in found if mark in _command(pid)]

    def pythons(self) -> list[int]:
        """Those of Spark's Python processes that read: tasks', not the daemon that they are forked from, and the source's."""
        of_tasks = self.processes(b"pyspark.worker")
        stats = [stat for pid in of_tasks if (stat := read_stat(pid))]
        forked = [each.pid for each in stats if each.parent in of_tasks]
        return forked + self.processes(b"streaming_source_runner")

    def latest(self, log: str) -> int:
        """The last number in that *log* of the checkpoint: of batches planned (offsets), and of those done (commits)."""
        names = (each.name for each in (self.folder / "checkpoint" / log).glob("[0-9]*"))
        return max(map(int, filter(str.isdecimal, names)), default=-1)

    def advance(self, batches: int) -> None:
        """Wait until it has done so many more, and has begun another one."""
        least = self.latest("commits") + batches
        self._await(lambda: self.latest("commits") >= least)
        self._await(lambda: self.latest("offsets") > self.latest("commits"))

    def _await(self, condition: Callable[[], bool]) -> None:
        until(lambda: condition() or not self.is_running, seconds=SECONDS)
        assert self.is_running, self.said()

    def said(self) -> str:
        """What it has logged at last."""
        return (self.folder / "query.log").read_text(errors="replace")[-4000:]

    def kill_driver(self, chance: random.Random) -> None:
        """Its Python process, its JVM or both; it is started again when the JVM is gone, which else would run on."""
        assert self._process is not None
        jvms = self.processes(JVM)
        victims = [[self._process.pid], jvms, [self._process.pid, *jvms]]
        for pid in chance.choice(victims):
            _kill(pid)
        until(lambda: not any(map(identity_of, jvms)), seconds=SECONDS)
        self._process.wait(SECONDS)
        self.start()

    def kill_worker(self, chance: random.Random) -> None:
        """One Python process: a task's, or that of the source on the driver."""
        self._kill_one(chance, self.pythons)

    def kill_executor(self, chance: random.Random) -> None:
        """One of the executors."""
        self._kill_one(chance, lambda: self.processes(EXECUTOR))

    def _kill_one(self, chance: random.Random, victims: Callable[[], list[int]]) -> None:
        found = list[int]()
        until(lambda: found.extend(victims()) or found, seconds=SECONDS)
        pid = chance.choice(found)
        self.note(f"SIGKILL {pid}: {_command(pid).decode()[-200:]}")
        _kill(pid)

    def note(self, line: str) -> None:
        """Into its log, for whoever looks for the reason of a failure."""
        with (self.folder / "query.log").open("a") as log:
            log.write(f"---- {line}\n")

    def finish(self) -> list[str]:
        """Have it read what is there; what the table holds."""
        (self.folder / "finish").touch()
        until(lambda: not self.is_running, seconds=SECONDS)
        found = self.folder / "found.json"
        assert found.exists(), self.said()
        return json.loads(found.read_text())


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def committed(bootstrap: str, topics: list[str]) -> list[str]:
    """What the client library reads of *topics* with ``read_committed``: where each record is, and its value."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "judge",
        "isolation.level": "read_committed",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    found = list[str]()
    with closing(Consumer(settings)) as consumer:
        listed = consumer.list_topics(timeout=30).topics
        places = [
            TopicPartition(each, number, 0) for each in topics for number in listed[each].partitions
        ]
        consumer.assign(places)
        left = len(places)
        while left:
            message = consumer.poll(SECONDS)
            assert message is not None, "the judge has read nothing for long"
            error = message.error()
            if error is None:
                value = message.value() or b""
                found.append(
                    f"{message.topic()}/{message.partition()}/{message.offset()}/{value.decode()}"
                )
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                left -= 1
    return sorted(found)


@pytest.fixture
def kill_broker(broker: Broker) -> Callable[[random.Random], None]:
    """SIGKILL, and a start after a while."""

    def kill(chance: random.Random) -> None:
        broker.kill()
        pause(chance)
        broker.start()

    return kill


def cases() -> Iterator[object]:
    """What is killed, round after round; thirty and more in all."""
    plans = {
        "worker": ("local[3]", ["worker"] * 7, 2),
        "broker": ("local[3]", ["broker", "worker", "broker", "broker"], 2),
        "driver": ("local[3]", ["driver", "driver"], 2),
        "executor": ("local-cluster[2,1,1024]", ["executor", "worker", "executor", "executor"], 2),
    }
    for name, (master, kills, seeds) in plans.items():
        for seed in range(seeds):
            yield pytest.param(master, kills, seed, id=f"{name}-{seed}")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("master", "kills", "seed"), [*cases()])
def test_every_record_is_in_the_table_once(  # noqa: PLR0917
    broker: Broker,
    kill_broker: Callable[[random.Random], None],
    tmp_path: Path,
    master: str,
    kills: list[str],
    seed: int,
) -> None:
    """As the client library reads the topics at the end; partitions and topics are added all the time."""
    chance = random.Random(f"{kills} {seed}")
    topics = Topics(broker.bootstrap)
    records = Records(topics, chance)
    records.create(2)
    options = {
        "kafka.bootstrap.servers": broker.bootstrap,
        "subscribePattern": f"{topics.prefix}-t.*",
        "partition.discovery.interval.ms": "300",
        "maxOffsetsPerTrigger": "400",
        "minPartitions": "3",
    }
    query = Query(tmp_path, master, options)
    kill = {
        "worker": query.kill_worker,
        "executor": query.kill_executor,
        "driver": query.kill_driver,
        "broker": kill_broker,
    }
    query.start()
    try:
        with records.written():
            for each in kills:
                records.grow()
                query.advance(chance.randrange(1, 4))
                pause(chance, 1.0)
                kill[each](chance)
            query.advance(1)
        found = query.finish()
    finally:
        query.end()

    expected = committed(broker.bootstrap, records.names)
    assert expected == found
    assert set(records.acknowledged) <= {each.split("/", 3)[3] for each in expected}
    failures = tmp_path / "failures"
    said = failures.read_text() if failures.exists() else ""
    assert not [word for word in FORBIDDEN if word in said], said
