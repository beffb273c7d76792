"""One Spark session for all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.spark import java_process
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from headrace.testing.process_engine import ProcessEngine


@pytest.fixture(scope="session")
def spark_engine() -> Iterator[SparkEngine]:
    """An engine on a classic session, with room for zombies."""
    # So that slots find what tests put into tasks.
    conf = {"spark.executorEnv.PYTHONPATH": str(Path(__file__).parent.parent)}
    engine = SparkEngine(SparkSettings(master="local[4]", conf=conf), slots=4)
    yield engine
    engine.close()
    java_process.end(seconds=30)


@pytest.fixture
def processes() -> Iterator[ProcessEngine]:
    """Slots in processes, without Spark, with room for zombies beside those that replace them."""
    engine = ProcessEngine(slots=6, python_path=[str(Path(__file__).parent.parent)])
    yield engine
    engine.close()
