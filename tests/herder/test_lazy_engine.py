"""An engine that is made when the first connector runs."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from doubles.thread_engine import ThreadEngine
from headrace.connect.errors import RetriableError
from headrace.worker.data_plane import LazyEngine, started_ahead
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


class Slow(Shipping):
    """Takes until the test lets it end, or it is closed, to get warm."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.may_end = Event(), Event()

    def warm_up(self) -> None:
        """Wait."""
        self.begun.set()
        assert self.may_end.wait(10)
        if self.is_closed:
            raise RetriableError("It was closed.")

    def close(self) -> None:
        """End the wait."""
        super().close()
        self.may_end.set()


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
    """On a thread of its own, once; runs then have what was started."""
    made: list[Shipping] = []

    def make() -> Shipping:
        made.append(Shipping())
        return made[-1]

    lazy = LazyEngine(make, slots=1)
    ahead = lazy.start_ahead()
    ahead.result(10)
    lazy.require(["late"], sql=True)
    lazy.run(())

    [engine] = made
    assert (True, 1, {"late"}, True) == (engine.is_warm, engine.jobs, engine.modules, engine.sql)
    assert ahead is lazy.start_ahead()


def test_it_is_not_taken_for_started_before_it_is() -> None:
    """Nor is a run that comes meanwhile kept from what it waits for."""
    engine = Slow()
    lazy = LazyEngine(lambda: engine, slots=1)
    ahead = lazy.start_ahead()
    until(engine.begun.is_set)
    lazy.run(())

    assert not ahead.done()
    engine.may_end.set()
    ahead.result(10)


def test_a_start_ahead_that_fails_is_logged_and_tried_again_by_a_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Which reports what it meets."""
    causes = [RetriableError("There is no Java.")]

    def make() -> Shipping:
        if causes:
            raise causes.pop()
        return Shipping()

    lazy = LazyEngine(make, slots=1)
    with pytest.raises(RetriableError, match="There is no Java"):
        lazy.start_ahead().result(10)
    lazy.run(())

    [told] = caplog.records
    assert "The data plane could not be started ahead: There is no Java." == told.message
    assert logging.WARNING == told.levelno


def test_a_start_ahead_that_the_end_of_the_worker_cuts_short_is_no_trouble(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It is over with an error, which no one has to read about."""
    engine = Slow()
    lazy = LazyEngine(lambda: engine, slots=1)
    ahead = lazy.start_ahead()
    until(engine.begun.is_set)
    lazy.close()

    with pytest.raises(RetriableError, match="closed"):
        ahead.result(10)
    assert [] == caplog.records


@pytest.mark.parametrize(
    ("config", "sql"),
    [
        ({}, False),
        ({"transforms.a.type": "headrace.transforms.SparkSql"}, True),
        ({"transforms.a.type": "SparkSql"}, True),
        ({"transforms.a.type": "Filter", "topic": "SparkSql"}, False),
        ({"transforms.a.type": None}, False),
    ],
)
def test_it_is_started_ahead_for_the_connectors_that_there_are(
    config: dict[str, str | None], *, sql: bool
) -> None:
    """With SQL or without, as one of them has it."""
    engine = Shipping()
    started_ahead(LazyEngine(lambda: engine, slots=1), [{"topic": "t"}, config]).result(10)

    assert (sql, True) == (engine.sql, engine.is_warm)


def test_another_engine_is_taken_for_started() -> None:
    """It has nothing to wait for."""
    assert started_ahead(ThreadEngine(), []).done()


def test_closed_before_anything_ran_it_is_never_made() -> None:
    """A run that is late is told so, and tries no more."""

    def make() -> Shipping:
        raise AssertionError("it was made")

    lazy = LazyEngine(make, slots=1)
    lazy.close()

    with pytest.raises(RetriableError, match="the worker is shutting down"):
        lazy.run(())
