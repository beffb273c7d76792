"""The process that reads for a slot, from its token to its last word; rows are flushed through Spark's batches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headrace.class_path import class_at
from headrace.connect.errors import RetriableError, StaleTokenError, TaskFailedError
from headrace.connect.task import SourceTask
from headrace.sources.pump import Bounds, Pump
from headrace.task.chain import chain_of, work_of_reading
from headrace.task.channel import ChannelClient
from headrace.task.commit_hooks import overrides
from headrace.task.error_handling import retrying_in
from headrace.task.frames import (
    Abort,
    Commit,
    EndOfPoll,
    Failed,
    Filtered,
    Frame,
    Place,
    Records,
    Waiting,
)
from headrace.task.heartbeat import Lease
from headrace.task.logs import Follow, slot_log
from headrace.task.poll_loop import PollLoop, reading_half
from headrace.task.sql.encoder import FrameEncoder
from headrace.task.sql.row_types import FrameTypes
from headrace.task.transaction_boundary import BoundaryRequests
from headrace.task.work import BoundaryKind, Outcome, Progress, SlotReport, SlotTicket, SlotWork
from headrace.task.worker_task import claimed, context_of, tell_end

_log = logging.getLogger(__name__)


class ReadingRun:
    """Starts the task of *work*, polls it, and stops it. *frames* once, then *close*, on one thread."""

    def __init__(
        self, work: SlotWork, client: ChannelClient, lease: Lease, progress: Progress
    ) -> None:
        self._work = work
        self._client = client
        self._lease = lease
        self._progress = progress
        self._task: SourceTask | None = None
        self._reading: PollLoop | None = None

    @property
    def outcome(self) -> Outcome:
        """How reading has ended."""
        return Outcome.ASKED if self._reading is None else self._reading.outcome

    def frames(self, meanwhile: Callable[[Waiting], object] = lambda _: None) -> Iterator[Frame]:
        """All frames behind the chain; a last ``Failed`` when the task raised anything, at its start, too.

        *meanwhile* is told, in its place among them, that the next one has to wait until it is tried again.
        """
        try:
            task = self._task = class_at(self._work.task_class, SourceTask)()
            reading = self._reading = self._started(task)
            retrying = retrying_in(
                self._work, self._lease, self._progress, lambda place: meanwhile(Waiting(place))
            )
            chain = chain_of(self._work, retrying)
            tells_rows = any(overrides(task, each) for each in ("commit_batch", "commit_record"))
            for frame in chain.frames(reading.frames()):
                yield frame if tells_rows else _without_dropped(frame)
        except Exception as error:  # noqa: BLE001 (whatever it is, the process that writes hears of it)
            yield Failed(error, abandons=True)
        except SystemExit as error:
            told = RuntimeError(f"The task called sys.exit({error.code!r}).")
            yield Failed(told, abandons=True)

    def close(self) -> None:
        """Stop the task."""
        if self._task is None:
            return
        self._progress.stopping_task = True
        try:
            self._task.stop()
        except Exception as error:  # noqa: BLE001 (all that it has read is handed over)
            _log.warning("While a slot of %s ended: %s", self._work.spec.name, error)
        self._progress.stopping_task = False

    def _started(self, task: SourceTask) -> PollLoop:
        work = self._work
        requests = BoundaryRequests() if work.spec.boundary is BoundaryKind.CONNECTOR else None
        task.initialize(context_of(work, self._client, self._lease, requests))
        task.start(work.config)
        return reading_half(task, work, self._lease, self._progress, requests=requests)


def _without_dropped(frame: Frame) -> Frame:
    """*frame*, of which nothing but the offset counts if its rows were dropped."""
    if not isinstance(frame, Filtered):
        return frame
    return Filtered(frame.records.take(pa.array([], pa.int64())), frame.offset)


class _Through:
    """Nothing comes behind it."""


_THROUGH: Final = _Through()
_ONE_FRAME: Final = Bounds(records=1, bytes=0)


class ReadAhead:
    """The frames of *run*, which is started, polled and closed on one thread, a frame ahead of who takes them.

    *frames* once, then *close*, on another thread.
    """

    def __init__(self, run: ReadingRun) -> None:
        self._run = run
        self._pump = Pump[Frame | _Through](
            self._produced,
            size=lambda _: (1, 0),
            bounds=_ONE_FRAME,
            name="headrace-reading",
            ending=threading.Event(),
        )

    def frames(self, patience: float) -> Iterator[Frame | None]:
        """All frames in order; ``None`` in between, each time that none has come for *patience* in seconds."""
        self._pump.start()
        while not isinstance(frame := self._pump.take(patience), _Through):
            yield frame

    def close(self) -> None:
        """Wait until the run is closed, for as long as it takes; what it has not handed over is dropped."""
        self._pump.close(None)

    def _produced(self) -> Generator[Frame | _Through]:
        try:
            yield from self._run.frames(meanwhile=self._pump.put)
            yield _THROUGH
        finally:
            self._run.close()


# Half of the usual time between two commits: what was read a moment ago is to be in the next one.
PUSH_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowFlush:
    """What is enough to push: *rows* fill a batch of Spark's, *octets* the buffer of a Python process."""

    rows: int
    octets: int


