"""SIGINT and SIGTERM of a worker: the first lets it end, the second does not wait for that."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import Final

from headrace.cli.main import INTERRUPTED, TERMINATED

_CODES: Final = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
_STANDARD_ERROR: Final = 2


class Signals:
    """Calls *ask_to_stop* at the first signal, on the main thread, which also makes this."""

    def __init__(self, ask_to_stop: Callable[[], None] = lambda: None) -> None:
        self._ask_to_stop = ask_to_stop
        self._received: signal.Signals | None = None
        for each in _CODES:
            signal.signal(each, self._receive)

    @property
    def came(self) -> bool:
        """Whether the process was asked to end."""
        return self._received is not None

    def code(self) -> int:
        """The exit code that says how the process was ended."""
        return 0 if self._received is None else _CODES[self._received]

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        received = signal.Signals(number)
        # Not through sys.stderr, which may be in the middle of a line of its own.
        if self._received is not None:
            os.write(
                _STANDARD_ERROR,
                b"headrace: ended at once; what was not committed will be read again.\n",
            )
            os._exit(_CODES[received])
        self._received = received
        self._ask_to_stop()
        os.write(_STANDARD_ERROR, b"headrace: stopping; once more ends it at once.\n")
