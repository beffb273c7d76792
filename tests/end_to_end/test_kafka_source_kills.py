"""Whatever part of a query from Kafka is killed, and whatever is added meanwhile: the table has every record once."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from end_to_end.committed_messages import messages
from end_to_end.growing_topics import Records
from end_to_end.process_tree import JVM, below, command, send, tasks_of
from end_to_end.scene import pause
from headrace.broker import Broker
from headrace.pids import identity_of
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
EXECUTOR = b"CoarseGrainedExecutorBackend"
# What a reader must never make of a kill: it would be a loss, or a lie.
FORBIDDEN = (
    "DataLossError",
    "PartitionLossError",
    "CorruptBatch",
    "was not written by this source",
)


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
            send(pid)
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
        return below(self._process.pid, mark)

    def pythons(self) -> list[int]:
        """Those of Spark's Python processes that read: tasks', not the daemon that they are forked from, and the source's."""
        of_tasks = tasks_of(self._process.pid) if self._process is not None else []
        return of_tasks + self.processes(b"streaming_source_runner")

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
            send(pid)
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
        self.note(f"SIGKILL {pid}: {command(pid).decode()[-200:]}")
        send(pid)

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


def committed(bootstrap: str, topics: list[str]) -> list[str]:
    """What the client library reads of *topics* with ``read_committed``: where each record is, and its value."""
    return sorted(
        f"{each.topic()}/{each.partition()}/{each.offset()}/{(each.value() or b'').decode()}"
        for each in messages(bootstrap, topics, seconds=SECONDS)
    )


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
