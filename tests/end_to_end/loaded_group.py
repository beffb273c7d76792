"""Workers of one group that run connectors whose files grow, while a test disturbs them."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx

from end_to_end.dying import DyingWorker
from headrace.testing.judge import Verdict, committed_ends, committed_records, judged
from waiting import until

STOPPED = "The connector has stopped"
# Without transactions, their boundaries say nothing.
AT_LEAST_ONCE = {
    "exactly.once.source.support": "disabled",
    "offset.flush.interval.ms": "150",
}
CONNECTORS = ("a", "b", "c", "d", "e", "f")
SECONDS = 120.0
_POUR_LINES = 40


@dataclass
class LoadedGroup:
    """What *workers* run: a connector of each of *names*, which reads files in a folder of its own.

    Each line of a connector's files is one that no other has. *more* is added to the connectors' configurations.
    """

    workers: Sequence[DyingWorker]
    folder: Path
    names: Sequence[str] = CONNECTORS
    more: Mapping[str, str] = field(default_factory=dict[str, str])
    pour_seconds: float = 1.0
    """How often each connector is given a file while files are poured."""
    written: int = 0
    """How many lines each connector has been given."""

    def __post_init__(self) -> None:
        self._written_at = dict[int, float]()
        self._topic = f"group-{uuid4().hex[:8]}"

    def create(self, by: DyingWorker) -> None:
        """Ask a worker for the connectors, whose folders are empty."""
        for name in self.names:
            source = self._source(name)
            source.mkdir(parents=True)
            config = {
                "connector.class": "files",
                "files.path": str(source),
                "files.format": "jsonl",
                "topic": self.topic(name),
                "files.batch.max.rows": "50",
                "files.min.age.ms": "0",
                "headrace.max.records.per.second": "250",
                "transaction.boundary.interval.ms": "150",
                "tasks.max": "1",
                **self.more,
            }
            by.ask("POST", "/connectors", {"name": name, "config": config})

    def topic(self, name: str) -> str:
        """Where the records of a connector go."""
        return f"{self._topic}-{name}"

    def write(self, lines: int) -> None:
        """Give each connector a file of so many lines."""
        first = self.written
        for name in self.names:
            draft = self._source(name) / f".{first}"
            draft.write_bytes(b"".join(line + b"\n" for line in _lines(first, first + lines)))
            draft.rename(self._source(name) / f"{first}.jsonl")
        self._written_at |= dict.fromkeys(range(first, first + lines), time.time())
        self.written += lines

    @contextmanager
    def pouring(self) -> Generator[None]:
        """Each connector is given small files all the time."""
        ended = threading.Event()

        def pour() -> None:
            while not ended.wait(self.pour_seconds):
                self.write(_POUR_LINES)

        writer = threading.Thread(target=pour)
        writer.start()
        try:
            yield
        finally:
            ended.set()
            writer.join()

    def runners(self, by: DyingWorker) -> Mapping[str, str]:
        """Where each connector runs that runs, as a worker says."""
        found = by.ask("GET", "/connectors?expand=status").json()
        states = {name: each["status"]["connector"] for name, each in found.items()}
        return {
            name: f"http://{each['worker_id']}"
            for name, each in states.items()
            if each["state"] == "RUNNING"
        }

    def is_divided(self, among: Sequence[DyingWorker]) -> bool:
        """Whether each connector runs on one of these, and each of them runs as many, as the first one says."""
        runs = list(self.runners(among[0]).values())
        shares = [runs.count(each.url) for each in among]
        return sum(shares) == len(self.names) and max(shares) - min(shares) <= 1

    def until_divided(self, among: Sequence[DyingWorker]) -> None:
        """Return when it is so."""
        until(lambda: self.is_divided(among), seconds=SECONDS)

    def committed(self, name: str, by: DyingWorker) -> int:
        """How many lines of the connector's files are committed, as a worker says."""
        answer = httpx.get(f"{by.url}/connectors/{name}/offsets", timeout=60).json()
        return sum(each["offset"]["recordCount"] for each in answer["offsets"])

    def all_committed(self, by: DyingWorker) -> int:
        """As :meth:`committed`, of all connectors together."""
        return sum(self.committed(name, by) for name in self.names)

    def until_moving(self) -> None:
        """Return when more of each connector's records can be read than before."""
        with committed_ends(self.workers[0].bootstrap) as end:
            before = {name: end(self.topic(name)) for name in self.names}
            for name, count in before.items():
                until(lambda: end(self.topic(name)) > count, seconds=SECONDS)  # noqa: B023 (called at once)

    def verdicts(self, by: DyingWorker) -> Mapping[str, Verdict]:
        """What is in the topics, when all lines have been committed."""
        for name in self.names:
            until(lambda: self.committed(name, by) == self.written, seconds=SECONDS)  # noqa: B023 (called at once)
        lines = _lines(0, self.written)
        return {name: judged(by.bootstrap, self.topic(name), lines) for name in self.names}

    def latest(self) -> float:
        """By how many seconds the latest record of all was sent after its line was written."""
        topics = [self.topic(name) for name in self.names]
        return max(
            each.timestamp / 1000 - self._written_at[json.loads(each.value)["n"]]
            for each in committed_records(self.workers[0].bootstrap, *topics)
        )

    def _source(self, name: str) -> Path:
        return self.folder / "sources" / name


@contextmanager
def started(
    bootstrap: str,
    folder: Path,
    settings: Mapping[str, str],
    *,
    workers: str = "xyz",
    names: Sequence[str] = CONNECTORS,
    on_spark: bool = False,
) -> Generator[LoadedGroup]:
    """A group of *workers* with *settings*, each with a letter for a name, of which the first one leads; killed at the end."""
    group = f"loaded-{uuid4().hex[:8]}"
    with ExitStack() as opened:
        made = [
            DyingWorker(
                bootstrap,
                folder / each,
                group,
                command="worker",
                settings=settings,
                on_spark=on_spark,
            )
            for each in workers
        ]
        for each in made:
            opened.callback(each.end)
            each.start()
        yield LoadedGroup(made, folder, names=names)


def stops(workers: Sequence[DyingWorker]) -> list[int]:
    """How many runs of connectors have ended in each worker since its last start."""
    return [each.told().count(STOPPED) for each in workers]


def _lines(first: int, end: int) -> list[bytes]:
    return [json.dumps({"n": each}).encode() for each in range(first, end)]
