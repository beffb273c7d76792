"""What a large group costs without a broker: its leader's computation, reading the config topic, the size of what members say.

Each case runs in a process of its own, so that memory is its own. Members are the real ones, but for the network between them. Seconds are
those of the CPU: nothing here waits.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import SimpleNamespace
from typing import Final, NamedTuple, cast

from benchmarks.contender import ROOT, BenchmarkError
from benchmarks.figure import Figure
from benchmarks.plans import settled_bytes
from benchmarks.report import MIB
from headrace.herder.coordination import HerderParts
from headrace.herder.group import GroupSettings, GroupStorage
from headrace.herder.group_protocol import MemberFlag, ProtocolVersion
from headrace.herder.group_role import WorkerRole
from headrace.kafka.membership import Joined, JoinedMember
from headrace.kafka.sender import OffsetEntry
from headrace.storage.changes_topic import ChangesTopic
from headrace.storage.config_topic import (
    ConfigTopic,
    connector_entry,
    target_state_entry,
    task_count_entry,
    task_entries,
)
from headrace.storage.kafka import KafkaConfigStore, SharedTopics, StorageTopics
from headrace.storage.protocols import Status, TaskCount
from headrace.storage.status_topic import StatusTopic, status_entry, topic_entry

_MEMBERS, _SLOTS, _TASKS = 50, 8, 4
_DELAY_MS = 60_000
_SECONDS: Final = 600.0
_MOST_ROUNDS: Final = 20
_PROTOCOL: Final = ProtocolVersion.SESSIONED.protocol
_TOPICS: Final = StorageTopics("configs", "statuses", "changes")
# Of each event, with other members.
_TURNS: Final = 5
# What brokers take as one record unless they are set otherwise.
_RECORD_BYTES: Final = 1024 * 1024
_MOST_COMPUTATION_MS: Final = 50.0
_MOMENT_MS: Final = 1_770_000_000_000


class _Goals(NamedTuple):
    """By the issue: until all is divided, until the topic is read, in seconds; memory in MiB."""

    settled: float
    start: float
    memory: float


GOALS: Final[Mapping[int, _Goals]] = {
    1_000: _Goals(settled=1.0, start=2.0, memory=20.0),
    10_000: _Goals(settled=2.0, start=6.0, memory=120.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleCase:
    """Something to measure over so many *connectors*; *key* names it on the command line."""

    key: str
    title: str
    connectors: int
    run: Callable[[int], Sequence[Figure]]


def measured(case: ScaleCase) -> Sequence[Figure]:
    """The figures of *case*, from a process of its own; raises BenchmarkError when it fails."""
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.group_scale", case.key],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    if ended.returncode:
        raise BenchmarkError(f"It failed:\n{ended.stderr}")
    return [Figure(**each) for each in json.loads(ended.stdout.splitlines()[-1])]


def config_entries(connectors: int, *, state: str = "RUNNING") -> Iterator[OffsetEntry]:
    """What the config topic has about so many connectors of four tasks."""
    for name in map(connector_name, range(connectors)):
        config = {
            "name": name,
            "connector.class": "files",
            "tasks.max": str(_TASKS),
            "files.path": f"/data/{name}",
            "files.format": "lines",
            "topic": name,
            "transforms": "route",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": "(.*)",
            "transforms.route.replacement": "prefix-$1",
        }
        yield connector_entry(name, config)
        yield target_state_entry(name, state)
        yield from task_entries(name, [{**config, "task.class": "FilesTask"}] * _TASKS)
        yield task_count_entry(name, TaskCount(slots=_TASKS))


def status_entries(connectors: int) -> Iterator[OffsetEntry]:
    """What the status topic has about them."""
    status = Status(state="RUNNING", worker_id="worker-1.example.com:8083")
    for name in map(connector_name, range(connectors)):
        yield from (status_entry(name, task, status) for task in (None, *range(_TASKS)))
        yield topic_entry(name, name, task=0, at_ms=_MOMENT_MS)


def connector_name(number: int) -> str:
    """A name of fifteen characters."""
    return f"connector-{number:05}"


# -- a group ------------------------------------------------------------------------------------------


class _Round(NamedTuple):
    """What one rebalance took: its leader's *computation*, that of *all* members together, in seconds; the *size* of what they said."""

    computation: float
    all: float
    size: int


