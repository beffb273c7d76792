"""Ending a slot's process on the driver's own machine."""

from __future__ import annotations

import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from doubles.puppets import SOURCE
from headrace.connect.connector import Plan
from headrace.connect.task import Split
from headrace.pids import identity_of
from headrace.runtime.assignment import planned_works
from headrace.runtime.engine import LocalProcesses
from headrace.runtime.micro_batch import SlotState
from headrace.runtime.services import Timing
from runtime.desk import SPEC


def worker(*words: str) -> subprocess.Popen[bytes]:
    """A process that waits, with *words* in its command line."""
    command = [sys.executable, "-c", "print(flush=True); input()", *words]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    return child


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like one of Spark's workers."""
    with worker("pyspark.daemon") as started:
        yield started
        started.kill()


def slot_in(child: subprocess.Popen[bytes]) -> SlotState:
    """A slot that was claimed from *child*."""
    plan = Plan(shares=[[Split(partition=SOURCE)]])
    (work,) = planned_works(SPEC, plan, group_id="g", timing=Timing())
    return SlotState(
        work=work,
        token="t",
        pid=child.pid,
        identity=identity_of(child.pid),
        host=platform.node(),
    )


def test_the_process_that_claimed_is_ended(child: subprocess.Popen[bytes]) -> None:
    """It runs until then, and not after."""
    slot = slot_in(child)
    assert LocalProcesses().running(slot)

    LocalProcesses().end(slot)

    assert -signal.SIGKILL == child.wait(10)
    assert not LocalProcesses().running(slot)


@pytest.mark.parametrize(
    "other", [{"identity": "of an earlier process"}, {"identity": None}, {"host": "elsewhere"}]
)
def test_another_process_with_the_pid_is_left_alone(
    child: subprocess.Popen[bytes], other: dict[str, str | None]
) -> None:
    """Pids are given out again, to other workers of Spark, too."""
    slot = replace(slot_in(child), **other)  # type: ignore[arg-type]

    LocalProcesses().end(slot)

    assert not LocalProcesses().running(slot)
    assert child.poll() is None


def test_what_spark_has_not_started_is_left_alone() -> None:
    """Slots may run in threads of this very process."""
    with worker() as child:
        slot = slot_in(child)
        LocalProcesses().end(slot)

        assert not LocalProcesses().running(slot)
        assert identity_of(child.pid) == slot.identity
        child.kill()
