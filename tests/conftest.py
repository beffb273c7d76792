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

if TYPE_CHECKING:
    from headrace.spark.engine import SparkEngine

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("headrace", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("headrace")

# PySpark makes these two of a class that makes JSON of what any handler gets that meets it, and pytest attaches its own
# to them, as they do not propagate. What is there before PySpark asks for it stays a plain logger.
for _context in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_context).setLevel(logging.CRITICAL)


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker that all tests share and none may stop.

    HEADRACE_TEST_BOOTSTRAP names one that runs already. Use topics of your own.
    """
    running = os.environ.get("HEADRACE_TEST_BOOTSTRAP")
    if running:
        yield running
        return
    with Broker(tmp_path_factory.mktemp("shared-broker")) as shared:
        yield shared.bootstrap


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker of the module's own, to be killed, paused and started again."""
    with Broker(tmp_path_factory.mktemp("own-broker")) as own:
        yield own


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
    conf = {"spark.executorEnv.PYTHONPATH": str(Path(__file__).parent)}
    engine = SparkEngine(SparkSettings(master="local[4]", conf=conf), slots=4)
    yield engine
    engine.close()
    java_process.end(seconds=30)
