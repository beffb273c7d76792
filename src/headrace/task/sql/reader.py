"""The process that reads for a slot, from its claim to its final report; rows are flushed through Spark's batches."""

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
from headrace.task.chain import chain_of
from headrace.task.channel import ChannelClient, Lease
from headrace.task.commit_hooks import overrides
from headrace.task.connector_spec import BoundaryKind
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
from headrace.task.logs import Follow, slot_log
from headrace.task.poll_loop import PollLoop, make_poll_loop
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotTicket, SlotWork
from headrace.task.sql.frame_codec import FrameEncoder
from headrace.task.sql.step import FrameTypes, work_of_reading
from headrace.task.transaction_boundary import BoundaryRequests
from headrace.task.worker_task import claimed, context_of, report_end

_log = logging.getLogger(__name__)

# Half of the usual commit interval, so that what was just read is part of the next commit.
FLUSH_SECONDS = 0.5


class ReaderTask:
    """Starts the task of *work*, polls it, and stops it. Call *frames* once, then *close*, on one thread."""

    def __init__(
        self, work: SlotWork, client: ChannelClient, lease: Lease, progress: Progress
    ) -> None:
        self._work = work
        self._client = client
        self._lease = lease
        self._progress = progress
        self._task: SourceTask | None = None
        self._poll_loop: PollLoop | None = None

    @property
    def outcome(self) -> Outcome:
        """How reading ended."""
        return Outcome.ASKED if self._poll_loop is None else self._poll_loop.outcome

    def frames(self, meanwhile: Callable[[Waiting], object] = lambda _: None) -> Iterator[Frame]:
        """All frames after the chain; a final ``Failed`` when the task raised anything, also at its start.

        *meanwhile* is called, in order among the frames, when the next one has to wait for a retry.
        """
        try:
            task = self._task = class_at(self._work.task_class, SourceTask)()
            poll_loop = self._poll_loop = self._started(task)
            retrying = retrying_in(
                self._work, self._lease, self._progress, lambda place: meanwhile(Waiting(place))
            )
            chain = chain_of(self._work, retrying)
            has_hooks = any(overrides(task, each) for each in ("commit_batch", "commit_record"))
            for frame in chain.frames(poll_loop.frames()):
                yield frame if has_hooks else _without_dropped(frame)
        except Exception as error:  # noqa: BLE001 (any error is passed on to the process that writes)
            yield Failed(error, abandons=True)
        except SystemExit as error:
            failure = RuntimeError(f"The task called sys.exit({error.code!r}).")
            yield Failed(failure, abandons=True)

    def close(self) -> None:
        if self._task is None:
            return
        self._progress.stopping_task = True
        try:
            self._task.stop()
        except Exception as error:  # noqa: BLE001 (everything that it has read is on its way already)
            _log.warning("Error while closing a slot of %s: %s", self._work.spec.name, error)
        self._progress.stopping_task = False

    def _started(self, task: SourceTask) -> PollLoop:
        work = self._work
        requests = BoundaryRequests() if work.spec.boundary is BoundaryKind.CONNECTOR else None
        task.initialize(context_of(work, self._client, self._lease, requests))
        task.start(work.config)
        return make_poll_loop(task, work, self._lease, self._progress, requests=requests)


def _without_dropped(frame: Frame) -> Frame:
    """*frame*; if it is ``Filtered``, without its rows, because only its offset matters."""
    if not isinstance(frame, Filtered):
        return frame
    return Filtered(frame.records.take(pa.array([], pa.int64())), frame.offset)


class _End:
    """Marks the end of the frames."""


_END: Final = _End()
_ONE_FRAME: Final = Bounds(records=1, bytes=0)


class ReadAhead:
    """The frames of *run*, which is started, polled and closed on one thread, one frame ahead of the consumer.

    Call *frames* once, then *close*, on another thread.
    """

    def __init__(self, run: ReaderTask) -> None:
        self._run = run
        self._pump = Pump[Frame | _End](
            self._produced,
            size=lambda _: (1, 0),
            bounds=_ONE_FRAME,
            name="headrace-reading",
            ending=threading.Event(),
        )

    def frames(self, patience: float) -> Iterator[Frame | None]:
        """All frames in order; ``None`` in between, each time that none has come for *patience* seconds."""
        self._pump.start()
        while not isinstance(frame := self._pump.take(patience), _End):
            yield frame

    def close(self) -> None:
        """Wait until the run is closed, however long that takes; frames that were not taken are dropped."""
        self._pump.close(None)

    def _produced(self) -> Generator[Frame | _End]:
        try:
            yield from self._run.frames(meanwhile=self._pump.put)
            yield _END
        finally:
            self._run.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrowFlush:
    """How much filler flushes rows through Spark: *rows* fill an Arrow batch, *octets* a Python process's buffer."""

    rows: int
    octets: int


