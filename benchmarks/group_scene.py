"""A group of ``headrace worker`` processes that is measured: who runs what, when work stopped here and began there."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from benchmarks.broker_log import PartitionLog
from benchmarks.contender import BenchmarkError
from benchmarks.control_scene import ControlScene, files_connector
from benchmarks.service import HEADRACE, Service

THREADS: Final = ("-m", "benchmarks.thread_worker")
SPARK: Final = HEADRACE
HEARTBEAT_SECONDS: Final = 1.0
SESSION_SECONDS: Final = 6.0
DELAY_SECONDS: Final = 2.0
_SECONDS: Final = 180.0
_LOOK_SECONDS: Final = 0.05
# Until which each of them reads, as long as anything is measured.
_MANY: Final = 1_000_000
_A_SECOND: Final = "200"
# A tenth of a second between commits is what the figures may be late by.
_COMMIT_MS: Final = "100"
_ROWS: Final = "20"
RUNS: Final = "The connector runs"
# None of them ever waits for another one's turn.
_SLOTS: Final = "8"
STOPPED: Final = "The connector has stopped"
REBALANCED: Final = "The group has been rebalanced"


@dataclass(kw_only=True)
class Group:
    """Workers of one group, and connectors that write all the time; *flows* are the logs of their topics, by their names."""

    scene: ControlScene
    workers: Sequence[Service]
    flows: dict[str, PartitionLog] = field(default_factory=dict[str, PartitionLog])

    def add_flows(self, count: int) -> None:
        """Create connectors that read *count* times the same file; returns when all write, and each worker has as many."""
        file = self.scene.file(_MANY)
        for _ in range(count):
            topic = self.scene.topic()
            config = files_connector(
                file,
                topic,
                tasks_max="1",
                files_batch_max_rows=_ROWS,
                headrace_max_records_per_second=_A_SECOND,
                transaction_boundary_interval_ms=_COMMIT_MS,
            )
            self.workers[0].create(topic, config)
            self.flows[topic] = self.scene.log(topic)
        self.await_flows(self.flows, since=time.time())
        self.await_even()

    def await_even(self) -> None:
        """Return when all workers take connectors, and each has as many as the others, but for one."""

        def is_even() -> bool:
            found = self.listed()
            shares = [len(each["connectors"]) for each in found]
            return (
                len(found) == len(self.workers)
                and all(each["state"] == "ACTIVE" for each in found)
                and sum(shares) >= len(self.flows)
                and max(shares) - min(shares) <= 1
            )

        self._until(is_even, "The division of the connectors")

    def await_flows(self, names: Collection[str], *, since: float) -> None:
        """Return when each of *names* has committed records after *since*, in seconds since the epoch."""

        def do_write() -> bool:
            return all(self._last(name) > since for name in names)

        self._until(do_write, "A commit of each connector")

    def listed(self) -> Sequence[Mapping[str, Any]]:
        """The workers, as their leader knows them; none while no one leads."""
        for each in self.workers:
            if each.is_alive:
                try:
                    return each.request("GET", "/admin/workers").json()
                except BenchmarkError:
                    return []
        return []

    def entry_of(self, worker: Service) -> Mapping[str, Any]:
        """What the leader says of *worker*."""
        return next(each for each in self.listed() if each["url"].rstrip("/") == worker.url)

    def led(self) -> tuple[Service, Service]:
        """The leader, and one that it leads."""
        leader = next(each for each in self.workers if self.entry_of(each)["is_leader"])
        return leader, next(each for each in self.workers if each is not leader)

    def longest_gap(self, name: str, *, since: float) -> float:
        """The longest time between two commits of the connector of which the later one is after *since*, in seconds."""
        return longest_gap(self.flows[name].follow().commits_ms, since=since)

    def first_commit(self, name: str, *, after: float) -> float:
        """When the connector committed records first *after* that time, both in seconds since the epoch."""
        return first_after(self.flows[name].follow().commits_ms, after)

    def _last(self, name: str) -> float:
        return (self.flows[name].follow().last_committed_ms or 0) / 1e3

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _SECONDS
        while not condition():
            if time.monotonic() > deadline:
                raise BenchmarkError(f"{what} has not happened: {json.dumps(self.listed())}")
            time.sleep(_LOOK_SECONDS)


@contextmanager
def group(
    scene: ControlScene, count: int, command: Sequence[str] = THREADS, **settings: str
) -> Iterator[Group]:
    """So many workers of a new group, without connectors; the first one is the leader."""
    name = scene.name()
    with ExitStack() as opened:
        workers = [member(scene, name, command, **settings) for _ in range(count)]
        made = Group(scene=scene, workers=workers)
        for each in workers:
            opened.enter_context(each)
            each.until(
                lambda each=each: is_healthy(each), seconds=_SECONDS, what="The joining of a group"
            )
        made.await_even()
        yield made


def member(scene: ControlScene, name: str, command: Sequence[str], **settings: str) -> Service:
    """A worker of the group *name*, which has not been started."""
    stored = {
        f"{each}.storage.{key}": value
        for each, topic in (("config", "configs"), ("status", "statuses"), ("offset", "offsets"))
        for key, value in (("topic", f"{name}-{topic}"), ("replication.factor", "1"))
    }
    return Service(
        scene.folder(),
        {
            "bootstrap.servers": scene.bootstrap,
            "group.id": name,
            **stored,
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            "headrace.slots": _SLOTS,
            "session.timeout.ms": _ms(SESSION_SECONDS),
            "heartbeat.interval.ms": _ms(HEARTBEAT_SECONDS),
            "scheduled.rebalance.max.delay.ms": _ms(DELAY_SECONDS),
            **{key.replace("_", "."): value for key, value in settings.items()},
        },
        (*command, "worker", "--json-logs"),
    )


def is_healthy(worker: Service) -> bool:
    """Whether it has joined its group."""
    try:
        worker.request("GET", "/health")
    except BenchmarkError:
        return False
    return True


def longest_gap(commits_ms: Sequence[int], *, since: float) -> float:
    """The longest time between two of *commits_ms* of which the later one is after *since*; seconds. Pure."""
    pairs = itertools.pairwise(each / 1e3 for each in commits_ms)
    return max(later - earlier for earlier, later in pairs if later > since)


def first_after(commits_ms: Sequence[int], moment: float) -> float:
    """The first of *commits_ms* after *moment*, in seconds. Pure."""
    return next(each / 1e3 for each in commits_ms if each / 1e3 > moment)


def times_of(told: str, message: str, connector: str | None = None) -> list[float]:
    """When a worker logged *message*, of *connector* if it is given; in seconds since the epoch. Pure."""
    found = list[float]()
    for line in told.splitlines():
        if message in line:
            said = json.loads(line)
            if connector in (None, said.get("connector")):
                found.append(datetime.fromisoformat(said["timestamp"]).timestamp())
    return found


def _ms(seconds: float) -> str:
    return str(int(seconds * 1000))
