"""The demonstration that ./demo runs: real files into a real Kafka broker, with a task killed half way.

Exit codes: 0 every number is right, 1 something is wrong, 130 after Ctrl-C.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import NoReturn

from leaving import ENDINGS, Ending
from logs import keep_logs
from screen import Screen
from settings import LOG, ROOT
from showing import FAILED, show

from headrace.connect.errors import ConnectError


def main() -> NoReturn:
    """Show it, and end with the right exit code."""
    os.chdir(ROOT)
    screen = Screen(sys.stdout)
    keep_logs(LOG, screen)
    ending = Ending()
    for number in ENDINGS:
        signal.signal(number, ending)
    try:
        code = show(screen, ending.leave_if_received)
        ending.leave_if_received()
        sys.exit(code)
    except Exception as error:
        if ending.received is not None:
            # What breaks while everything is being ended is not why it ends.
            logging.getLogger(__name__).exception("On the way out")
            sys.exit(128 + ending.received)
        if not isinstance(error, ConnectError):
            raise
        screen.say("", str(error), f"All that was said meanwhile is in {LOG}")
        sys.exit(FAILED)


if __name__ == "__main__":
    main()
