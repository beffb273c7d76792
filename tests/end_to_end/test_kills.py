"""SIGKILL to each part at a random moment, with connectors of every family at work: nothing lost, nothing twice."""

from __future__ import annotations

import operator
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from connectors.stores.s3_server import s3_server
from doubles.process_engine import ProcessEngine
from end_to_end.fleet import Fleet
from end_to_end.live import Life
from end_to_end.player import Player
from end_to_end.scene import ROUND_SECONDS, pause
from headrace.broker import Broker
from headrace.observe.events import SlotClaimed, Waiting
from headrace.runtime.engine import Engine, LocalProcesses
from headrace.spark.engine import SparkEngine
from headrace.testing.judge import committed_ends
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.timeout(240), pytest.mark.slow]

HERE = Path(__file__).parent
Made = Callable[[str, Engine], Fleet]


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    """An S3 server's address."""
    with s3_server() as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def made(s3: str, tmp_path: Path) -> Made:
    """A fleet on a broker and an engine."""
    local = LocalProcesses()
    return lambda bootstrap, engine: Fleet(
        Life(bootstrap, tmp_path, engine=engine, processes=local), s3
    )


def has_lost_nothing(fleet: Fleet, failures: object) -> None:
    """Assert that each connector's kill hit work, that none failed, and that each record is there once."""
    assert {} == failures
    assert set(fleet.expected) == fleet.replanned(), "a kill hit no work"
    assert {} == fleet.verdicts()


def killed_slots(fleet: Fleet, chance: random.Random) -> None:
    """Kill a slot of each connector, each at a random moment after its own beginning."""
    delays = {name: chance.uniform(0, 0.8 * ROUND_SECONDS) for name in fleet.expected}
    with fleet.life.running(once=True) as wait:
        for pid in fleet.pids_when_due(delays, chance):
            os.kill(pid, signal.SIGKILL)
        failures = wait()
    has_lost_nothing(fleet, failures)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(8))
def test_killed_slots_lose_nothing_and_double_nothing(
    bootstrap: str, made: Made, processes: ProcessEngine, seed: int
) -> None:
    """Their work is planned again from what was committed."""
    killed_slots(made(bootstrap, processes), random.Random(seed))


@pytest.mark.spark
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(8))
def test_killed_python_processes_of_spark_lose_nothing_and_double_nothing(
    bootstrap: str, made: Made, spark_engine: SparkEngine, seed: int
) -> None:
    """Their jobs fail, the other slots are told to go, and the rest is planned again."""
    killed_slots(made(bootstrap, spark_engine), random.Random(seed))


def jvm_pid() -> int:
    """The process of the session's JVM."""
    gateway = SparkContext._gateway
    assert gateway is not None
    return gateway.proc.pid


@pytest.mark.spark
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_jvm_loses_nothing_and_doubles_nothing(
    bootstrap: str, made: Made, spark_engine: SparkEngine, seed: int
) -> None:
    """The engine opens another session, and the work goes on from what was committed."""
    chance, fleet = random.Random(seed), made(bootstrap, spark_engine)
    with fleet.life.running(once=True) as wait:
        fleet.await_all(SlotClaimed)
        pause(chance)
        killed = jvm_pid()
        os.kill(killed, signal.SIGKILL)
        failures = wait()

    assert killed != jvm_pid()
    has_lost_nothing(fleet, failures)


@pytest.mark.spark
@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(3))
def test_killed_executors_lose_nothing_and_double_nothing(  # noqa: PLR0917
    bootstrap: str, tmp_path: Path, s3: str, cluster: Player, seed: int
) -> None:
    """Spark starts others and may run slots again; their tokens are claimed by then."""
    (told,) = cluster.play(
        "end_to_end.dying_executors", bootstrap=bootstrap, folder=str(tmp_path), s3=s3, seed=seed
    )

    assert {"failures": {}, "not hit": [], "wrong": {}} == told


@pytest.mark.spark
@pytest.mark.sampled(1)
@pytest.mark.timeout(420)
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_worker_loses_nothing_and_doubles_nothing(
    bootstrap: str, made: Made, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Its slots, orphans now, may go on for a while; the same command once more fences them."""
    chance, fleet = random.Random(seed), made(bootstrap, ProcessEngine())
    command = [sys.executable, "-m", "headrace", "run", "--once", *fleet.write_configs()]
    monkeypatch.setenv("PYTHONPATH", str(HERE), prepend=os.pathsep)
    with committed_ends(bootstrap) as end:
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as first:
            try:
                # Each connector has committed something by then.
                until(
                    lambda: first.poll() is not None or all(map(end, fleet.expected)), seconds=180
                )
                pause(chance)
            finally:
                first.kill()
        committed = [end(name) for name in fleet.expected]

    again = subprocess.run(command, check=False, capture_output=True)

    assert -signal.SIGKILL == first.returncode
    lengths = map(len, fleet.expected.values())
    assert all(map(operator.lt, committed, lengths)), "work was over before the kill"
    assert 0 == again.returncode, again.stderr.decode()
    assert {} == fleet.verdicts()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(4))
def test_a_killed_broker_loses_nothing_and_doubles_nothing(
    broker: Broker, made: Made, processes: ProcessEngine, seed: int
) -> None:
    """All wait for it and go on by themselves."""
    chance, fleet = random.Random(seed), made(broker.bootstrap, processes)
    with fleet.life.running(once=True) as wait:
        fleet.await_all(SlotClaimed)
        pause(chance)
        heard = len(fleet.life.witness.events)
        broker.kill()
        fleet.await_all(Waiting, since=heard)
        pause(chance)
        broker.start()
        failures = wait()

    assert {} == failures
    assert {} == fleet.verdicts()
