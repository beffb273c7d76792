"""A connector's tasks in the task loop, round after round, and killed wherever a test likes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.connect.connector import SourceConnector
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Polled, SourceTask
from headrace.kafka.sender import EncodedHeaders
from headrace.offsets.codec import OffsetKey, Unreadable, decoded_key, decoded_value
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.testing.task_runs import LocalRun
from task.loop import Loop

_MOST_ROUNDS = 50


class Killed(BaseException):
    """The process dies here."""


@dataclass
class Rounds:
    """What is in Kafka and in the store after rounds of a *connector* with *props*."""

    connector: type[SourceConnector]
    props: Mapping[str, str]
    errors: ErrorPolicy
    boundary: BoundaryKind = BoundaryKind.POLL
    value_converter: str = "string"
    stored: dict[SourcePartition, SourceOffset] = field(default_factory=dict)
    records: list[tuple[str, bytes | None]] = field(default_factory=list)
    headers: list[EncodedHeaders] = field(default_factory=list)
    tolerated: int = 0
    quarantined: int = 0

    def play_one(self) -> None:
        """One round."""
        self._left = None
        self._round()

    def play(self, *, killed_at: int | None = None) -> None:
        """Rounds until there is nothing to do; killed in the poll of that number, counted over all."""
        self._left = killed_at
        try:
            for _ in range(_MOST_ROUNDS):
                if not self._round():
                    return
        except Killed:
            return
        raise AssertionError("there is always something to do")

    def values(self, topic: str) -> list[bytes | None]:
        """What is in *topic*."""
        return [value for found, value in self.records if found == topic]

    def _round(self) -> bool:
        before = dict(self.stored)
        run = LocalRun(self.connector(), self.props, self.stored)
        run._connector.start(self.props)
        tasks = list(run._tasks())
        for task in tasks:
            self._run(task)
        return before != self.stored

    def _run(self, task: SourceTask) -> None:
        polled = task.poll

        def poll() -> Polled:
            if self._left is not None:
                self._left -= 1
                if self._left < 0:
                    raise Killed
            return polled()

        task.poll = poll  # type: ignore[method-assign]
        loop = Loop(
            task, errors=self.errors, kind=self.boundary, value_converter=self.value_converter
        )
        try:
            loop.run()
        finally:
            task.stop()
            self._take(loop)

    def _take(self, loop: Loop) -> None:
        self.records += [(topic, value) for topic, _, value in loop.sender.committed]
        self.headers += loop.sender.headers
        self.tolerated += loop.progress.skipped + loop.progress.dead_lettered
        self.quarantined += loop.progress.quarantined
        for key, value in loop.sender.offsets.items():
            name, offset = decoded_key(key), decoded_value(value)
            assert isinstance(name, OffsetKey)
            assert not isinstance(offset, Unreadable)
            if offset is None:
                self.stored.pop(name.partition, None)
            else:
                self.stored[name.partition] = offset
