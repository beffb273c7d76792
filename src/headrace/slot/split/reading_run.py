"""A task that is polled in a process of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import pyarrow as pa

from headrace.class_path import class_at
from headrace.connect.task import SourceTask
from headrace.slot.boundary import BoundaryRequests
from headrace.slot.chain import chain_of
from headrace.slot.channel import ChannelClient
from headrace.slot.context import context_of
from headrace.slot.frames import Failed, Filtered, Frame, Waiting
from headrace.slot.hooks import overrides
from headrace.slot.lease import Lease
from headrace.slot.reading import ReadingHalf, reading_half
from headrace.slot.retrying import retrying_in
from headrace.slot.work import BoundaryKind, Outcome, Progress, SlotWork

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
        self._reading: ReadingHalf | None = None

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
            _log.warning("While a slot of %s ended: %s", self._work.connector, error)
        self._progress.stopping_task = False

    def _started(self, task: SourceTask) -> ReadingHalf:
        work = self._work
        requests = BoundaryRequests() if work.boundary is BoundaryKind.CONNECTOR else None
        task.initialize(context_of(work, self._client, self._lease, requests))
        task.start(work.config)
        return reading_half(task, work, self._lease, self._progress, requests=requests)


def _without_dropped(frame: Frame) -> Frame:
    """*frame*, of which nothing but the offset counts if its rows were dropped."""
    if not isinstance(frame, Filtered):
        return frame
    return Filtered(frame.records.take(pa.array([], pa.int64())), frame.offset)
