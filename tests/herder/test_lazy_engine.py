"""An engine that is made when the first connector runs."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from doubles.thread_engine import ThreadEngine
from headrace.connect.errors import RetriableError
from headrace.worker.data_plane import LazyEngine
from waiting import until


class Shipping(ThreadEngine):
    """Knows what it was asked to have."""

    def __init__(self) -> None:
        super().__init__()
        self.modules = set[str]()
        self.sql = False
        self.is_closed = False
        self.is_warm = False

    def warm_up(self) -> None:
        """Remember."""
        self.is_warm = True

    def require(self, modules: Iterable[str], *, sql: bool = False) -> None:
        """Remember."""
        self.modules.update(modules)
        self.sql = sql

    def close(self) -> None:
        """Remember."""
        self.is_closed = True


def test_it_is_made_once_and_not_before_it_runs() -> None:
    """With the modules, and for the records, that were asked for before and after."""
    made: list[Shipping] = []

    def make() -> Shipping:
        made.append(Shipping())
        return made[-1]

    lazy = LazyEngine(make, slots=3)
    lazy.require(["first"], sql=True)
    assert ([], 3, False) == (made, lazy.slots, lazy.is_starting)
    with ThreadPoolExecutor(4) as connectors:
        list(connectors.map(lazy.run, [()] * 4))
    lazy.require(["second"])

    [engine] = made
    assert 4 == engine.jobs
    assert ({"first", "second"}, True) == (engine.modules, engine.sql)
    lazy.close()
    assert engine.is_closed


def test_it_can_be_started_before_it_runs() -> None:
    """On a thread of its own."""
    engine = Shipping()
    lazy = LazyEngine(lambda: engine, slots=1)
    lazy.start_ahead()
    until(lambda: engine.is_warm)


def test_closed_before_anything_ran_it_is_never_made() -> None:
    """A run that is late is told so, and tries no more."""

    def make() -> Shipping:
        raise AssertionError("it was made")

    lazy = LazyEngine(make, slots=1)
    lazy.close()

    with pytest.raises(RetriableError, match="the worker is shutting down"):
        lazy.run(())
