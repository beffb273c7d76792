"""Keeps what is said beside the demonstration in a file: logs, and whatever Java writes."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from screen import Screen

from headrace.observe.log_format import configure_logging

# Fetching Kafka takes a while the first time, and so does Spark's start on a busy machine; somebody waits for them.
FETCHING, STARTING = "headrace.jvm", "headrace.spark.start"


def keep_logs(file: Path, screen: Screen) -> None:
    """Write what is logged to *file*, and show on *screen* what is fetched, and how Spark starts."""
    file.parent.mkdir(parents=True, exist_ok=True)
    configure_logging("INFO", stream=file.open("w", buffering=1))
    logging.getLogger("headrace").setLevel(logging.DEBUG)
    # It warns of topics that no one has made yet.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    logging.getLogger(FETCHING).addHandler(ScreenLog(screen))
    starting = ScreenLog(screen)
    # That it begins and when it is through is shown by whoever starts it.
    starting.addFilter(lambda record: "waiting for" in record.msg)
    logging.getLogger(STARTING).addHandler(starting)


class ScreenLog(logging.Handler):
    """Shows what is logged, indented below what is being done."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Show *record*'s words."""
        self._screen.say(*(f"  {line}" for line in record.getMessage().splitlines()))


@contextmanager
def errors_kept(file: Path) -> Iterator[None]:
    """Send what this program and those it starts write to stderr to the end of *file* instead."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with file.open("a") as log:
            os.dup2(log.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(kept, 2)
        os.close(kept)
