"""Events as log lines, each reason once."""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Callable, Collection, Mapping
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
    events.Rebalancing: (logging.DEBUG, "The worker joins its group once more"),
    events.Rebalanced: (logging.INFO, "The group has been rebalanced"),
}
# An outage is met in several places, and each has a sentence of its own.
_AT_ONCE: Final = 3
_QUIET_SECONDS: Final = 60.0
_REMIND_SECONDS: Final = 600.0
# Events that end a wait: there is work, or there is none.
_ENDS_WAIT = (events.Resumed, events.MicroBatchStarted, events.ConnectorIdle)

_ENDS_SHARED = (*_ENDS_WAIT, events.ConnectorStopped, events.ConnectorFailed)


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


class _Interruptions:
    """Which interruptions of one connector are logged: three at once, after that one a minute.

    The same reason is logged again when work went on in between, or after ten minutes.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._left, self._counted_at = float(_AT_ONCE), clock()
        self._told: dict[Event, float] = {}
        self._is_waiting = False

    def is_told(self, event: Event) -> bool:
        """Whether *event*, a wait or a new plan, is to be logged; it counts as logged then."""
        now = self._clock()
        if event in self._told and now < self._told[event] + _REMIND_SECONDS:
            return False
        earned = (now - self._counted_at) / _QUIET_SECONDS
        self._left, self._counted_at = min(_AT_ONCE, self._left + earned), now
        if self._left < 1:
            return False
        self._left -= 1
        self._told[event] = now
        self._is_waiting |= isinstance(event, events.Waiting)
        return True

    def end(self) -> bool:
        """Note that work goes on; whether that is to be logged, as a wait was."""
        was_waiting, self._is_waiting = self._is_waiting, False
        self._told.clear()
        return was_waiting


class EventLog:
    """Logs events to ``logging``: why a connector waits or plans again at first, and then rarely while that goes on.

    Its resumption is logged once after a wait that was logged. A wait for what all connectors of the worker wait for is logged
    for one of them. That connectors take turns is logged for the first one that waits for others. A connector that fails with its
    task does not repeat the task's reason. Micro-batches are logged at DEBUG, unless a record was bad: a connector has several a
    second as long as it runs. In a run that *has_end* they are logged at INFO, as what it has done, but for those of connectors
    *in_background*.

    Any thread may call; the events of one connector come from one thread at a time.
    """

    def __init__(
        self,
        in_background: Collection[str] = (),
        *,
        has_end: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logging.getLogger(LOGGER)
        self._in_background = frozenset(in_background)
        self._has_end = has_end
        self._clock = clock
        self._interruptions: dict[str, _Interruptions] = {}
        self._takes_turns = False
        self._reasons = LoggedReasons()
        # Reasons of all connectors, each with the one whose wait for it was logged.
        self._shared: dict[str, str] = {}

    def __call__(self, event: Event) -> None:
        """Log *event*; an idle connector at DEBUG only."""
        if isinstance(event, _ENDS_SHARED):
            self._end_shared(event.connector)
        if isinstance(event, events.Waiting | events.Replanned):
            is_known = self._is_told_otherwise(event)
            if is_known or not self._interruptions_of(event.connector).is_told(event):
                return
        elif isinstance(event, events.Queued):
            if self._takes_turns:
                return
            self._takes_turns = True
        elif isinstance(event, _ENDS_WAIT):
            if self._interruptions_of(event.connector).end():
                self._write(events.Resumed(connector=event.connector))
            if isinstance(event, events.Resumed):
                return
        self._write(self._reasons.shortened(event))

    def _is_told_otherwise(self, event: events.Waiting | events.Replanned) -> bool:
        """By the wait of another connector, or by the one that follows."""
        if not event.is_shared:
            return False
        if isinstance(event, events.Replanned):
            return True
        return self._shared.setdefault(event.reason, event.connector) != event.connector

    def _end_shared(self, connector: str) -> None:
        for reason, told_of in list(self._shared.items()):
            if told_of == connector:
                self._shared.pop(reason, None)

    def _interruptions_of(self, connector: str) -> _Interruptions:
        return self._interruptions.setdefault(connector, _Interruptions(self._clock))

    def _level(self, event: Event) -> int:
        if isinstance(event, events.MicroBatchEnded):
            is_result = self._has_end and event.connector not in self._in_background
            if not (event.had_bad_records() or (is_result and event.brought_anything())):
                return logging.DEBUG
        return _LINES[type(event)][0]

    def _write(self, event: Event) -> None:
        level, words = self._level(event), _LINES[type(event)][1]
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
