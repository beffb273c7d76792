"""What the driver of a mirror does at intervals, on a thread of its own."""

from __future__ import annotations

from functools import partial
from itertools import count

import pytest

from headrace.connect.errors import RetriableError
from headrace.mirror.scheduler import Scheduled, Scheduler
from headrace.observe.log_format import naming_in_logs, worker_in_logs
from waiting import until


def test_its_thread_logs_for_the_flow_of_the_thread_that_made_it():
    """Other flows of the process have connectors of the same name."""
    flows = list[str | None]()
    job = Scheduled("the sync", lambda: flows.append(worker_in_logs()))
    with naming_in_logs("A->B"):
        scheduler = Scheduler("m", [job])
    scheduler.start()
    until(lambda: flows)

    assert ["A->B"] == flows


def test_a_job_that_fails_is_told_at_first_and_at_its_end(caplog: pytest.LogCaptureFixture):
    """Not with each of the sentences that an outage has; one that is still new after ten minutes is told."""
    caplog.set_level("INFO")
    left = list(range(9, 0, -1))

    def job() -> None:
        if left:
            raise RetriableError(f"no answer in place {left.pop()}")

    # Longer than a pause each time that it is asked, which is four times for each try.
    clock = partial(next, count(0.0, 61.0))
    scheduler = Scheduler("m", [Scheduled("the sync", job)], clock=clock)
    scheduler.start()
    until(lambda: "after all" in caplog.text)

    told = [each.getMessage() for each in caplog.records]
    failed = "Connector m: the sync failed, and is tried again: no answer in place"
    assert [f"{failed} 1", f"{failed} 4", f"{failed} 7"] == told[:-1]
    assert "Connector m: the sync succeeded after all" == told[-1]


def test_an_error_that_nobody_expects_is_told_once_with_its_trace(
    caplog: pytest.LogCaptureFixture,
):
    """As often as any other."""
    caplog.set_level("INFO")
    left = [ValueError("none of ours")] * 5

    def job() -> None:
        if left:
            raise left.pop()

    clock = partial(next, count(0.0, 61.0))
    scheduler = Scheduler("m", [Scheduled("the sync", job)], clock=clock)
    scheduler.start()
    until(lambda: "after all" in caplog.text)

    first, last = caplog.records
    told = "Connector m: the sync failed, and is tried again: none of ours"
    assert (told, True) == (first.getMessage(), first.exc_info is not None)
    assert "Connector m: the sync succeeded after all" == last.getMessage()