@dataclass
class _Event:
    """A change of the group until all is divided again."""

    rounds: list[_Round] = field(default_factory=list[_Round])


@dataclass
class _Group:
    """Members that do as they are told, each with what it says and decides in a worker; the first one leads."""

    configs: KafkaConfigStore
    members: dict[str, WorkerRole] = field(default_factory=dict[str, WorkerRole])
    generation: int = 0
    now_ms: int = 0

    def join(self, *names: str) -> None:
        """New members, which have nothing."""
        local = SimpleNamespace(
            configs=self.configs, validator=SimpleNamespace(is_polled=lambda _: False)
        )
        for name in names:
            self.members[name] = WorkerRole(
                cast("HerderParts", SimpleNamespace(local=local)),
                GroupSettings(
                    group="group",
                    url=f"http://{name}.example.com:8083/",
                    slots=_SLOTS,
                    max_delay_ms=_DELAY_MS,
                ),
                lambda: cast("GroupStorage", SimpleNamespace(config_offset=1)),
                lambda: self.now_ms / 1e3,
                member_id=lambda name=name: name,
            )

    def settle(self) -> _Event:
        """Rebalance until nothing has to follow."""
        event = _Event()
        while len(event.rounds) < _MOST_ROUNDS:
            found, delay_ms = self._round()
            event.rounds.append(found)
            if not delay_ms:
                return event
            self.now_ms += delay_ms
        raise BenchmarkError("The rebalances do not end.")

    def shares(self) -> list[int]:
        """How many connectors each member has."""
        return [len(each.owned) for each in self.members.values()]

    def _round(self) -> tuple[_Round, int]:
        self.generation += 1
        began = time.thread_time()
        said = [
            JoinedMember(name, dict(member.protocols())[_PROTOCOL])
            for name, member in self.members.items()
        ]
        leader = next(iter(self.members))
        asked = time.thread_time()
        answers = self.members[leader].assign(self.generation, _PROTOCOL, leader, said)
        computation = time.thread_time() - asked
        delay_ms = 0
        for name, member in self.members.items():
            assignment = member.joined(Joined(self.generation, name, _PROTOCOL, answers[name]))
            member.lose(assignment.revoked)
            member.take(assignment.assigned)
            delay_ms = assignment.delay_ms
        size = sum(len(each.metadata) for each in said) + sum(map(len, answers.values()))
        return _Round(computation, time.thread_time() - began, size), delay_ms


def _stored(connectors: int) -> KafkaConfigStore:
    """What a worker has read; only reading from it."""
    configs = ConfigTopic()
    for key, value in config_entries(connectors):
        configs.apply(key, value)
    return KafkaConfigStore(cast("SharedTopics", None), _TOPICS, configs, ChangesTopic())


