"""Fixtures for every test: real services, started once per run and stopped with it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from headrace.broker import Broker
from judges.java_judge import JavaJudge, java_judge
from kafka_sockets import close_abandoned_sockets
from project import durations, lanes, sampling
from project.brokers import PROPERTIES

if TYPE_CHECKING:
    from end_to_end.player import Player
    from headrace.spark.engine import SparkEngine

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile(
    "headrace",
    deadline=None,
    max_examples=sampling.drawn(100),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("headrace")

# PySpark makes these two of a class that makes JSON of what any handler gets that meets it, and pytest attaches its own
# to them, as they do not propagate. What is there before PySpark asks for it stays a plain logger.
for _context in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_context).setLevel(logging.CRITICAL)

# Spark's JVM lives for minutes here: the optimising compiler would take as much as it gives.
QUICK_JVM = {"spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what ./check uses, which has all tests run side by side."""
    parser.addoption(
        lanes.OPTION, metavar="LANE", help="run the tests of one lane, or of a part of it"
    )
    parser.addoption(
        durations.OPTION, type=float, metavar="SECONDS", help="fail a test that takes longer"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Sample kill matrices, and watch how long tests take."""
    close_abandoned_sockets()
    plugins = config.pluginmanager
    plugins.register(lanes.Lanes(config.getoption(lanes.OPTION)))
    plugins.register(sampling.Sampling(os.environ.get(sampling.SEED)))
    plugins.register(durations.Durations(config.getoption(durations.OPTION)))


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that all tests share and none may stop.

    HEADRACE_TEST_BOOTSTRAP names one that runs already. Use topics of your own.
    """
    running = os.environ.get("HEADRACE_TEST_BOOTSTRAP")
    if running:
        yield running
        return
    with Broker(tmp_path_factory.mktemp("shared-broker"), properties=PROPERTIES) as shared:
        yield shared.bootstrap


@pytest.fixture(scope="session")
def first_bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """As *bootstrap*, of a broker whose transactions are of the first version: before KIP-890."""
    folder = tmp_path_factory.mktemp("first-transactions")
    with Broker(folder, properties=PROPERTIES, features={"transaction.version": 1}) as shared:
        yield shared.bootstrap


@pytest.fixture(scope="session")
def mortal_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The one that tests kill, as whoever was last has left it."""
    with Broker(tmp_path_factory.mktemp("mortal-broker"), properties=PROPERTIES) as mortal:
        yield mortal


@pytest.fixture
def broker(mortal_broker: Broker) -> Broker:
    """A running broker, to be killed, paused and started again. Use topics of your own."""
    mortal_broker.resume()
    return mortal_broker.start()


@pytest.fixture(scope="session")
def refusing_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The strict one, as whoever was last has left it."""
    properties = {
        **PROPERTIES,
        "auto.create.topics.enable": "false",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Broker(tmp_path_factory.mktemp("strict-broker"), properties=properties) as strict:
        yield strict


@pytest.fixture
def strict_broker(refusing_broker: Broker) -> Broker:
    """A running broker that makes no topics by itself, and allows what is not forbidden; it may be killed."""
    refusing_broker.resume()
    return refusing_broker.start()


@pytest.fixture(scope="session")
def judge() -> Iterator[JavaJudge]:
    """Kafka Connect's own converters, transformations and predicates, in one Java process for all tests."""
    with java_judge() as asked:
        yield asked


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[SparkEngine]:
    """An engine on a classic session, which all tests share; with room for zombies."""
    # A second to import, which tests without Spark need not wait for.
    from headrace.spark import java_process
    from headrace.spark.engine import SparkEngine
    from headrace.spark.session import SparkSettings

    # So that slots find what tests put into tasks.
    conf = {**QUICK_JVM, "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent)}
    # With SQL from the start: a JVM for scheduling only would be replaced when a test has SQL.
    engine = SparkEngine(SparkSettings(master="local[6]", conf=conf), slots=6, sql=True)
    # The start of Spark is no test's own time.
    engine.session()
    yield engine
    engine.close()
    java_process.end(seconds=30)


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    """Another process with a session on a cluster of this machine, with a slot for each connector of a fleet."""
    yield from _playing(tmp_path_factory, master="local-cluster[2,3,1024]", conf=QUICK_JVM)


@pytest.fixture(scope="session")
def retrying(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Player]:
    """Another process with a session that tries a task that failed once more; ``local[2]`` gives its job up."""
    yield from _playing(tmp_path_factory, master="local[2,2]", conf=QUICK_JVM)


@pytest.fixture(scope="session")
def connect_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a Spark Connect server that all tests share."""
    from doubles.spark_connect import ConnectServer

    with ConnectServer(tmp_path_factory.mktemp("connect-server")) as server:
        yield server.url


@pytest.fixture(scope="session")
def connected(tmp_path_factory: pytest.TempPathFactory, connect_server: str) -> Iterator[Player]:
    """Another process with a session on that server; it has no SparkContext and no JVM."""
    yield from _playing(tmp_path_factory, remote=connect_server)


def _playing(folders: pytest.TempPathFactory, **settings: object) -> Iterator[Player]:
    from end_to_end.player import Player

    with Player(folders.mktemp("player"), **settings) as player:
        yield player
