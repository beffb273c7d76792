"""Followed shares from end to end: slots that stay while anything comes, and what ends them."""

from __future__ import annotations

import itertools
import os
import signal
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from doubles.followed_files import FOLLOWED
from doubles.process_engine import ProcessEngine
from doubles.puppets import PLANNED, reading
from doubles.thread_engine import ThreadEngine
from end_to_end.live import Life, numbers
from headrace.connect.connector import Plan
from headrace.observe.events import (
    ConnectorIdle,
    MicroBatchEnded,
    MicroBatchStarted,
    Queued,
    Replanned,
    SlotClaimed,
    Waiting,
)
from headrace.runtime.engine import LocalProcesses
from waiting import until

pytestmark = pytest.mark.broker


class Growing:
    """Files in a folder; *lines* is all that was written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[str] = []
        self._numbers = itertools.count()
        folder.mkdir()

    def write(self, file: str, *, times: int = 1) -> str:
        """Append lines, each another one, to *file*, in which they are in order; the last one."""
        for _ in range(times):
            line = f"{file} {next(self._numbers)}"
            with (self.folder / file).open("a") as opened:
                opened.write(f"{line}\n")
            self.lines.append(line)
        return self.lines[-1]

    @contextmanager
    def growing(self, *files: str) -> Generator[None]:
        """Let *files* grow during the block."""
        ended = threading.Event()

        def grow() -> None:
            while not ended.wait(0.02):
                for each in files:
                    self.write(each)

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


@pytest.fixture
def files(tmp_path: Path) -> Growing:
    """The source."""
    return Growing(tmp_path / "in")


@pytest.fixture
def life(bootstrap: str, tmp_path: Path) -> Life:
    """A worker of two slots."""
    life = Life(bootstrap, tmp_path)
    life.worker = {"plugin.modules": "doubles.puppets,doubles.followed_files"}
    return life


def lacks_progress(life: Life) -> bool:
    """Whether a plan was said to bring nothing; a slow broker may be waited for."""
    return any("without committing" in each.reason for each in life.heard(Waiting))


def there(life: Life, topic: str, files: Growing) -> bool:
    """Whether all lines have come, each once, and those of a file in their order."""
    values = life.values(topic)
    assert not [value for value, count in Counter(values).items() if count > 1]
    for file in {line.split()[0] for line in values}:
        ours = [int(line.split()[1]) for line in values if line.startswith(f"{file} ")]
        assert sorted(ours) == ours
    return set(files.lines) == set(values)


def test_an_idle_slot_stays_while_its_sibling_is_busy(life: Life, files: Growing) -> None:
    """What comes for it later is read by the same job; when nothing comes for any of them, the job ends, and none runs."""
    life.engine = engine = ThreadEngine()
    files.write("busy")
    files.write("quiet")
    topic = life.add(FOLLOWED, folder=str(files.folder))

    with life.running():
        with files.growing("busy"):
            # Several times as long as an idle slot may linger, with reports of its idleness.
            until(lambda: len(life.values(topic)) > 70)
            late = files.write("quiet")
            until(lambda: late in life.values(topic))
            assert (1, []) == (engine.jobs, life.heard(MicroBatchEnded))
        until(lambda: there(life, topic, files))
        until(lambda: life.heard(MicroBatchEnded))
        idle = len(life.heard(ConnectorIdle))
        until(lambda: len(life.heard(ConnectorIdle)) > idle + 5)
        assert 1 == engine.jobs
        files.write("quiet")
        until(lambda: there(life, topic, files))

    assert 2 == engine.jobs
    assert ([], []) == (life.waits(), life.heard(Replanned))


def test_files_that_are_found_meanwhile_are_followed_soon(life: Life, files: Growing) -> None:
    """The connector requests a plan, for which the others end where they are, and nothing is read again."""
    files.write("first")
    topic = life.add(FOLLOWED, folder=str(files.folder))

    with life.running():
        with files.growing("first"):
            until(lambda: len(life.values(topic)) > 10)
            last = files.write("second", times=3)
            until(lambda: last in life.values(topic))
            assert len(life.heard(MicroBatchStarted)) >= 2
        until(lambda: there(life, topic, files))

    assert not lacks_progress(life)


def test_a_run_with_once_ends_when_there_is_nothing_more(life: Life, files: Growing) -> None:
    """The next one goes on behind it, also with a file that is new."""
    life.engine = engine = ThreadEngine()
    files.write("one", times=50)
    files.write("two", times=5)
    topic = life.add(FOLLOWED, folder=str(files.folder))

    assert {} == life.run_once()
    assert there(life, topic, files)
    files.write("two")
    files.write("three")
    assert {} == life.run_once()

    assert there(life, topic, files)
    assert 2 == engine.jobs


def test_others_get_the_slots_when_the_time_budget_is_over(life: Life, files: Growing) -> None:
    """Although there is always something to follow; then it goes on."""
    life.worker["headrace.batch.budget.ms"] = "300"
    files.write("busy")
    files.write("other")
    topic = life.add(FOLLOWED, folder=str(files.folder))
    other = reading(life.next_name(), 30)
    has_work, plan = threading.Event(), other.plan
    other.plan = lambda request: plan(request) if has_work.is_set() else Plan()
    waiting = life.add(PLANNED, other)

    with life.running():
        with files.growing("busy"):
            until(lambda: life.heard(SlotClaimed, of=topic))
            has_work.set()
            until(lambda: numbers(30) == life.values(waiting))
            until(lambda: len(life.heard(MicroBatchStarted, of=topic)) > 1)
        until(lambda: there(life, topic, files))

    assert life.heard(Queued, of=waiting)


@pytest.mark.kill
@pytest.mark.slow
def test_a_killed_slot_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, processes: ProcessEngine, files: Growing
) -> None:
    """Its sibling ends, and all is followed again from what was committed."""
    life = Life(bootstrap, tmp_path, engine=processes, processes=LocalProcesses())
    life.worker = {"plugin.modules": "doubles.followed_files"}
    files.write("one")
    files.write("two")
    topic = life.add(FOLLOWED, folder=str(files.folder))

    with life.running():
        with files.growing("one", "two"):
            until(lambda: len(life.values(topic)) > 20)
            claims = [each.pid for each in life.heard(SlotClaimed)]  # type: ignore[attr-defined]
            os.kill(claims[0], signal.SIGKILL)
            until(lambda: len(life.heard(SlotClaimed)) == 4)
            seen = len(life.values(topic))
            until(lambda: len(life.values(topic)) > seen)
        until(lambda: there(life, topic, files))

    assert 1 == len(life.heard(Replanned))
