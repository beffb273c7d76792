"""What one poll has returned, as frames: cut where a transaction may end, and held to a rate."""

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
# Where each row costs 50 µs, as with transformations in plain Python, a piece takes three seconds.
MOST_ROWS = 65_536


def pieces(
    batch: SourceBatch, *, most_rows: int = MOST_ROWS, most_bytes: int = MOST_BYTES
) -> Iterator[SourceBatch]:
    """*batch* in pieces of about one size, none with more than *most_rows* rows, or *most_bytes* by its average row.

    Between two of them a transaction may end. Nothing is copied.
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


_PIECES_PER_SECOND = 10


class Throttle:
    """At most *records_per_second*; ``None`` passes every batch on as it is."""

    def __init__(
        self, records_per_second: int | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = records_per_second
        self._clock = clock
        self._free_at = clock()

    def paced(self, batch: SourceBatch, wait: Callable[[float], None]) -> Iterator[SourceBatch]:
        """The pieces of *batch*, each when its time has come; *wait* may return early."""
        if self._rate is None:
            yield batch
            return
        step = max(1, self._rate // _PIECES_PER_SECOND)
        for start in range(0, len(batch), step):
            piece = batch.slice(start, min(step, len(batch) - start))
            wait(max(0.0, self._free_at - self._clock()))
            self._free_at = max(self._free_at, self._clock()) + len(piece) / self._rate
            yield piece


# So few are tried at first behind a bad one, because its whole batch has to be looked at again.
_FEW_RECORDS = 16
_GROWTH = 4

_KINDS = (SourceBatch, SourceRecord)
_RETURN = "return a SourceBatch, a list of those or of SourceRecord, or None."
_NO_RECORDS = (
    "poll returned batches, and the task asked for the end of a transaction at a record: return plain records, or "
    "ask for the end of all that poll returns."
)


class PolledFrames:
    """Frames of polls, one after the other, at the pace that *throttle* says; *wait* may return early.

    *requests* are there when the connector places the ends of transactions. *tolerates* says that a record that
    does not fit its schema is passed over.
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
        """The frames of what is *polled*; an error is a record that could not be read.

        Raises ``TypeError`` and :class:`~headrace.connect.errors.TaskFailedError` for what no poll may return.
        """
        if polled is None:
            return
        if isinstance(polled, RecordError):
            yield DeadLetter(polled)
            return
        if isinstance(polled, SourceBatch):
            polled = [polled]
        batches, plain = _sorted_out(polled)
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
        """*records* in batches; those that do not fit their schemas are passed over, if that is asked for."""
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


def _sorted_out(polled: object) -> tuple[list[SourceBatch], list[SourceRecord]]:
    """The batches and the plain records that an author's task *polled*; there are not both."""
    # What can be gone through only once, as what `yield` makes, would look empty the second time.
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
