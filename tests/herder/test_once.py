"""A herder of given connectors, which run until everything has been read, or until they are stopped."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

from doubles.puppets import PLANNED
from headrace.connect.errors import ConnectError, RetriableError
from headrace.herder.worker_herder import WorkerHerder
from headrace.runtime.runs import Run
from headrace.storage.protocols import StoredConnector
from herder.stage import Stage
from waiting import until

PATIENCE_SECONDS = 5.0


def connector(name: str = "c", **settings: str) -> StoredConnector:
    """A connector whose configuration has been validated."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return StoredConnector(name=name, config={"name": name, "connector.class": PLANNED, **given})


@contextmanager
def running(stage: Stage, connectors: Sequence[StoredConnector]) -> Iterator[WorkerHerder]:
    """A herder that runs *connectors* once, closed at the end."""
    stage.once = True
    stage.kafka.set()
    herder = stage.new_herder()
    try:
        herder.start_only(connectors)
        herder.ready()
        yield herder
    finally:
        herder.close()


def end_of(stage: Stage, name: str, failure: Exception | None = None) -> None:
    """Let the run of that connector end by itself."""
    until(lambda: name in [each.spec.name for each in stage.running])
    stage.the_run(name).end(failure)


def test_it_ends_when_every_connector_has() -> None:
    """None of them is started again."""
    stage = Stage()
    with running(stage, [connector("c"), connector("d")]) as herder:
        end_of(stage, "c")
        end_of(stage, "d")

        assert ({}, []) == (herder.wait_for_end(), stage.running)


def test_failures_are_returned_when_all_have_ended() -> None:
    """A failed connector is not restarted, whatever its configuration says, and others continue."""
    stage, failure = Stage(), ConnectError("no")
    failing = connector("c", headrace_restart_max_attempts="3", headrace_restart_backoff_ms="1")
    with running(stage, [failing, connector("d")]) as herder:
        end_of(stage, "c", failure)
        end_of(stage, "d")

        assert {"c": failure} == herder.wait_for_end()


def test_one_that_cannot_be_started_is_a_failure() -> None:
    """As any other, with its reason."""
    with running(Stage(), [connector(broken="x")]) as herder:
        [(name, failure)] = herder.wait_for_end().items()

    assert ("c", True) == (name, "it cannot be made" in str(failure))


@pytest.mark.parametrize("target", ["RUNNING", "PAUSED", "STOPPED"])
def test_a_given_connector_replaces_the_stored_one(target: str) -> None:
    """Its configuration and its target state: it was given in order to run."""
    stage, given = Stage(), connector(topic="new")
    stage.configs.put_connector(
        StoredConnector(name="c", config={**given.config, "topic": "old"}, target_state=target)
    )
    with running(stage, [given]) as herder:
        until(lambda: bool(stage.running))
        assert "new" == stage.the_run().spec.props["topic"]
        assert given == stage.configs.connector("c")
        stage.the_run().end()
        herder.wait_for_end()


def test_other_stored_connectors_do_not_run() -> None:
    """They stay as they are stored."""
    stage, other = Stage(), connector("other")
    stage.configs.put_connector(other)
    with running(stage, [connector("c")]) as herder:
        end_of(stage, "c")

        assert {} == herder.wait_for_end()
        assert other == stage.configs.connector("other")
        assert "UNASSIGNED" == stage.states("other")[None]


def test_nothing_is_stored_before_kafka_has_been_reached() -> None:
    """The reason is raised as it was."""
    stage = Stage(kafka_fails=ConnectError("Kafka was not reached"), once=True)
    stage.kafka.set()
    herder = stage.new_herder()
    try:
        with pytest.raises(ConnectError, match="Kafka was not reached"):
            herder.start_only([connector()])
    finally:
        herder.close()

    assert {} == dict(stage.configs.connectors())


def test_a_late_kafka_is_tried_again_and_then_connectors_run() -> None:
    """Meanwhile it is known why they do not."""
    late = RetriableError("Kafka was not reached")
    stage = Stage(kafka_fails=late, retries_start=True)
    stage.configs.put_connector(connector())
    with stage.herder(kafka=False) as herder:
        stage.kafka.set()
        until(lambda: herder.delay is late)
        assert "Kafka was not reached" in herder.health().message
        assert herder.failure is None
        stage.kafka_fails = None
        until(lambda: bool(stage.running))
        assert herder.delay is None


