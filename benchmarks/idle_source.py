"""Polled connectors that never have anything: one that has to be polled, one with ``has_work``, one that stays in its slot."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import ClassVar

from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.partition import OffsetReader
from headrace.connect.task import Polled, SourceTask

IDLE = "benchmarks.idle_source:IdleSource"
PROBED = "benchmarks.idle_source:ProbedSource"
STAYING = "benchmarks.idle_source:StayingSource"
_WAIT_SECONDS = 1.0


class IdleConfig(Config):
    """No settings."""


class IdleTask(SourceTask):
    """Waits for a source that stays silent, as a client of a queue does."""

    def start(self, config: Mapping[str, str]) -> None:
        """Nothing to open."""
        self._stopped = threading.Event()

    def poll(self) -> Polled:
        """Nothing, after a while."""
        self._stopped.wait(_WAIT_SECONDS)
        return None

    def stop(self) -> None:
        """Return from a poll at once."""
        self._stopped.set()


class IdleSource(SourceConnector):
    """One task that has nothing."""

    config_class: ClassVar[type[Config]] = IdleConfig
    task_class: ClassVar[type[SourceTask]] = IdleTask

    def start(self, props: Mapping[str, str]) -> None:
        """Nothing to open."""
        self._props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task."""
        return [self._props]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED


class ProbedSource(IdleSource):
    """The same, with ``has_work`` for the driver."""

    def has_work(self, offsets: OffsetReader) -> bool:
        """Never."""
        return False


class StayingTask(IdleTask):
    """Keeps what it has open."""

    def resumes_cheaply(self) -> bool:
        """Never."""
        return False


class StayingSource(IdleSource):
    """The same, and its task stays in its slot."""

    task_class: ClassVar[type[SourceTask]] = StayingTask
