"""Restarts of failed connectors without anybody's asking."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConnectorFencedError
from headrace.herder.requests import RestartRequest
from headrace.herder.restarts import LONGEST_SECONDS, AutomaticRestarts, RestartPolicy
from herder.stage import Stage, config
from waiting import until

THREE = {"name": "c", "connector.class": "x", "headrace.restart.max.attempts": "3"}


def test_pauses_grow_up_to_five_minutes_and_end() -> None:
    """Without attempts there is none at all."""
    policy = RestartPolicy(attempts=7, first_seconds=10)
    pauses = [policy.pause(failures) for failures in range(1, 9)]

    assert [10, 20, 40, 80, 160, 300, 300, None] == pauses
    assert RestartPolicy(attempts=0, first_seconds=1).pause(1) is None


def test_a_run_that_lasted_is_a_new_beginning() -> None:
    """So is a restart by somebody."""
    now = [0.0]
    restarts = AutomaticRestarts(lambda: now[0])
    pauses: list[float | None] = []
    for lasts in (1.0, 1.0, LONGEST_SECONDS + 1, 1.0):
        restarts.begins("c", THREE)
        now[0] += lasts
        pauses.append(restarts.pause_after_failure("c"))
    restarts.forget("c")
    restarts.begins("c", THREE)

    assert [10, 20, 10, 20] == pauses
    assert 10 == restarts.pause_after_failure("c")


def test_a_failed_connector_comes_back_so_often(caplog: pytest.LogCaptureFixture) -> None:
    """And then stays failed until somebody restarts it, which is told."""
    stage = Stage()
    keys = {"headrace.restart.max.attempts": "2", "headrace.restart.backoff.ms": "1"}
    with stage.herder() as herder:
        herder.put_config("c", {**config(), **keys})
        for _ in range(3):
            until(lambda: "RUNNING" == stage.states()[None] and len(stage.running) == 1)
            stage.the_run().end(ValueError("it broke"))
        until(lambda: herder.failed() == ["c"] and "FAILED" == stage.states()[None])
        last = "after the last automatic restart (headrace.restart.max.attempts is 2)"
        until(lambda: last in caplog.text)
        assert 2 == caplog.text.count("is restarted in")

        herder.restart(RestartRequest(name="c"))
        until(lambda: "RUNNING" == stage.states()[None])


def test_a_connector_that_another_worker_has_taken_over_stays_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both would take it from each other forever."""
    stage = Stage()
    keys = {"headrace.restart.max.attempts": "2", "headrace.restart.backoff.ms": "1"}
    with stage.herder() as herder:
        herder.put_config("c", {**config(), **keys})
        stage.the_run().end(ConnectorFencedError("Another worker has taken over connector c."))
        until(lambda: herder.failed() == ["c"] and "FAILED" == stage.states()[None])
        # Answered after the failure has been dealt with.
        herder._begun()

        assert [] == stage.running
        assert "is restarted in" not in caplog.text


def test_a_connector_that_was_stopped_meanwhile_stays_so() -> None:
    """Nothing comes back behind somebody's back."""
    stage = Stage()
    keys = {"headrace.restart.max.attempts": "2", "headrace.restart.backoff.ms": "50"}
    with stage.herder() as herder:
        herder.put_config("c", {**config(), **keys})
        run = stage.the_run()
        run.end(ValueError("it broke"))
        herder.stop("c")
        herder._reconciler._restart_if_failed("c", 1)

        assert {None: "STOPPED"} == stage.states()
        assert [] == stage.running
