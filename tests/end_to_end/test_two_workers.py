"""Two workers of one group.id that run the same connectors: each record is sent once, and one of the two fails."""

from __future__ import annotations

import itertools
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from end_to_end.mirrored import Mirrored
from end_to_end.rival_worker import ON_SPARK
from end_to_end.rivals import ADVICE, CAUSE, TRANSACTION_SECONDS, Rival, Shared
from headrace.broker import Broker
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill]

ROUNDS = range(int(os.environ.get("HEADRACE_ROUNDS", "1")))
SPARK = {ON_SPARK: "1"}
MakeRival = Callable[..., Rival]
_numbers = itertools.count()


@pytest.fixture
def shared(bootstrap: str, tmp_path: Path) -> Shared:
    """A group of its own."""
    return Shared(bootstrap, tmp_path, f"rivals-{os.getpid()}-{next(_numbers)}")


@pytest.fixture
def rival(shared: Shared) -> Iterator[MakeRival]:
    """Makes workers, of which nothing is left at the end."""
    made = list[Rival]()

    def make(name: str, **settings: object) -> Rival:
        made.append(Rival(shared, name, **settings))
        return made[-1]

    yield make
    for each in made:
        each.end()


@contextmanager
def growing(shared: Shared, names: Sequence[str]) -> Iterator[None]:
    """The files of connectors grow all the time."""
    ended = threading.Event()

    def grow() -> None:
        while not ended.wait(0.05):
            for name in names:
                shared.write(name, 10)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def names_the_cause(failure: str | None) -> bool:
    """Whether a failure names its cause and what to do."""
    return failure is not None and CAUSE in failure and ADVICE in failure


def run_both(rival: MakeRival, first: str) -> tuple[Rival, Rival]:
    """An older and a newer run that have both planned before a slot of the *first* one starts, and then of the other."""
    older, newer = rival("older"), rival("newer")
    for each in (older, newer):
        each.hold_slots()
        each.start("--once")
        each.wait_until_held()
    for each in [older, newer] if first == "older" else [newer, older]:
        each.release_slots()
        each.exit_code()
    return older, newer


def wait_until_lost(worker: Rival, names: Sequence[str]) -> None:
    """Return when all connectors of the worker have failed because of the other worker."""
    try:
        worker.until(lambda: all(names_the_cause(worker.failure(name)) for name in names))
    except AssertionError:
        assert {} == worker.shared.wrong()
        raise


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.parametrize(("first", "sender"), [("older", "wire"), ("newer", "client")])
@pytest.mark.parametrize("_round", ROUNDS)
def test_of_two_runs_the_later_one_delivers(
    shared: Shared, rival: MakeRival, first: str, _round: int, *, sender: str
) -> None:
    """Both have planned when their slots start: those of the older run first, or those of the newer one."""
    name = shared.add_files(headrace_sender=sender)
    shared.write(name, 2_000)
    older, newer = run_both(rival, first)

    assert {} == shared.wrong()
    assert [1, 0] == [older.exit_code(), newer.exit_code()], older.log() + newer.log()
    assert names_the_cause(older.stored_failure(name)), older.log()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(420)
