"""Turns what one poll returned into frames: split where a transaction may end, and throttled."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import cast

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.connect.task import Polled
from headrace.task.batching import batches_of
from headrace.task.frames import Abort, Commit, DeadLetter, Frame, Records
from headrace.task.transaction_boundary import BoundaryRequests

# A quarter of the client's queue: at 1 MB/s, which is slow, a piece takes eight seconds of the sixty that a
# transaction may be open.
MOST_BYTES = 8 * 1024 * 1024
# At 50 µs a row, which transformations in plain Python take, a piece takes three seconds.
MOST_ROWS = 65_536

_PIECES_PER_SECOND = 10
# After a bad record only so few are tried at first, because a batch with another bad one has to be processed again.
_FEW_RECORDS = 16
_GROWTH = 4

_KINDS = (SourceBatch, SourceRecord)
_RETURN = "return a SourceBatch, a list of those or of SourceRecord, or None."
_NO_RECORDS = (
    "poll returned batches, but the task asked to end a transaction at a record: return plain records, or ask to end "
    "it after everything that poll returns."
)


def pieces(
    batch: SourceBatch, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> Iterator[SourceBatch]:
    """*batch* in pieces of similar size, at most *most_rows* rows each, and *most_bytes* bytes by the average row.

    A transaction may end between two pieces. Nothing is copied.
    """
    per_row = batch.nbytes / max(1, len(batch))
    fitting = min(most_rows, max(1, int(most_bytes / max(1.0, per_row))))
    if len(batch) <= fitting:
        yield batch
        return
    count = -(-len(batch) // fitting)
    step = -(-len(batch) // count)
    for start in range(0, len(batch), step):
        yield batch.slice(start, min(step, len(batch) - start))


class Throttle:
    """Limits the rate to *records_per_second*; ``None`` passes every batch on unchanged."""

    def __init__(
        self, records_per_second: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = records_per_second
        self._clock = clock
        self._free_at = clock()

    def paced(self, batch: SourceBatch, wait: Callable[[float], None]) -> Iterator[SourceBatch]:
        """The pieces of *batch*, each as soon as the rate allows; *wait* may return early."""
        if self._rate is None:
            yield batch
            return
        step = max(1, self._rate // _PIECES_PER_SECOND)
        for start in range(0, len(batch), step):
            piece = batch.slice(start, min(step, len(batch) - start))
            wait(max(0.0, self._free_at - self._clock()))
            self._free_at = max(self._free_at, self._clock()) + len(piece) / self._rate
            yield piece


class PolledFrames:
    """Makes frames of polls, at the rate of *throttle*; *wait* may return early.

    *requests* is given when the connector defines the transaction boundaries. With *tolerates* a record that does
    not fit its schema is skipped.
    """

    def __init__(
        self,
        throttle: Throttle,
        wait: Callable[[float], None],
        requests: BoundaryRequests | None,
        *,
        tolerates: bool,
    ) -> None:
        self._throttle = throttle
        self._wait = wait
        self._requests = requests
        self._tolerates = tolerates

    def of(self, polled: Polled | RecordError) -> Iterator[Frame]:
        """The frames of *polled*; an error stands for a record that could not be read.

        Raises ``TypeError`` and :class:`~headrace.connect.errors.TaskFailedError` for invalid return values.
        """
        if polled is None:
            return
        if isinstance(polled, RecordError):
            yield DeadLetter(polled)
            return
        if isinstance(polled, SourceBatch):
            polled = [polled]
        batches, plain = _by_kind(polled)
        if batches and self._requests is not None and self._requests.cuts_at_records():
            raise TaskFailedError(_NO_RECORDS)
        for batch in batches:
            yield from self._paced(batch)
        yield from self._plain(plain)

    def _paced(
        self, batch: SourceBatch, originals: Sequence[SourceRecord] | None = None
    ) -> Iterator[Frame]:
        start = 0
        for piece in pieces(batch):
            for paced in self._throttle.paced(piece, self._wait):
                end = start + len(paced)
                yield Records(paced, None if originals is None else originals[start:end])
                start = end

    def _plain(self, records: Sequence[SourceRecord]) -> Iterator[Frame]:
        requests = self._requests
        if requests is None or not requests.cuts_at_records():
            yield from self._batched(records)
            return
        start = 0
        for end, record in enumerate(records, 1):
            ends = list(_ends_after(record, requests, ends_poll=end == len(records)))
            if ends:
                yield from self._batched(records[start:end])
                yield from ends
                start = end
        yield from self._batched(records[start:])

    def _batched(self, records: Sequence[SourceRecord]) -> Iterator[Frame]:
        """*records* in batches; those that do not fit their schemas become dead letters if errors are tolerated."""
        start, size = 0, len(records)
        while start < len(records):
            piece = records[start : start + size]
            try:
                for batch, originals in batches_of(piece):
                    yield from self._paced(batch, originals)
            except RecordError as error:
                if not self._tolerates or error.row is None or error.bad is None:
                    raise
                yield DeadLetter(error, piece[error.row])
                start, size = start + error.row + 1, _FEW_RECORDS
            else:
                start, size = start + len(piece), size * _GROWTH


def _by_kind(polled: object) -> tuple[list[SourceBatch], list[SourceRecord]]:
    """The batches and the plain records that an author's task *polled*; one of the two is empty."""
    # A generator would be empty when iterated a second time.
    if not isinstance(polled, Sequence):
        raise TypeError(f"poll returned {type(polled).__name__!r}: {_RETURN}")
    items = cast("Sequence[object]", polled)
    batches = [each for each in items if isinstance(each, SourceBatch)]
    plain = [each for each in items if isinstance(each, SourceRecord)]
    if batches and plain:
        raise TypeError("poll returned batches and plain records in one list: return one kind.")
    if len(batches) + len(plain) < len(items):
        others = {type(each).__name__ for each in items if not isinstance(each, _KINDS)}
        held = ", ".join(map(repr, sorted(others)))
        raise TypeError(f"poll returned {type(polled).__name__!r} with {held} in it: {_RETURN}")
    return batches, plain


def _ends_after(
    record: SourceRecord, requests: BoundaryRequests, *, ends_poll: bool
) -> Iterator[Frame]:
    if requests.aborts_after(record):
        yield Abort(ends_poll=ends_poll)
    if requests.commits_after(record):
        yield Commit(ends_poll=ends_poll)
