"""Events as log lines, each reason once, and the logging of a worker's process."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, TextIO

from headrace.observe import events
from headrace.observe.events import ConnectorFailed, Event, TaskFailed
from headrace.observe.log_format import WORDS, FormHandler, LogForm


class LoggedReasons:
    """Remembers why tasks failed until their connector has failed, too. One per listener."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[str]] = {}

    def shortened(self, event: Event) -> Event:
        """*event*, without a reason that one of the connector's tasks was given before."""
        if isinstance(event, TaskFailed) and event.reason:
            self._reasons.setdefault(event.connector, []).append(event.reason)
        if not isinstance(event, ConnectorFailed):
            return event
        for told in self._reasons.pop(event.connector, []):
            if event.reason.endswith(f": {told}"):
                return replace(
                    event, reason=f"{event.reason.removesuffix(f': {told}')}, as told above"
                )
        return event


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
    events.OffsetsMoved: (logging.DEBUG, "An idle task has moved offsets"),
    events.ConnectorIdle: (logging.DEBUG, "There is nothing to read now"),
    events.Waiting: (logging.WARNING, "The connector has to wait"),
    events.Queued: (
        logging.INFO,
        "All slots are taken: connectors that have work take turns from now on",
    ),
    events.Resumed: (logging.INFO, "The connector goes on"),
    events.TopicsWritten: (logging.DEBUG, "Records are committed in topics"),
    events.Replanned: (logging.WARNING, "The work is planned again"),
    events.TaskFailed: (logging.ERROR, "A task has failed"),
}

# Work is to be done, or there is none: whatever was waited for is there.
_GOES_ON = (events.Resumed, events.MicroBatchStarted, events.ConnectorIdle)


class EventLog:
    """Tells events to the standard logging hierarchy, repetitions of a waiting connector only once.

    That it goes on is told once after that, and not without it. That connectors take turns is told by the first
    one that waits for others. A connector that fails with its task does not repeat the task's reason.

    May be told from any thread: the events of one connector come from one at a time.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._waiting: dict[str, str] = {}
        self._takes_turns = False
        self._told = LoggedReasons()

    def __call__(self, event: Event) -> None:
        """Log *event*; a healthy idle connector is told at debug level only."""
        if isinstance(event, events.Waiting):
            said = self._waiting.get(event.connector)
            self._waiting[event.connector] = event.reason
            if said == event.reason:
                return
        elif isinstance(event, events.Queued):
            if self._takes_turns:
                return
            self._takes_turns = True
        elif isinstance(event, _GOES_ON):
            if self._waiting.pop(event.connector, None) is not None:
                self._write(events.Resumed(connector=event.connector))
            if isinstance(event, events.Resumed):
                return
        self._write(self._told.shortened(event))

    def _write(self, event: Event) -> None:
        level, words = _LINES[type(event)]
        if isinstance(event, events.MicroBatchEnded) and not event.brought_anything():
            level = logging.DEBUG
        if not self._logger.isEnabledFor(level):
            return
        fields = {
            field.name: getattr(event, field.name)
            for field in dataclasses.fields(event)
            if field.repr and getattr(event, field.name) is not None
        }
        self._logger.log(level, "%s", _sentence(words, fields), extra={**fields, WORDS: words})


def _sentence(words: str, fields: Mapping[str, object]) -> str:
    """All of a line in its message, for programs whose logging shows nothing else."""
    reason, trace = fields.get("reason"), fields.get("trace")
    others = ", ".join(f"{key}={fields[key]}" for key in fields if key not in ("reason", "trace"))
    told = f"{words} ({others})" + (f": {reason}" if reason else "")
    return f"{told}\n{trace}" if trace else told


def configure_logging(
    level: str = "INFO", *, as_json: bool = False, stream: TextIO | None = None
) -> None:
    """Send all log records of this program to *stream* (default: stderr), once, in one form.

    Called by the command line, before anything is started; replaces the root logger's handlers.
    """
    root = logging.getLogger()
    root.setLevel(level)
    root.handlers[:] = [FormHandler(LogForm(level=root.level, as_json=as_json), stream)]