class FlushedRows:
    """Rows of frames, flushed twice a second, however few frames come."""

    def __init__(
        self,
        encoder: FrameEncoder,
        flush: ArrowFlush,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.encoder = encoder
        self._flush = flush
        self._clock = clock
        self._flushed_at = clock()

    def rows(self, frames: Iterable[Frame | None]) -> Iterator[pa.RecordBatch]:
        """The rows of *frames*; if a frame cannot be encoded, the last rows hold the error.

        Each ``None`` among the frames means that none has come for :data:`FLUSH_SECONDS`.
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
                    yield from self.flush_rows()
        except TaskFailedError as error:
            yield from self.encoder.rows(Failed(error, at, abandons=at is None))
        except Exception as error:  # noqa: BLE001 (a Spark job that it ended would be retried forever)
            _log.exception("Records could not be handed to Spark")
            failure = TaskFailedError(f"Records could not be handed to Spark: {error!r}")
            yield from self.encoder.rows(Failed(failure, abandons=True))

    def _meanwhile(self, before: Frame | None) -> Iterator[pa.RecordBatch]:
        """The rows to send while no frame comes after the frame *before*."""
        if isinstance(before, EndOfPoll):
            before = Waiting()
        if isinstance(before, Waiting):
            yield from self.encoder.rows(before)
        yield from self.flush_rows()

    def _is_due(self, frame: Frame) -> bool:
        """Whether to flush after *frame*: not before the end of its poll, unless that is delayed."""
        if isinstance(frame, Commit | Abort):
            return True
        patience = 2 * FLUSH_SECONDS if isinstance(frame, Records) else FLUSH_SECONDS
        return self._clock() >= self._flushed_at + patience

    def flush_rows(self) -> Iterator[pa.RecordBatch]:
        """Filler rows, enough to flush the rows before them."""
        yield self.encoder.filler(self._flush.rows)
        yield self.encoder.filler(1, bytes(self._flush.octets))
        self._flushed_at = self._clock()


def read_part(ticket: SlotTicket, types: FrameTypes, flush: ArrowFlush) -> Iterator[pa.RecordBatch]:
    """Read the share of *ticket*'s token; yields rows of frames of the *types*.

    Called by Spark in a Python process, possibly more than once for one token: every copy but the first yields
    no record but the reason. The last row says how reading ended; the task is stopped after it.
    """
    encoder = FrameEncoder(types)
    with ChannelClient(ticket) as client:
        try:
            work, form = claimed(client)
        except (RetriableError, StaleTokenError) as error:
            yield from encoder.rows(Failed(StaleTokenError(str(error))))
            yield encoder.end(Outcome.STALE)
            return
        secrets = work.spec.secrets
        with slot_log(form, connector=work.spec.name, task=work.task, secrets=secrets) as follow:
            mine, flushed = work_of_reading(work), FlushedRows(encoder, flush)
            yield from _read(ticket, mine, client, follow=follow, flushed=flushed)


def _read(
    ticket: SlotTicket,
    work: SlotWork,
    client: ChannelClient,
    *,
    follow: Follow,
    flushed: FlushedRows,
) -> Iterator[pa.RecordBatch]:
    progress = Progress()
    lease = Lease(
        ChannelClient(ticket), progress, lease_seconds=work.lease_seconds, follow_log=follow
    )
    lease.start()
    run = ReaderTask(work, client, lease, progress)
    ahead = ReadAhead(run)
    try:
        yield from flushed.rows(ahead.frames(FLUSH_SECONDS))
        yield flushed.encoder.end(run.outcome)
        yield from flushed.flush_rows()
    finally:
        lease.end()
        ahead.close()
        lease.close()
        report = SlotReport(outcome=run.outcome, progress=progress.as_message())
        report_end(client, report)
