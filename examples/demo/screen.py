"""What a person sees: lines that stay, and one line of progress that is written again."""

from __future__ import annotations

import os
import shutil
import textwrap
import threading
import time
from collections.abc import Callable
from typing import TextIO

# Those of a terminal that no one has made wider.
_COLUMNS = 80
_CLEAR = "\r\x1b[K"
# Where nothing can be written again, progress is a line now and then.
_SECONDS_BETWEEN_LINES = 2.0


class Screen:
    """Writes to *stream*; any thread may speak. *live* says that a line can be written again."""

    def __init__(
        self,
        stream: TextIO,
        *,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._live = _is_live(stream) if live is None else live
        self._clock = clock
        self._lock = threading.Lock()
        self._progress = ""
        self._next_line_at = clock()

    def say(self, *lines: str) -> None:
        """Write *lines* that stay."""
        with self._lock:
            shown = "".join(f"{part}\n" for line in lines for part in _fitting(line))
            if self._live and self._progress:
                shown = f"{_CLEAR}{shown}{self._progress}"
            self._write(shown)

    def progress(self, line: str) -> None:
        """Show *line* in place of the last progress."""
        with self._lock:
            if self._live:
                self._progress = line[: shutil.get_terminal_size().columns - 1]
                self._write(_CLEAR + self._progress)
            elif self._clock() >= self._next_line_at:
                self._next_line_at = self._clock() + _SECONDS_BETWEEN_LINES
                self._write(f"{line}\n")

    def end_progress(self, line: str) -> None:
        """Let *line* stay as the last progress."""
        with self._lock:
            self._progress = ""
            self._write(f"{_CLEAR if self._live else ''}{line}\n")

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _fitting(line: str) -> list[str]:
    """*line* in as many as fit, the further ones indented; reasons may be long."""
    if len(line) <= _COLUMNS:
        return [line]
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.wrap(
        line,
        _COLUMNS,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _is_live(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
