"""A task that is polled on a thread of its own, so that no wait of it keeps what it has read already."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from typing import Final

from headrace.slot.frames import Frame
from headrace.slot.split.reading_run import ReadingRun
from headrace.sources.pump import Bounds, Pump


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
