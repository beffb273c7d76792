"""Rounds of disturbances that one group lives through under load: which ones, and how long, is drawn."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

import httpx

from doubles.cut_connections import Side, side
from end_to_end.dying import SESSION_SECONDS, DyingWorker
from end_to_end.loaded_group import SECONDS, LoadedGroup
from end_to_end.test_control_kills import CASES
from end_to_end.test_group_control_kills import leading
from waiting import until

_WORKERS = "xyz"
# The only one whose link can be cut.
_LINKED = _WORKERS.index("z")
# Some end before anyone misses the worker, some when it has just been replaced, and most behind that.
_SHORTEST, _LONGEST = 0.3 * SESSION_SECONDS, 2.0 * SESSION_SECONDS
# More than most of these requests take of the leader.
_STEPS = 10
_STATES = {"pause": "PAUSED", "stop": "STOPPED", "resume": "RUNNING"}
# A file lasts a second, so that some connectors are at work whenever something happens, and what was missed is soon made up for.
_LOAD = {
    "files.batch.max.rows": "5",
    "headrace.max.records.per.second": "40",
    "transaction.boundary.interval.ms": "300",
}


@dataclass
class Rounds:
    """A group under load, and its broker; *wanted* says in which states its connectors may be, as requests were answered."""

    group: LoadedGroup
    place: Side
    wanted: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def begin(self) -> None:
        """Create the connectors."""
        self.group.create(self.group.workers[0])
        self.wanted = {name: {"RUNNING"} for name in self.group.names}
        self.settle()

    def play(self, number: int) -> None:
        """Play a round, which its number chooses, and judge it."""
        chance = random.Random(number)
        disturbance = chance.choice(DISTURBANCES)
        asked, meanwhile = chance.sample(self.group.names, 2)
        with self.group.pouring():
            self.group.until_moving()
            self.request(chance.choice(self.group.workers), asked, chance.choice(["pause", "stop"]))
            with disturbance(self, chance):
                live = [each for each in self.group.workers if each.is_alive]
                self.request(chance.choice(live), meanwhile, chance.choice(["pause", "stop"]))
                _last(chance.uniform(_SHORTEST, _LONGEST))
            self.settle()
            for name in (asked, meanwhile):
                self.request(chance.choice(self.group.workers), name, "resume")
            self.settle()
            self.group.until_moving()
        for name, verdict in self.group.verdicts(self.group.workers[0]).items():
            assert verdict.exactly_once, f"{disturbance}, {name}: {verdict}"

    def request(self, worker: DyingWorker, name: str, what: str) -> None:
        """Ask for a state, which the connector is to have when that was answered well, and may have when it was not."""
        state = _STATES[what]
        try:
            answer = httpx.put(f"{worker.url}/connectors/{name}/{what}", timeout=90)
            is_answered = answer.is_success
        except httpx.TransportError:
            is_answered = False
        self.wanted[name] = {state} if is_answered else self.wanted[name] | {state}

    def settle(self) -> None:
        """Return when all workers are in the group, and each connector is in a state that it may have."""
        leading(list(self.group.workers))
        try:
            until(lambda: not self._wrong(), seconds=SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error} {self._wrong()}") from None

    def _wrong(self) -> dict[str, object]:
        """Statuses that are not as they should be, those of a worker that is no more among them."""
        found = self.group.workers[0].ask("GET", "/connectors?expand=status").json()
        urls = [each.url.removeprefix("http://") for each in self.group.workers]
        now = {name: each["status"] for name, each in found.items()}
        return {
            name: now.get(name)
            for name in now.keys() | self.wanted.keys()
            if name not in now
            or now[name]["connector"]["state"] not in self.wanted.get(name, set())
            or now[name]["connector"]["worker_id"] not in urls
            or any(each["state"] == "FAILED" for each in now[name]["tasks"])
        }


def _last(seconds: float) -> None:
    end = time.monotonic() + seconds
    until(lambda: time.monotonic() > end)


Disturbance = Callable[[Rounds, random.Random], AbstractContextManager[None]]


@contextmanager
def killed(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """SIGKILL to a worker, whose slots live on."""
    victim = chance.choice(rounds.group.workers)
    victim.send(signal.SIGKILL)
    yield
    victim.start()


@contextmanager
def frozen(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """A driver alone; its slots go on."""
    victim = chance.choice(rounds.group.workers)
    victim.send(signal.SIGSTOP)
    yield
    victim.send(signal.SIGCONT)


@contextmanager
def all_frozen(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """A driver with its slots."""
    victim = chance.choice(rounds.group.workers)
    victim.send_to_all(signal.SIGSTOP)
    yield
    victim.send_to_all(signal.SIGCONT)


@contextmanager
def broker_killed(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """The broker, which is started again."""
    rounds.place.broker.kill()
    rounds.place.broker.start()
    yield


@contextmanager
def silent_link(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """A worker and its slots hear nothing from Kafka, and are not heard."""
    rounds.place.connections.stall()
    yield
    rounds.place.connections.resume()


@contextmanager
def closed_link(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """Their connections are refused."""
    rounds.place.connections.sever()
    yield
    rounds.place.connections.resume()


@contextmanager
def leader_killed(rounds: Rounds, chance: random.Random) -> Generator[None]:
    """SIGKILL to the leader in a step of a request about another connector, asked of any worker."""
    leader, other = leading(list(rounds.group.workers))
    case = CASES[chance.choice(list(CASES))]
    name = f"c-{uuid4().hex[:8]}"
    case.prepare(other, name)
    leader.die_at(chance.randrange(1, _STEPS))
    is_answered = case.ask(chance.choice([leader, other]), name, dying=leader)
    leader.die_at(None)
    yield
    if _has_died(leader):
        leader.start()
    leading(list(rounds.group.workers))
    found = other.seen(name)
    assert found in ([case.new] if is_answered else [case.old, case.new])
    if found.state is not None:
        # So that it takes no slot.
        rounds.wanted[name] = {found.state}
        rounds.request(other, name, "stop")


def _has_died(worker: DyingWorker) -> bool:
    try:
        worker.ask("GET", "/")
    except httpx.TransportError:
        until(lambda: worker.is_dead)
    return worker.is_dead


DISTURBANCES: tuple[Disturbance, ...] = (
    killed,
    frozen,
    all_frozen,
    broker_killed,
    silent_link,
    closed_link,
    leader_killed,
    leader_killed,
)
"""A request of the leader has many steps, so that it comes twice as often."""


@contextmanager
def rounds_of(folder: Path, *, names: int, on_spark: bool = False) -> Generator[Rounds]:
    """Three workers, with slots in processes or on Spark, that run so many connectors; with a broker of their own."""
    group = f"rounds-{uuid4().hex[:8]}"
    settings = {
        "scheduled.rebalance.max.delay.ms": "1000",
        "headrace.slots": str(names),
        "headrace.idle.poll.ms": "200",
    }
    with ExitStack() as opened:
        place = opened.enter_context(side(folder / "broker"))
        workers = list[DyingWorker]()
        for number, name in enumerate(_WORKERS):
            link = {"bootstrap.servers": place.bootstrap} if number == _LINKED else {}
            made = DyingWorker(
                place.broker.bootstrap,
                folder / name,
                group,
                command="worker",
                settings={**settings, **link},
                has_processes=not on_spark,
                on_spark=on_spark,
            )
            opened.callback(made.end)
            made.start()
            workers.append(made)
        # Whoever is stuck is to find its way, so that its process ends.
        opened.callback(place.connections.resume)
        loaded = LoadedGroup(
            workers,
            folder,
            names=[f"f{each}" for each in range(names)],
            more=_LOAD,
            pour_seconds=8.0,
        )
        rounds = Rounds(loaded, place)
        rounds.begin()
        yield rounds
