"""Events as log lines, each reason once."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from headrace.observe import events
from headrace.observe.events import ConnectorFailed, Event, TaskFailed
from headrace.observe.log_format import WORDS

LOGGER: Final = "headrace.events"
"""The name of the logger of events."""
_LINES: Mapping[type[Event], tuple[int, str]] = {
    events.ConnectorStarted: (logging.INFO, "The connector runs"),
    events.ConnectorStopped: (logging.INFO, "The connector has stopped"),
    events.ConnectorFailed: (logging.ERROR, "The connector has failed"),
    events.ConnectorFailedInPart: (logging.ERROR, "A part of the source is not read"),
    events.ConnectorRecovered: (logging.INFO, "All of the source is read again"),
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
        "All slots are in use: connectors with work take turns from now on",
    ),
    events.Resumed: (logging.INFO, "The connector resumes"),
    events.TopicsWritten: (logging.DEBUG, "Records are committed in topics"),
    events.Replanned: (logging.WARNING, "The work is planned again"),
    events.TaskFailed: (logging.ERROR, "A task has failed"),
}
# Events that end a wait: there is work, or there is none.
_ENDS_WAIT = (events.Resumed, events.MicroBatchStarted, events.ConnectorIdle)


class LoggedReasons:
    """Remembers why tasks failed until their connector has failed. One per listener."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[str]] = {}

    def shortened(self, event: Event) -> Event:
        """*event*, without a reason that was already logged for one of the connector's tasks."""
        if isinstance(event, TaskFailed) and event.reason:
            self._reasons.setdefault(event.connector, []).append(event.reason)
        if not isinstance(event, ConnectorFailed):
            return event
        for logged in self._reasons.pop(event.connector, []):
            if event.reason.endswith(f": {logged}"):
                return replace(
                    event, reason=f"{event.reason.removesuffix(f': {logged}')}, as logged above"
                )
        return event


class EventLog:
    """Logs events to ``logging``; repeated reasons of a waiting connector only once.

    Its resumption is logged once after a wait that was logged. That connectors take turns is logged for the first
    one that waits for others. A connector that fails with its task does not repeat the task's reason.

    Any thread may call; the events of one connector come from one thread at a time.
    """

    def __init__(self) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._waiting: dict[str, str] = {}
        self._takes_turns = False
        self._reasons = LoggedReasons()

    def __call__(self, event: Event) -> None:
        """Log *event*; an idle connector at DEBUG only."""
        if isinstance(event, events.Waiting):
            previous = self._waiting.get(event.connector)
            self._waiting[event.connector] = event.reason
            if previous == event.reason:
                return
        elif isinstance(event, events.Queued):
            if self._takes_turns:
                return
            self._takes_turns = True
        elif isinstance(event, _ENDS_WAIT):
            if self._waiting.pop(event.connector, None) is not None:
                self._write(events.Resumed(connector=event.connector))
            if isinstance(event, events.Resumed):
                return
        self._write(self._reasons.shortened(event))

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
    """The message with all fields, for programs whose logging shows only the message."""
    reason, trace = fields.get("reason"), fields.get("trace")
    others = ", ".join(f"{key}={fields[key]}" for key in fields if key not in ("reason", "trace"))
    sentence = f"{words} ({others})" + (f": {reason}" if reason else "")
    return f"{sentence}\n{trace}" if trace else sentence
