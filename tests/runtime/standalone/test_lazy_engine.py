"""An engine that is made when the first connector runs."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.connect.errors import RetriableError
from headrace.runtime.standalone.lazy_engine import LazyEngine
from headrace.testing.thread_engine import ThreadEngine


class Shipping(ThreadEngine):
    """Knows what it was asked to have."""

    def __init__(self) -> None:
        super().__init__()
        self.modules = set[str]()
        self.is_closed = False

    def require(self, modules: Iterable[str]) -> None:
        """Remember."""
        self.modules.update(modules)

    def close(self) -> None:
        """Remember."""
        self.is_closed = True


def test_it_is_made_once_and_not_before_it_runs() -> None:
    """With the modules that were asked for before and after."""
    made: list[Shipping] = []

    def make() -> Shipping:
        made.append(Shipping())
        return made[-1]

    lazy = LazyEngine(make, slots=3)
    lazy.require(["first"])
    assert ([], 3, False) == (made, lazy.slots, lazy.is_starting)
    with ThreadPoolExecutor(4) as connectors:
        list(connectors.map(lazy.run, [()] * 4))
    lazy.require(["second"])

    [engine] = made
    assert 4 == engine.jobs
    assert {"first", "second"} == engine.modules
    lazy.close()
    assert engine.is_closed


def test_closed_before_anything_ran_it_is_never_made() -> None:
    """A run that is late is told so, and tries no more."""

    def make() -> Shipping:
        raise AssertionError("it was made")

    lazy = LazyEngine(make, slots=1)
    lazy.close()

    with pytest.raises(RetriableError, match="its worker is closed"):
        lazy.run(())
