"""Files that are too young to be finished: a plan says when it wants to be asked again, and does not wait."""

from __future__ import annotations

import gzip
import logging
import os
import time
from pathlib import Path

import pytest

from headrace.connect import SourceOffset, SourcePartition, TaskFailedError
from headrace.connect.connector import Plan, PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.testing.task_runs import LocalRun, StoredOffsets
from waiting import until

Stored = dict[SourcePartition, SourceOffset]


class Clock:
    """A clock that a test moves; at first *age* seconds after *path* was written."""

    def __init__(self, path: Path, *, age: float) -> None:
        self.now = path.stat().st_mtime + age
        self.waited = 0.0

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        self.waited += seconds


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A text file's path."""
    return tmp_path / "a.txt"


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    """A packed file of one line."""
    made = tmp_path / "a.txt.gz"
    made.write_bytes(gzip.compress(b"one\n"))
    return made


def planned(path: Path, clock: Clock, stored: Stored, **props: str) -> Plan:
    """A plan of a connector that reads *path*."""
    connector = FilesConnector(clock=lambda: clock.now)
    named = {key.replace("_", "."): value for key, value in props.items()}
    connector.start({"files.path": str(path), "topic": "t", **named})
    return connector.plan(PlanRequest(slots=1, offsets=StoredOffsets(stored)))


def run(path: Path, clock: Clock, stored: Stored, **props: str) -> list[str]:
    """The values of a run that waits as long as plans want."""
    named = {key.replace("_", "."): value for key, value in props.items()}
    given = {"files.path": str(path), "topic": "t", **named}
    connector = FilesConnector(clock=lambda: clock.now)
    return [each.value for each in LocalRun(connector, given, stored, wait=clock.wait).until_idle()]


def test_a_young_last_line_waits(path: Path) -> None:
    """Whole lines of a young file are read at once, the rest when it is old enough."""
    path.write_text("one\ntw")
    clock = Clock(path, age=0.5)
    stored: Stored = {}

    assert ["one", "tw"] == run(path, clock, stored)

    assert clock.waited == pytest.approx(1.5, abs=0.05)
    assert next(iter(stored.values()))["done"]


@pytest.mark.parametrize("min_age", [2000, 3_600_000])
def test_a_young_packed_file_waits_as_long_as_it_takes(packed: Path, min_age: int) -> None:
    """Seconds or an hour: the plan says it, and itself takes no time."""
    clock = Clock(packed, age=0.0)

    plan = planned(packed, clock, {}, files_min_age_ms=str(min_age))

    assert not plan.has_work()
    assert plan.ask_again_after == pytest.approx(min_age / 1000, abs=0.05)
    assert ["one"] == run(packed, clock, {}, files_min_age_ms=str(min_age))


def test_the_youngest_file_does_not_hold_up_the_others(packed: Path) -> None:
    """The plan wants to be asked when the first of them is old enough."""
    younger = packed.with_name("b.txt.gz")
    until(lambda: time.time() > packed.stat().st_ctime + 0.2)
    younger.write_bytes(packed.read_bytes())
    clock = Clock(packed, age=0.5)

    assert planned(packed.parent, clock, {}).ask_again_after == pytest.approx(1.5, abs=0.05)


def test_a_copy_that_keeps_the_old_time_is_as_young_as_it_is(packed: Path) -> None:
    """Its time of modification may be set while it is still written, that of its change may not."""
    os.utime(packed, (1, 1))
    clock = Clock(packed, age=0.0)
    clock.now = packed.stat().st_ctime + 0.5

    plan = planned(packed, clock, {})

    assert not plan.has_work()
    assert plan.ask_again_after == pytest.approx(1.5, abs=0.05)


def test_a_file_written_on_under_its_old_time_is_looked_at_again(path: Path) -> None:
    """Neither its size nor its time of modification tells that it is another one."""
    path.write_text("one\n")
    os.utime(path, (1, 1))
    clock = Clock(path, age=0.0)
    clock.now = path.stat().st_ctime + 9.0
    stored: Stored = {}
    connector = FilesConnector(clock=lambda: clock.now)
    run(path, clock, stored)
    connector.start({"files.path": str(path), "topic": "t"})
    request = PlanRequest(slots=1, offsets=StoredOffsets(stored))
    assert not connector.plan(request).has_work()
    before = path.stat().st_ctime_ns

    path.write_text("ONE\n")
    os.utime(path, (1, 1))
    until(lambda: touched_again(path, before))

    with pytest.raises(TaskFailedError, match="replaced"):
        connector.plan(request)


def touched_again(path: Path, before: int) -> bool:
    """Whether the system's clock has gone on; touches the file where it has not."""
    os.utime(path, (1, 1))
    return path.stat().st_ctime_ns > before


def test_nothing_young_means_nothing_to_wait_for(path: Path) -> None:
    """Neither does a young file whose lines are all complete and read."""
    path.write_text("one\n")
    clock = Clock(path, age=0.5)
    stored: Stored = {}

    assert ["one"] == run(path, clock, stored)

    assert planned(path, clock, stored).ask_again_after is None
    assert clock.waited == 0


def test_a_followed_files_last_line_is_not_waited_for(path: Path) -> None:
    """It waits for its line end, however old it gets, so a run that ends must not wait for it."""
    path.write_text("one\ntw")
    clock = Clock(path, age=0.5)
    stored: Stored = {}

    assert ["one"] == run(path, clock, stored, files_follow="true")
    assert clock.waited == 0


def test_a_replacement_that_is_too_young_is_waited_for(packed: Path) -> None:
    """The one that was read before is done; the new one is not."""
    stored: Stored = {}
    clock = Clock(packed, age=9.0)
    run(packed, clock, stored)
    packed.write_bytes(gzip.compress(b"another\n"))
    clock = Clock(packed, age=0.5)

    assert ["another"] == run(packed, clock, stored, files_changed="reread")
    assert clock.waited == pytest.approx(1.5, abs=0.05)


def test_a_change_in_the_future_is_told(packed: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A clock is wrong somewhere, and the wait may be long."""
    clock = Clock(packed, age=-600.0)

    with caplog.at_level(logging.WARNING):
        plan = planned(packed, clock, {})

    assert plan.ask_again_after == pytest.approx(602, abs=0.05)
    assert "changed in the future" in caplog.text
