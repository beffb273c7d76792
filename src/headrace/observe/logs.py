"""Events as log lines, and how log lines look: words and key=value on stderr, or JSON."""

from __future__ import annotations

import dataclasses
import logging
import sys
from collections.abc import Mapping
from typing import Final, TextIO

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from headrace.observe import events
from headrace.observe.events import Event

LOGGER: Final = "headrace.events"
"""The name of the logger that tells events."""

_LINES: Mapping[type[Event], tuple[int, str]] = {
    events.ConnectorStarted: (logging.INFO, "The connector runs"),
    events.ConnectorStopped: (logging.INFO, "The connector has stopped"),
    events.ConnectorFailed: (logging.ERROR, "The connector has failed"),
    events.MicroBatchStarted: (logging.DEBUG, "A micro-batch starts"),
    events.SlotClaimed: (logging.DEBUG, "A slot has claimed its work"),
    events.SlotProgress: (logging.DEBUG, "The slots are working"),
    events.MicroBatchEnded: (logging.INFO, "A micro-batch has ended"),
    events.Committed: (logging.DEBUG, "Offsets were committed without records"),
    events.ConnectorIdle: (logging.DEBUG, "There is nothing to read now"),
    events.Waiting: (logging.WARNING, "The connector has to wait"),
    events.Replanned: (logging.WARNING, "The work is planned again"),
    events.TaskFailed: (logging.ERROR, "A task has failed"),
}


class EventLog:
    """Tells events to the standard logging hierarchy, repetitions of a waiting connector only once.

    May be told from any thread: the events of one connector come from one at a time.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._waiting: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Log *event*; a healthy idle connector is told at debug level only."""
        level, words = _LINES[type(event)]
        if self._repeats(event) or not self._logger.isEnabledFor(level):
            return
        fields = {
            field.name: getattr(event, field.name)
            for field in dataclasses.fields(event)
            if getattr(event, field.name) is not None
        }
        self._logger.log(level, words, extra=fields)

    def _repeats(self, event: Event) -> bool:
        if isinstance(event, events.Waiting):
            said = self._waiting.get(event.connector)
            self._waiting[event.connector] = event.reason
            return said == event.reason
        if isinstance(event, events.MicroBatchStarted | events.ConnectorIdle):
            self._waiting.pop(event.connector, None)
        return False


def configure_logging(
    level: str = "INFO", *, as_json: bool = False, stream: TextIO | None = None
) -> None:
    """Send all log records of this program to *stream* (default: stderr), once, in one form.

    Called by the command line, before anything is started; replaces the root logger's handlers.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(_formatter(as_json=as_json, colors=handler.stream.isatty()))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)


def _formatter(*, as_json: bool, colors: bool) -> logging.Formatter:
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *(_JSON if as_json else (_trace_last, _console(colors=colors))),
        ],
    )


_JSON: tuple[Processor, ...] = (
    structlog.processors.format_exc_info,
    structlog.processors.EventRenamer("message"),
    structlog.processors.JSONRenderer(),
)


def _console(*, colors: bool) -> Processor:
    return structlog.dev.ConsoleRenderer(
        colors=colors, pad_event_to=0, exception_formatter=structlog.dev.plain_traceback
    )


def _trace_last(_logger: WrappedLogger, _method: str, line: EventDict) -> EventDict:
    """A traceback in lines of its own, not as one long quoted value."""
    trace = line.pop("trace", None)
    if trace is not None:
        line["stack"] = trace
    return line
