"""A reason that was logged for a task is not logged again for its connector."""

from __future__ import annotations

import logging

import pytest

from headrace.observe.event_log import EventLog
from headrace.observe.events import ConnectorFailed, TaskFailed

REASON = "Line 7 of in/a.log is no JSON."


def test_the_reason_of_a_task_is_reported_once(caplog: pytest.LogCaptureFixture):
    """The line of the connector names the task, and leaves the rest to the line above."""
    log_event = EventLog()
    log_event(TaskFailed(connector="c", task=0, reason=REASON))
    log_event(TaskFailed(connector="c", task=1, reason="Something else."))
    log_event(ConnectorFailed(connector="c", reason=f"Task c-0 failed: {REASON}"))

    task, _, connector = (vars(record)["reason"] for record in caplog.records)
    assert REASON == task
    assert "Task c-0 failed, as logged above" == connector


def test_another_reason_is_reported_in_full(caplog: pytest.LogCaptureFixture):
    """Another connector's task, or an earlier life of the same connector, has logged nothing of it."""
    log_event = EventLog()
    failed = ConnectorFailed(connector="c", reason=f"Task c-0 failed: {REASON}")
    with caplog.at_level(logging.ERROR):
        log_event(TaskFailed(connector="d", task=0, reason=REASON))
        log_event(failed)
        log_event(TaskFailed(connector="c", task=0, reason=REASON))
        log_event(failed)
        log_event(failed)

    reasons = [vars(record)["reason"] for record in caplog.records]
    assert [
        REASON,
        failed.reason,
        REASON,
        "Task c-0 failed, as logged above",
        failed.reason,
    ] == reasons
