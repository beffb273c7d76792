"""Engines of all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from doubles.process_engine import ProcessEngine


@pytest.fixture
def processes() -> Iterator[ProcessEngine]:
    """Slots in processes, without Spark, with room for zombies beside those that replace them."""
    engine = ProcessEngine(slots=6, python_path=[str(Path(__file__).parent.parent)])
    yield engine
    engine.close()
