"""What is printed, by an author's connector for one, without the secrets in it."""

from __future__ import annotations

import functools
import io
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import BinaryIO, TextIO, cast

Mask = Callable[[str], str]

# Of a line that does not end, such as a bar of progress without a flush; more is not held back.
_LONGEST = 1 << 20


class MaskedStream(io.TextIOBase):
    """Passes what is printed on to *stream* as *mask* shows it, in whole lines or up to a flush. Any thread may write.

    A print writes its words one by one, and a secret may have several.
    """

    def __init__(self, stream: TextIO) -> None:
        self.mask: Mask = str
        self._stream = stream
        self._waiting = ""
        # A handler of a signal may print while its own thread does.
        self._lock = threading.RLock()

    def write(self, text: str, /) -> int:
        """Take *text*; the stream gets it with the end of its line."""
        with self._lock:
            self._waiting += text
            lines, end, rest = self._waiting.rpartition("\n")
            if len(rest) > _LONGEST:
                lines, end, rest = self._waiting, "", ""
            self._waiting = rest
            if lines or end:
                self._stream.write(self.mask(lines + end))
        return len(text)

    def flush(self) -> None:
        """Pass on a line that has not ended, too."""
        with self._lock:
            waiting, self._waiting = self._waiting, ""
            # The interpreter flushes at its end what somebody may have closed.
            if not self._stream.closed:
                self._stream.write(self.mask(waiting))
                self._stream.flush()

    def writable(self) -> bool:
        """It is."""
        return True

    def isatty(self) -> bool:
        """As the stream."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The stream's; what is written there is not masked."""
        return self._stream.fileno()

    @property
    def buffer(self) -> BinaryIO:
        """The stream's; what is written there is not masked."""
        return self._stream.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The stream's."""
        return self._stream.encoding


# One for each: an author's module may keep it while one connector after another uses the process.
@functools.cache
def _masked(stream: TextIO) -> MaskedStream:
    return MaskedStream(stream)


@contextmanager
def printed_as(mask: Mask) -> Generator[None]:
    """Let what is printed within be as *mask* shows it, on standard output and standard error.

    What keeps the streams for longer is masked in the same way until the next time. Called by a thread that
    nobody else does this beside.
    """
    before = (sys.stdout, sys.stderr)
    streams = (_masked(sys.stdout), _masked(sys.stderr))
    for each in streams:
        each.mask = mask
    sys.stdout, sys.stderr = cast("tuple[TextIO, TextIO]", streams)
    try:
        yield
    finally:
        for each in streams:
            each.flush()
        sys.stdout, sys.stderr = before
