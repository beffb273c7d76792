"""Lets the last record of a file say that it is the last one."""

from __future__ import annotations

from collections.abc import Callable

from headrace.connect.batch import SourceBatch

_Batches = list[SourceBatch]


class LastRecord:
    """Passes batches on one step late: only then is it known whether anything follows them.

    *mark* makes of a batch of the last record one that says so. Used by one reader. What it holds when that
    is closed has not been passed on, so it is read again.
    """

    def __init__(self, mark: Callable[[SourceBatch], SourceBatch]) -> None:
        self._mark = mark
        self._held: _Batches | None = None
        self._error: Exception | None = None
        self._has_ended = False

    def next_batches(
        self, read: Callable[[], _Batches | None], is_end: Callable[[], bool]
    ) -> _Batches | None:
        """What *read* gave the time before; ``None`` after the last.

        *is_end* is asked when *read* has no more: whether that is the file's end. An error of *read* is raised
        when everything before it was passed on.
        """
        error, self._error = self._error, None
        if error is not None:
            raise error
        if self._held is None and not self._has_ended:
            self._held = read()
        held, self._held = self._held, None
        if held is None:
            self._has_ended = True
            return None
        try:
            self._held = read()
        except Exception as late:  # noqa: BLE001 (raised by the next call, whatever it is)
            self._error = late
            return held
        self._has_ended = self._held is None
        return self._marked(held) if self._has_ended and is_end() else held

    def _marked(self, batches: _Batches) -> _Batches:
        *before, batch = batches
        end = len(batch) - 1
        return [
            *before,
            *([batch.slice(0, end)] if end else []),
            self._mark(batch.slice(end, 1)),
        ]
