"""A task loop with everything around it in memory, without Spark and without Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from doubles.memory_sender import MemorySender
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.converting import Converter
from headrace.connect.errors import (
    StaleTokenError,
)
from headrace.connect.partition import OffsetReader, SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.task import Offsets, Polled, SourceTask
from headrace.converters import make_converter, make_header_converter
from headrace.offsets.codec import encoded_entries, encoded_key
from headrace.offsets.target import TargetGroup
from headrace.task.chain import Chain, Stage
from headrace.task.commit_hooks import overrides
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.task.encoding import Encoder
from headrace.task.error_handling import ErrorTolerance, RetryWithBackoff
from headrace.task.frames import Place
from headrace.task.offset_commit import OffsetCommitter
from headrace.task.poll_loop import PollLoop, PollSettings, Throttle
from headrace.task.slot_report import Outcome, Progress
from headrace.task.transaction_boundary import Boundary, BoundaryRequests
from headrace.task.transactions import (
    AcknowledgedCommitStrategy,
    CommitStrategy,
    OffsetsToGroup,
    OffsetsToTopic,
    TransactionalCommitStrategy,
)
from headrace.task.write_pipeline import WritePipeline
from headrace.task.writer import TaskWriter

FILE = SourcePartition(filename="f")
KEY = encoded_key("c", FILE)


def batch(*values: str, end: int) -> SourceBatch:
    """Rows whose positions end at *end*."""
    positions = range(end - len(values) + 1, end + 1)
    return SourceBatch(
        topic="t",
        values=pa.array(values, pa.utf8()),
        source_partition=FILE,
        offsets=BatchOffsets(columns={"position": pa.array(positions, pa.int64())}),
    )


def record(value: str, position: int) -> SourceRecord:
    """One plain record."""
    return SourceRecord(
        topic="t", value=value, source_partition=FILE, source_offset={"position": position}
    )


class ScriptedTask(SourceTask):
    """Returns, raises or calls what its script says, poll by poll."""

    def __init__(self, *script: object) -> None:
        self.script = list(script)
        self.shown: list[dict[SourcePartition, Any]] = []
        self.update: Callable[[Offsets], Offsets | None] = lambda _: None
        self.commits = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Nothing to open."""

    def poll(self) -> Polled:
        """The next step of the script."""
        step = self.script.pop(0) if self.script else None
        if callable(step):
            step = step()
        if isinstance(step, Exception):
            raise step
        return step  # type: ignore[return-value]

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Note what was shown."""
        self.shown.append(dict(offsets))
        return self.update(offsets)

    def commit(self) -> None:
        """Count."""
        self.commits += 1


@dataclass
class HeldLease:
    """A lease under the test's control."""

    end: bool = False
    lost: bool = False
    asked_to_end: str | None = None
    waited: float = 0.0
    meanwhile: Callable[[], object] = lambda: None

    def should_end(self) -> bool:
        """As set."""
        return self.end or self.lost or self.asked_to_end is not None

    def check(self) -> None:
        """As set."""
        if self.lost:
            raise StaleTokenError("lost")

    def wait(self, seconds: float) -> None:
        """Time passes at once, and something else happens."""
        self.waited += seconds
        self.meanwhile()

    def pause(self, seconds: float) -> None:
        """The same, also when the slot should end."""
        self.wait(seconds)


@dataclass
class Loop:
    """A task loop with everything around it in memory."""

    task: SourceTask
    kind: BoundaryKind = BoundaryKind.POLL
    interval: float = 1.0
    transactional: bool = True
    planned: bool = True
    value_converter: str = "string"
    converter: Converter | None = None
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    stages: Sequence[Stage] = ()
    times: Iterator[float] | None = None
    lease: HeldLease = field(default_factory=HeldLease)
    progress: Progress = field(default_factory=Progress)
    requests: BoundaryRequests = field(default_factory=BoundaryRequests)
    stored: OffsetReader | None = None
    group: TargetGroup | None = None
    takes_encoded: bool = False
    followed: bool = False
    throttle: Throttle = field(default_factory=lambda: Throttle(None))

    def __post_init__(self) -> None:
        self.sender = MemorySender(transactional=self.transactional)
        self.left_open = False

    def run(self) -> Outcome:
        """Run the loop as a slot does."""
        clock = (lambda: 0.0) if self.times is None else lambda: next(self.times)  # type: ignore[arg-type]
        rules = PollSettings(
            planned=self.planned,
            linger_seconds=None,
            grace_seconds=5.0,
            transaction_seconds=60.0,
            requests=self.requests if self.kind is BoundaryKind.CONNECTOR else None,
            tolerates=self.errors.tolerate,
            takes_encoded=self.takes_encoded,
            followed=self.followed,
        )
        reading = PollLoop(
            self.task,
            self.lease,  # type: ignore[arg-type]
            rules,
            self.progress,
            throttle=self.throttle,
            clock=lambda: 0.0,
        )
        pipeline = self._pipeline()
        lease: Any = self.lease
        committer = OffsetCommitter(
            self.task, pipeline, lease, self.progress, stored=self.stored, clock=clock
        )
        writing = self.writing = TaskWriter(self.task, pipeline, lease, committer)
        try:
            chain = Chain(
                self.stages,
                retrying=self._retrying(),
                tolerates=self.errors.tolerate,
            )
            writing.write(chain.frames(reading.frames()))
        finally:
            writing.abandon()
            self.left_open = writing.left_open
        return reading.outcome

    def _retrying(self) -> RetryWithBackoff:
        return RetryWithBackoff(
            self.errors,
            self.progress,
            wait=self._wait_to_retry,
            ending=self.lease.should_end,
            clock=lambda: self.lease.waited,
        )

    def _wait_to_retry(self, seconds: float, waits_from: Place | None) -> None:
        self.writing.commit_meanwhile(waits_from)
        self.lease.wait(seconds)

    def _pipeline(self) -> WritePipeline:
        commits = self._commits()
        return WritePipeline(
            encoder=Encoder(
                make_converter("string", {}, is_key=True),
                self.converter or make_converter(self.value_converter, {}, is_key=False),
                make_header_converter("simple", {}),
                retrying=self._retrying(),
                tells_origin=overrides(self.task, "records_of_commit"),
            ),
            sender=self.sender,
            commits=commits,
            tolerance=ErrorTolerance(
                self.errors,
                self.progress,
                sender=self.sender,
                commits=commits,
                connector="c",
                task=0,
            ),
            forwarder=self.sender,
            boundary=Boundary(
                kind=self.kind,
                interval_seconds=self.interval,
                committed_at=0.0,
                follows=self.followed,
            ),
        )

    def _commits(self) -> CommitStrategy:
        if self.group is not None:
            offsets = OffsetsToGroup(self.sender, self.group)
            if self.transactional:
                return TransactionalCommitStrategy(self.sender, offsets)
            return AcknowledgedCommitStrategy(self.sender, offsets.store)
        if self.transactional:
            return TransactionalCommitStrategy(
                self.sender, OffsetsToTopic(self.sender, "c", "offsets")
            )
        return AcknowledgedCommitStrategy(
            self.sender, lambda offsets: self.sender.offsets.update(encoded_entries("c", offsets))
        )

    def values(self) -> list[str]:
        """What a consumer sees."""
        return [(value or b"").decode() for _, _, value in self.sender.committed]

    def position(self) -> int | None:
        """The stored position."""
        stored = self.sender.offsets.get(KEY)
        return None if stored is None else json.loads(stored)["position"]


both_modes = pytest.mark.parametrize("transactional", [True, False])