def test_a_late_kafka_that_is_given_up_has_failed() -> None:
    """With the reason that it had."""
    late = RetriableError("Kafka was not reached")
    stage = Stage(kafka_fails=late, retries_start=True)
    with stage.herder(kafka=False) as herder:
        herder.give_up()
        assert herder.failure is None
        stage.kafka.set()
        until(lambda: herder.delay is late)
        herder.give_up()
        assert late is herder.failure


def test_a_run_that_does_not_end_has_its_grace_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the wait stops everything; the close after it does not wait as long again."""
    stops = list[list[str]]()

    def stop_all(runs: Sequence[Run], *, grace: float) -> None:
        stops.append([type(each).__name__ for each in runs])
        assert PATIENCE_SECONDS == grace

    monkeypatch.setattr("headrace.herder.worker_herder.stop_all", stop_all)
    stage = Stage(holds=True, grace=PATIENCE_SECONDS)
    with running(stage, [connector()]) as herder:
        until(lambda: bool(stage.running))
        herder.ask_to_stop()
        herder.wait_for_end()

    assert [["FakeRun"]] == stops


def test_a_failure_while_it_stops_is_returned() -> None:
    """What a connector could not commit at its end is not passed over."""
    stage = Stage(holds=True, grace=PATIENCE_SECONDS)
    with running(stage, [connector()]) as herder:
        until(lambda: bool(stage.running))
        run, failure = stage.the_run(), ConnectError("no")
        threading.Thread(target=lambda: (run.asked.wait(), run.end(failure)), daemon=True).start()
        herder.ask_to_stop()

        assert {"c": failure} == herder.wait_for_end()


def wait_interrupted_at(step: int) -> bool:
    """Let a signal's handler ask for the stop at that step of the wait; whether the wait came to its end.

    Python runs handlers between any two steps of the thread that is interrupted, whatever it holds then.
    """
    with running(Stage(), [connector()]) as herder:
        left = [step]

        def trace(frame: FrameType, event: str, _: object) -> Any:  # noqa: ANN401 (as settrace has it)
            if event == "line":
                left[0] -= 1
                if left[0] == 0:
                    herder.ask_to_stop()
            return trace

        def wait() -> None:
            sys.settrace(trace)
            try:
                herder.wait_for_end()
            finally:
                sys.settrace(None)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(PATIENCE_SECONDS)
        return not thread.is_alive()


def test_a_stop_may_be_asked_for_wherever_the_wait_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A lock that the interrupted thread holds would never be free for its own handler."""
    monkeypatch.setattr("headrace.herder.worker_herder._LOOK_SECONDS", 0.001)
    for step in range(1, 60):
        assert wait_interrupted_at(step), step


def test_a_stop_that_comes_before_the_wait_counts() -> None:
    """A signal may be early."""
    with running(Stage(), [connector()]) as herder:
        herder.ask_to_stop()

        assert {} == herder.wait_for_end()


def test_a_flow_ends_with_its_first_failure_that_is_final() -> None:
    """One that is restarted is none; the others are stopped."""
    stage, failure = Stage(), ConnectError("no")
    stage.kafka.set()
    herder = stage.new_herder()
    again = connector("c", headrace_restart_max_attempts="1", headrace_restart_backoff_ms="1")
    try:
        herder.start_only([again, connector("d")])
        herder.ready()
        end_of(stage, "c", failure)
        end_of(stage, "c", failure)

        assert {"c": failure} == herder.wait_for_failure()
        assert [] == stage.running
    finally:
        herder.close()


def test_one_that_fails_in_part_ends_no_other_and_is_a_failure_at_the_end() -> None:
    """Its tasks run on; the exit code shows it all the same."""
    stage, failure = Stage(), ConnectError("no")
    stage.kafka.set()
    herder = stage.new_herder()
    try:
        herder.start_only([connector("c"), connector("d")])
        herder.ready()
        until(lambda: len(stage.running) == 2)
        stage.the_run("c").failure = failure
        assert ["c"] == herder.failed()
        assert 2 == len(stage.running)
        herder.ask_to_stop()

        assert {"c": failure} == herder.wait_for_failure()
    finally:
        herder.close()


def test_one_that_cannot_be_started_ends_the_others() -> None:
    """As one that fails later."""
    stage = Stage()
    stage.kafka.set()
    herder = stage.new_herder()
    try:
        herder.start_only([connector(broken="x"), connector("d")])
        herder.ready()
        assert ["c"] == list(herder.wait_for_failure())
    finally:
        herder.close()