def _divided(connectors: int) -> Sequence[Figure]:
    """One of fifty joins, relinquishes, and dies, several times."""
    group = _Group(_stored(connectors))
    names = [f"worker-{number:03}" for number in range(_MEMBERS - 1 + 2 * _TURNS)]
    group.join(*names[: _MEMBERS - 1])
    formed = group.settle()
    events: dict[str, list[_Event]] = {"joins": [], "relinquishes": [], "dies": []}
    for turn in range(_TURNS):
        joining, again = names[_MEMBERS - 1 + 2 * turn : _MEMBERS + 1 + 2 * turn]
        group.join(joining)
        events["joins"].append(group.settle())
        # Neither the leader, nor the one that has just come.
        leaving, dying = list(group.members)[1:3]
        group.members[leaving].flags |= MemberFlag.LEAVING
        handed_over = group.settle()
        del group.members[leaving]
        handed_over.rounds += group.settle().rounds
        events["relinquishes"].append(handed_over)
        group.join(again)
        group.settle()
        del group.members[dying]
        events["dies"].append(group.settle())
    shares = group.shares()
    if sum(shares) != connectors or max(shares) - min(shares) > 1:
        raise BenchmarkError(f"The work is not divided evenly: {shares}.")
    return [
        Figure(
            title=f"{connectors:,} connectors are dealt to {_MEMBERS} members: their leader's computation",
            value=formed.rounds[0].computation * 1e3,
            unit="ms",
        ),
        *(
            figure
            for what, found in events.items()
            for figure in _computed(
                f"{connectors:,} connectors, one of {_MEMBERS} {what}",
                found,
                settled=GOALS[connectors].settled,
            )
        ),
        Figure(
            title=f"{connectors:,} connectors: what members say and are told in one rebalance, the most",
            value=max(
                each.size
                for found in ([formed], *events.values())
                for one in found
                for each in one.rounds
            )
            / 1024,
            unit="KiB",
            most=_RECORD_BYTES / 1024,
        ),
    ]


def _computed(title: str, events: Sequence[_Event], *, settled: float) -> Sequence[Figure]:
    longest = [max(each.computation for each in event.rounds) for event in events]
    return [
        Figure(
            title=f"{title}: its leader's computation, median of the longest rounds",
            value=statistics.median(longest) * 1e3,
            unit="ms",
            most=_MOST_COMPUTATION_MS,
        ),
        Figure(
            title="the same, longest of all rounds",
            value=max(longest) * 1e3,
            unit="ms",
            most=_MOST_COMPUTATION_MS,
        ),
        Figure(
            title="until settled: rounds", value=max(len(each.rounds) for each in events), unit=""
        ),
        Figure(
            title="until settled: computation of all members, one after the other",
            value=max(sum(each.all for each in event.rounds) for event in events),
            unit="s",
            most=settled,
        ),
    ]


# -- reading the topics -------------------------------------------------------------------------------


def _replayed(connectors: int) -> Sequence[Figure]:
    """The config topic, and the status topic with it, as a worker that starts takes in their records."""
    config_records = list(config_entries(connectors))
    status_records = list(status_entries(connectors))
    before = settled_bytes()
    began = time.thread_time()
    configs = ConfigTopic()
    for key, value in config_records:
        configs.apply(key, value)
    of_configs = time.thread_time()
    statuses = StatusTopic()
    for key, value in status_records:
        statuses.apply(key, value)
    of_all = time.thread_time()
    used = (settled_bytes() - before) / MIB
    if len(configs.connectors()) != connectors or len(statuses.connectors()) != connectors:
        raise BenchmarkError("Not all connectors were read.")
    goals, title = GOALS[connectors], f"{connectors:,} connectors of {_TASKS} tasks"
    return [
        Figure(
            title=f"{title}: taking in {len(config_records):,} records of the config topic",
            value=of_configs - began,
            unit="s",
            most=goals.start,
        ),
        Figure(
            title=f"the same, and {len(status_records):,} records of the status topic",
            value=of_all - began,
            unit="s",
            most=goals.start,
        ),
        Figure(title=f"{title}: memory of both", value=used, unit="MiB", most=goals.memory),
    ]


SCALE_CASES: Final[Sequence[ScaleCase]] = tuple(
    ScaleCase(
        key=f"group-{key}-{connectors}",
        title=f"{title}, {connectors:,} connectors, without a broker",
        connectors=connectors,
        run=run,
    )
    for key, title, run in (
        ("divided", "a group's leader divides the work", _divided),
        ("replayed", "a group's topics are read", _replayed),
    )
    for connectors in GOALS
)


def main() -> None:
    """One case, named on the command line; prints its figures."""
    case = next(each for each in SCALE_CASES if each.key == sys.argv[1])
    print(json.dumps([asdict(each) for each in case.run(case.connectors)]))


if __name__ == "__main__":
    main()
