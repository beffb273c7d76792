"""Slots that come back after others have taken over their work write nothing."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from doubles.process_engine import ProcessEngine
from end_to_end.held_task import HOLD
from end_to_end.scene import SENDERS, OutOfReach, Scene, is_claim
from headrace.connect.errors import RetriableError
from headrace.observe.events import Replanned, SlotClaimed
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill]

HERE = Path(__file__).parent.parent


def scene_of(bootstrap: str, folder: Path, name: str) -> Scene:
    """A scene whose leases are short and whose driver cannot end processes."""
    return Scene(
        bootstrap,
        folder,
        f"{name}-{os.getpid()}",
        worker={"headrace.lease.ms": "2000"},
        processes=OutOfReach(),
    )


@pytest.mark.slow
@pytest.mark.parametrize("sender", SENDERS)
def test_a_stopped_slot_that_wakes_after_it_was_replaced_writes_nothing(
    bootstrap: str, tmp_path: Path, processes: ProcessEngine, sender: str
) -> None:
    """SIGSTOP in the middle of a transaction, SIGCONT when its successor is at work."""
    scene = scene_of(bootstrap, tmp_path, f"zombie-{sender}")
    scene.connector["headrace.sender"] = sender
    expected = scene.write()

    with scene.running(processes) as wait:
        scene.witness.wait_for(is_claim)
        zombie = scene.witness.pids()[0]
        threading.Event().wait(0.6)
        os.kill(zombie, signal.SIGSTOP)
        scene.witness.wait_for(lambda event: isinstance(event, Replanned))
        scene.witness.wait_for(lambda event: is_claim(event) and event.pid != zombie)  # type: ignore[union-attr]
        os.kill(zombie, signal.SIGCONT)
        failures = wait()

    assert {} == failures
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict


@pytest.mark.slow
def test_a_slot_held_before_its_producer_wakes_into_a_newer_generation_and_writes_nothing(
    bootstrap: str, tmp_path: Path, processes: ProcessEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It could not be fenced, because it had no producer yet; its token is what stops it."""
    hold = tmp_path / "hold"
    hold.mkdir()
    (hold / "wanted").touch()
    monkeypatch.setenv(HOLD, str(hold))
    scene = scene_of(bootstrap, tmp_path, "held")
    scene.worker["plugin.modules"] = "end_to_end.held_task"
    scene.connector["connector.class"] = "end_to_end.held_task:HeldConnector"
    scene.connector["headrace.sender"] = "wire"
    # One task, so that both generations write under one transactional id.
    scene.connector["tasks.max"] = "1"
    expected = scene.write(files=1)

    with scene.running(processes) as wait:
        until(lambda: list(hold.glob("held-*")))
        zombie = int(next(hold.glob("held-*")).name.removeprefix("held-"))
        os.kill(zombie, signal.SIGSTOP)
        scene.witness.wait_for(lambda event: isinstance(event, Replanned))
        claims = len(scene.witness.pids())
        until(lambda: len(scene.witness.pids()) > claims)
        (hold / "released").touch()
        os.kill(zombie, signal.SIGCONT)
        failures = wait()

    assert {} == failures
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict


class TwiceEngine(ProcessEngine):
    """Delivers every plan twice, as a client of Spark Connect may after a lost answer."""

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Run each ticket in two processes at once."""
        super().run([*tickets, *tickets])


def test_a_plan_that_is_delivered_twice_runs_once(bootstrap: str, tmp_path: Path) -> None:
    """The second copy of each slot finds its token claimed."""
    engine = TwiceEngine(slots=2, python_path=[str(HERE)])
    scene = Scene(bootstrap, tmp_path, f"twice-{os.getpid()}")
    scene.connector["headrace.max.records.per.second"] = "1000000"
    expected = scene.write(records=5_000)

    failures = scene.run_once(engine)
    engine.close()

    assert {} == failures
    assert 2 == len(scene.witness.pids())
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict


class RetryingEngine(ProcessEngine):
    """Runs a slot again when its process died, as ``local[N,F]`` and clusters do."""

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Try the whole job a second time with the same tokens."""
        try:
            super().run(tickets)
        except RetriableError:
            super().run(tickets)


def test_a_second_attempt_of_a_slot_does_not_write_what_the_first_one_wrote(
    bootstrap: str, tmp_path: Path
) -> None:
    """It finds the token claimed and returns; the work is planned again from what was committed."""
    engine = RetryingEngine(slots=2, python_path=[str(HERE)])
    scene = Scene(bootstrap, tmp_path, f"attempt-{os.getpid()}")
    scene.connector["headrace.sender"] = "wire"
    expected = scene.write()

    with scene.running(engine) as wait:
        scene.witness.wait_for(is_claim)
        threading.Event().wait(0.7)
        os.kill(scene.witness.pids()[0], signal.SIGKILL)
        failures = wait()
    engine.close()

    assert {} == failures
    claims = [event for event in scene.witness.events if isinstance(event, SlotClaimed)]
    assert len(claims) == len({event.pid for event in claims})
    verdict = scene.verdict(expected)
    assert verdict.exactly_once, verdict