class FlushedRows:
    """Rows of frames, pushed twice a second, however few frames come."""

    def __init__(
        self,
        encoder: FrameEncoder,
        push: ArrowFlush,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.encoder = encoder
        self._push = push
        self._clock = clock
        self._pushed_at = clock()

    def rows(self, frames: Iterable[Frame | None]) -> Iterator[pa.RecordBatch]:
        """The rows of *frames*; the last of them say what was wrong when a frame is none that can travel.

        Each ``None`` among them says that nothing has come for :data:`PUSH_SECONDS`.
        """
        at: Place | None = None
        before: Frame | None = None
        try:
            for frame in frames:
                if frame is None:
                    yield from self._meanwhile(before)
                    continue
                before = frame
                at = frame.begins_at if isinstance(frame, Records) else None
                yield from self.encoder.rows(frame)
                if self._is_due(frame):
                    yield from self.pushes()
        except TaskFailedError as error:
            yield from self.encoder.rows(Failed(error, at, abandons=at is None))
        except Exception as error:  # noqa: BLE001 (a Spark job that it ended would be tried again for ever)
            _log.exception("Records could not be handed to Spark")
            told = TaskFailedError(f"Records could not be handed to Spark: {error!r}")
            yield from self.encoder.rows(Failed(told, abandons=True))

    def _meanwhile(self, before: Frame | None) -> Iterator[pa.RecordBatch]:
        """Rows to push while nothing comes behind the frame *before*."""
        if isinstance(before, EndOfPoll):
            before = Waiting()
        if isinstance(before, Waiting):
            yield from self.encoder.rows(before)
        yield from self.pushes()

    def _is_due(self, frame: Frame) -> bool:
        """Whether to push behind *frame*: not before the end of its poll, unless that is long in coming."""
        if isinstance(frame, Commit | Abort):
            return True
        patience = 2 * PUSH_SECONDS if isinstance(frame, Records) else PUSH_SECONDS
        return self._clock() >= self._pushed_at + patience

    def pushes(self) -> Iterator[pa.RecordBatch]:
        """Rows that mean nothing, and are enough."""
        yield self.encoder.nothing(self._push.rows)
        yield self.encoder.nothing(1, bytes(self._push.octets))
        self._pushed_at = self._clock()


def read_part(
    ticket: SlotTicket, carries: FrameTypes, push: ArrowFlush
) -> Iterator[pa.RecordBatch]:
    """Read the share that *ticket*'s token stands for, as rows of frames of *carries*.

    Called by Spark in a Python process, possibly more than once for one token: every copy but the first gives
    no record, and says why. The last row says how reading has ended; the task is stopped behind it.
    """
    encoder = FrameEncoder(carries)
    with ChannelClient(ticket) as client:
        try:
            work, form = claimed(client)
        except (RetriableError, StaleTokenError) as error:
            yield from encoder.rows(Failed(StaleTokenError(str(error))))
            yield encoder.end(Outcome.STALE)
            return
        hidden = work.spec.hidden
        with slot_log(form, connector=work.spec.name, task=work.task, hidden=hidden) as follow:
            mine, pushing = work_of_reading(work), FlushedRows(encoder, push)
            yield from _read(ticket, mine, client, follow=follow, pushing=pushing)


def _read(
    ticket: SlotTicket,
    work: SlotWork,
    client: ChannelClient,
    *,
    follow: Follow,
    pushing: FlushedRows,
) -> Iterator[pa.RecordBatch]:
    progress = Progress()
    lease = Lease(
        ChannelClient(ticket), progress, lease_seconds=work.lease_seconds, follow_log=follow
    )
    lease.start()
    run = ReadingRun(work, client, lease, progress)
    ahead = ReadAhead(run)
    try:
        yield from pushing.rows(ahead.frames(PUSH_SECONDS))
        yield pushing.encoder.end(run.outcome)
        yield from pushing.pushes()
    finally:
        lease.end()
        ahead.close()
        lease.close()
        report = SlotReport(outcome=run.outcome, progress=progress.as_message())
        tell_end(client, report)