@pytest.mark.parametrize("_round", ROUNDS)
def test_a_run_that_is_stopped_while_spark_starts_writes_nothing_after_another_one(
    shared: Shared, rival: MakeRival, _round: int
) -> None:
    """The other one has ended by then, with all records."""
    name = shared.add_files()
    shared.write(name, 2_000)
    stopped, other = rival("stopped", environment=SPARK), rival("other")
    stopped.start("--once")
    stopped.until_logged("Starting Spark")
    stopped.send(signal.SIGSTOP)
    other.start("--once")
    code = other.exit_code()
    stopped.send(signal.SIGCONT)
    codes = [code, stopped.exit_code()]

    assert {} == shared.wrong()
    assert [0, 1] == codes, other.log() + stopped.log()
    assert names_the_cause(stopped.stored_failure(name)), stopped.log()


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.parametrize("_round", ROUNDS)
def test_of_two_long_lived_workers_over_growing_files_the_later_one_goes_on(
    shared: Shared, rival: MakeRival, _round: int
) -> None:
    """One connector of the older worker has planned, and starts its slots when the newer worker has delivered."""
    names = [shared.add_files(files_follow="true"), shared.add_stream()]
    older, newer = rival("older"), rival("newer")
    with growing(shared, names):
        older.hold_slots()
        older.start()
        older.wait_until_held()
        newer.start()
        newer.until_all_deliver(names)
        older.release_slots()
        wait_until_lost(older, names)
    newer.until_all_is_there()
    codes = [newer.terminated(), older.terminated()]

    assert {} == shared.wrong()
    assert [143, 1] == codes, newer.log() + older.log()


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.timeout(420)
@pytest.mark.parametrize("_round", ROUNDS)
def test_a_frozen_worker_wakes_to_find_its_connectors_taken(
    shared: Shared, rival: MakeRival, _round: int
) -> None:
    """Its JVM was killed, and all its processes stopped for longer than leases and transactions last."""
    throttled = {"headrace_max_records_per_second": "500"}
    names = [shared.add_files(tasks=1, **throttled) for _ in range(4)]
    names += [shared.add_stream(**throttled) for _ in range(2)]
    for name in names:
        shared.write(name, 1_000)
    frozen, other = rival("frozen", environment=SPARK), rival("other")
    frozen.start()
    frozen.until_all_deliver(names)
    frozen.kill_java()
    # What it has planned since waits for Spark.
    frozen.until(lambda: frozen.log().count("Starting Spark") == 2)
    frozen.send_to_all(signal.SIGSTOP)
    over = time.monotonic() + TRANSACTION_SECONDS + 1
    other.start()
    other.until_all_is_there()
    until(lambda: time.monotonic() > over)
    frozen.send_to_all(signal.SIGCONT)
    for name in names:
        shared.write(name, 10)
    wait_until_lost(frozen, names)
    other.until_all_is_there()
    codes = [other.terminated(), frozen.terminated()]

    assert {} == shared.wrong()
    assert [143, 1] == codes, other.log() + frozen.log()
    says_that_java_was_killed(frozen.log())


def says_that_java_was_killed(log: str) -> None:
    """Assert that one sentence says so, and that no thread of py4j or socketserver has printed its trace."""
    assert 1 == log.count("Spark was ended by SIGKILL; it is restarted"), log
    assert not re.search("Traceback|py4j|socketserver|Exception occurred during", log), log


@pytest.fixture
def flow(broker: Broker, shared: Shared) -> Mirrored:
    """A mirror that both workers run, to the cluster that they share."""
    made = Mirrored(Topics(broker.bootstrap), shared.bootstrap)
    shared.connectors[made.name] = made.connector()
    return made


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.parametrize("first", ["older", "newer"])
def test_of_two_mirrors_of_one_flow_the_later_one_copies(
    shared: Shared, rival: MakeRival, flow: Mirrored, first: str
) -> None:
    """Both have planned, and have the identities of their producers, when their slots start."""
    names = [flow.topics.create(each, 2) for each in ("one", "other")]
    for name in names:
        for partition in (0, 1):
            flow.topics.write(name, 500, partition)
    older, newer = run_both(rival, first)

    assert {} == flow.differences(names)
    assert flow.is_through(names)
    assert [1, 0] == [older.exit_code(), newer.exit_code()], older.log() + newer.log()
    assert names_the_cause(older.stored_failure(flow.name)), older.log()


@pytest.mark.slow
@pytest.mark.timeout(420)
@pytest.mark.parametrize("_round", ROUNDS)
def test_a_mirror_that_was_frozen_wakes_to_find_its_flow_taken(
    shared: Shared, rival: MakeRival, flow: Mirrored, _round: int
) -> None:
    """Its transaction may be open: it writes nothing more, and the other one copies from what was committed."""
    topic = flow.topics.create("growing", 2)
    flow.topics.write(topic, 500)
    frozen, other = rival("frozen"), rival("other")
    ended = threading.Event()

    def grow() -> None:
        while not ended.wait(0.02):
            for partition in (0, 1):
                flow.topics.write(topic, 20, partition)

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        frozen.start()
        frozen.until(flow.positions)
        frozen.send(signal.SIGSTOP)
        before = sum(flow.positions().values())
        other.start()
        other.until(lambda: sum(flow.positions().values()) > before)
        frozen.send(signal.SIGCONT)
        frozen.until(lambda: names_the_cause(frozen.failure(flow.name)))
    finally:
        ended.set()
        writer.join()
    other.until(lambda: flow.is_through([topic]))
    codes = [other.terminated(), frozen.terminated()]

    assert {} == flow.differences([topic])
    assert flow.is_through([topic])
    assert [143, 1] == codes, other.log() + frozen.log()
