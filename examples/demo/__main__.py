"""The demonstration that ./demo runs: real files into a real Kafka broker, with a task killed half way.

Exit codes: 0 every number is right, 1 something is wrong, 130 after Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType
from typing import NoReturn

from logs import keep_logs
from screen import Screen
from settings import LOG, ROOT
from showing import FAILED, show

from headrace.connect.errors import ConnectError

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> NoReturn:
    """Show it, and end with the right exit code."""
    os.chdir(ROOT)
    screen = Screen(sys.stdout)
    keep_logs(LOG, screen)
    for number in ENDINGS:
        signal.signal(number, _leave)
    try:
        sys.exit(show(screen))
    except ConnectError as error:
        screen.say("", str(error), f"All that was said meanwhile is in {LOG}")
        sys.exit(FAILED)


def _leave(number: int, _frame: FrameType | None) -> NoReturn:
    # All that was started is ended on the way out, which nothing may interrupt.
    for each in ENDINGS:
        signal.signal(each, signal.SIG_IGN)
    os.write(1, b"\nEnding what was started ...\n")
    raise SystemExit(128 + number)


if __name__ == "__main__":
    main()
