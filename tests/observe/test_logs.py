"""Events as log lines."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from typing import get_args

import pytest

from headrace.observe import logs
from headrace.observe.events import (
    ConnectorIdle,
    Event,
    MicroBatchEnded,
    MicroBatchStarted,
    Replanned,
    SlotClaimed,
    SlotProgress,
    TaskFailed,
    Waiting,
    told_to,
)
from headrace.observe.logs import EventLog, configure_logging

_WAITING = Waiting(connector="c", reason="no slots")
Lines = Callable[[], list[str]]


@pytest.fixture(autouse=True)
def root_logger_kept() -> Iterator[None]:
    """The root logger is as it was after each test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level


@pytest.fixture(params=[False, True], ids=["text", "json"])
def logged_lines(request: pytest.FixtureRequest) -> Lines:
    """What has been logged so far, in either form."""
    stream = io.StringIO()
    configure_logging(as_json=request.param, stream=stream)
    return lambda: stream.getvalue().splitlines()


def test_a_healthy_idle_system_logs_nothing(logged_lines: Lines):
    """Neither looking for work nor working at it is news."""
    tell = EventLog()
    for event in (
        ConnectorIdle(connector="c"),
        MicroBatchStarted(connector="c", slots=1),
        SlotClaimed(connector="c", task=0, pid=1, host="h"),
        SlotProgress(connector="c", records=1, bytes=1, committed_records=0, committed_bytes=0),
    ):
        tell(event)
    assert [] == logged_lines()


def test_waiting_is_told_once_per_reason(logged_lines: Lines):
    """The same reason again is silent until work went on in between."""
    tell = EventLog()
    other = Waiting(connector="c", reason="no broker")
    for event in (_WAITING, _WAITING, other, ConnectorIdle(connector="c"), other):
        tell(event)
    assert 3 == len(logged_lines())


def test_a_line_has_words_and_fields():
    """People read words first, programs find every field."""
    text, structured = io.StringIO(), io.StringIO()
    for stream, as_json in ((text, False), (structured, True)):
        configure_logging(as_json=as_json, stream=stream)
        EventLog()(MicroBatchEnded(connector="c", committed_records=5))
    assert "[info     ] A micro-batch has ended" in text.getvalue()
    assert "connector=c" in text.getvalue()
    line = json.loads(structured.getvalue())
    assert ("A micro-batch has ended", "c", 5) == (
        line["message"],
        line["connector"],
        line["committed_records"],
    )


def test_a_traceback_is_readable():
    """The trace of a failed task keeps its lines."""
    stream = io.StringIO()
    configure_logging(stream=stream)
    EventLog()(TaskFailed(connector="c", task=0, reason="bad", trace="Traceback:\n  line 1"))
    assert "  line 1" in stream.getvalue().splitlines()


def test_other_loggers_come_out_in_the_same_form(logged_lines: Lines):
    """Plain records of any logger are lines like events."""
    EventLog()(Replanned(connector="c", reason="refused"))
    logging.getLogger("elsewhere").warning("Something %s", "happened")
    assert 2 == len(logged_lines())
    assert "Something happened" in logged_lines()[-1]


def test_every_event_has_a_line():
    """Whatever is told can be logged."""
    assert set(get_args(Event)) == set(logs._LINES)


def test_listeners_are_told_in_order():
    """One event goes to all."""
    heard: list[tuple[str, Event]] = []
    tell = told_to(lambda e: heard.append(("first", e)), lambda e: heard.append(("second", e)))
    tell(_WAITING)
    assert [("first", _WAITING), ("second", _WAITING)] == heard
