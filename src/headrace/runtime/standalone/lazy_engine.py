"""An engine that is made when the first connector runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from headrace.connect.config import Problem
from headrace.connect.errors import RetriableError
from headrace.runtime.engine import Engine
from headrace.slot.split.between import Between
from headrace.slot.work import SlotTicket


class ShippingEngine(Engine, Protocol):
    """An engine that brings authors' modules to its slots."""

    def require(self, modules: Iterable[str]) -> None:
        """Have these top-level modules in every slot of later micro-batches."""
        ...

    def sql_problems(self, between: Between) -> Sequence[Problem]:
        """What is wrong with the expressions of *between*, as far as it can be told without starting anything."""
        ...


class LazyEngine:
    """A :class:`ShippingEngine` whose real one *make* makes, once, when something is to run. Any thread calls."""

    def __init__(self, make: Callable[[], ShippingEngine], *, slots: int) -> None:
        self.slots = slots
        self._make = make
        self._engine: ShippingEngine | None = None
        self._is_making = False
        self._is_closed = False
        self._required = set[str]()
        # One makes it, the others wait; making imports libraries, and waits for nothing else.
        self._guard = threading.Lock()

    @property
    def is_starting(self) -> bool:
        """See :class:`~headrace.runtime.engine.Engine`."""
        engine = self._engine
        return self._is_making if engine is None else engine.is_starting

    def run(self, tickets: Sequence[SlotTicket], between: Between | None = None) -> None:
        """See :class:`~headrace.runtime.engine.Engine`."""
        self._made().run(tickets, between)

    def require(self, modules: Iterable[str]) -> None:
        """Have these modules, as soon as there is an engine."""
        with self._guard:
            self._required.update(modules)
            if self._engine is not None:
                self._engine.require(self._required)

    def sql_problems(self, between: Between) -> Sequence[Problem]:
        """What the engine says of *between*; nothing before there is one. Waits for none that is being made."""
        engine = self._engine
        return () if engine is None else engine.sql_problems(between)

    def close(self) -> None:
        """End the data plane if it was begun, and never begin it after this."""
        with self._guard:
            self._is_closed = True
            engine = self._engine
        if engine is not None:
            engine.close()

    def _made(self) -> ShippingEngine:
        with self._guard:
            if self._is_closed:
                raise RetriableError(
                    "The data plane is not started any more: its worker is closed."
                )
            if self._engine is None:
                self._is_making = True
                try:
                    self._engine = self._make()
                finally:
                    self._is_making = False
                self._engine.require(self._required)
            return self._engine
