"""What is logged while Spark starts."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.jvm.cache import cache_root
from headrace.spark import engine as engines
from headrace.spark import java_process, job, start
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from waiting import until


class Session:
    """A session that has just been opened."""


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    """What opening one comes to, without Spark."""
    made = Session()
    monkeypatch.setattr(start, "open_session", lambda *_, **__: made)
    monkeypatch.setattr(start, "make_beside", lambda _: None)
    monkeypatch.setattr(engines, "_refuse_speculation", lambda _: None)
    monkeypatch.setattr(job, "_run", lambda *_: [])
    return made


@pytest.mark.parametrize(
    ("settings", "place"),
    [
        (SparkSettings(master="local[2]"), "local[2]"),
        (SparkSettings(remote="sc://there:15002/;token=secret"), "sc://there:15002"),
    ],
)
def test_a_start_is_told_when_it_begins_and_when_it_is_through(
    session: Session, caplog: pytest.LogCaptureFixture, settings: SparkSettings, place: str
) -> None:
    """It takes ten seconds and more, of which nothing is seen otherwise; secrets are not logged."""
    caplog.set_level(logging.INFO)
    engine = SparkEngine(settings, slots=2)

    assert engine.session() is session
    engine.session()
    begun, ready = caplog.messages
    assert f"Starting Spark ({place}) …" == begun
    assert ready.startswith(f"Spark ({place}) is ready after ")


def test_somebody_s_own_session_is_not_started(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    """So nothing is logged about it."""
    caplog.set_level(logging.INFO)
    SparkEngine(SparkSettings(), slots=2, session=session).session()  # type: ignore[arg-type]

    assert [] == caplog.messages


def test_spark_starts_until_its_first_job_is_done() -> None:
    """Python processes take long, too, where a machine is busy: no one need look for free cores by then."""
    starting = list[bool]()

    class Given:
        """Somebody's session, which runs jobs."""

        conf: ClassVar[dict[str, str]] = {}

        def range(self, *_: int) -> Given:
            """A frame, whatever is in it."""
            return self

        def mapInArrow(self, *_: object) -> Given:  # noqa: N802 (Spark's name)
            """Another."""
            return self

        def toArrow(self) -> pa.Table:  # noqa: N802 (Spark's name)
            """The job."""
            starting.append(engine.is_starting)
            return pa.table({})

    engine = SparkEngine(SparkSettings(), slots=2, session=Given())  # type: ignore[arg-type]
    engine.run([])

    assert ([True, False], False) == (starting, engine.is_starting)


def test_what_is_waited_for_is_said_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever watches a busy machine sees that something happens, and what."""
    caplog.set_level(logging.INFO)
    with start.Progress("local[2]", every_seconds=0.01) as progress:
        until(lambda: any("waiting for its Java process" in each for each in caplog.messages))
        progress.awaited = "a free core"
        until(lambda: caplog.messages[-1].endswith("waiting for a free core"))
    logged = len(caplog.messages)

    assert caplog.messages[-1].startswith("Spark (local[2]) is ready after ")
    assert logged == len(caplog.messages)


CORES = "the Python processes of its slots, which need free cores"
SLOTS = "the Python processes of its slots"


@pytest.mark.parametrize(
    ("settings", "awaited"),
    [
        (SparkSettings(), ["its Java process", SLOTS]),
        (SparkSettings(master="local[2]"), ["its Java process", SLOTS]),
        (SparkSettings(master="local-cluster[1,2,1024]"), ["its Java process", CORES]),
        (SparkSettings(master="spark://there:7077"), ["its Java process", CORES]),
        (SparkSettings(remote="sc://there:15002"), ["the Spark Connect server", CORES]),
        (SparkSettings(remote="local[2]"), ["its Java process", SLOTS]),
    ],
)
def test_what_is_waited_for_is_what_such_a_spark_needs(
    monkeypatch: pytest.MonkeyPatch, settings: SparkSettings, awaited: list[str]
) -> None:
    """No Java where a server runs it, and no free cores where slots need none."""
    seen = list[str]()

    class Noting(start.Progress):
        """Notes what is waited for."""

        def __setattr__(self, name: str, value: object) -> None:
            if name == "awaited":
                seen.append(str(value))
            super().__setattr__(name, value)

    monkeypatch.setattr(start, "Progress", Noting)
    Losing(monkeypatch, at="nothing", times=0)
    SparkEngine(settings, slots=1).session()

    # The first is the default of every progress.
    assert awaited == seen[1:]


class Losing:
    """Loses a process at each start, at one step of it, until it has lost *times*."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, at: str, times: int) -> None:
        self.left = times
        self.discarded = list[object]()
        monkeypatch.setattr(start, "open_session", self._step("session", at))
        monkeypatch.setattr(job, "_run", self._step("job", at))
        monkeypatch.setattr(engines, "_refuse_speculation", lambda _: None)
        monkeypatch.setattr(start, "discard_session", self.discarded.append)
        monkeypatch.setattr(start, "make_beside", lambda _: None)

    def _step(self, name: str, at: str) -> Callable[..., object]:
        def step(*_: object, **__: object) -> object:
            if name == at and self.left:
                self.left -= 1
                raise OSError("The process ended.")
            return Session()

        return step


@pytest.mark.parametrize("at", ["session", "job"])
def test_a_process_lost_in_the_first_start_is_no_reason_to_give_up(
    monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Its connector tries again with back-off, as after every lost job; nothing is left of the start before."""
    losing = Losing(monkeypatch, at=at, times=2)
    engine = SparkEngine(SparkSettings(), slots=1)
    for _ in range(2):
        with pytest.raises(RetriableError, match=r"could not be started .*: The process ended"):
            engine.run([])

    assert isinstance(engine.session(), Session)
    assert (0, 2) == (losing.left, len(losing.discarded))


def test_starts_that_are_only_played_have_a_cache_of_their_own(cache_of_tests: Path) -> None:
    """One that fails may remove the class archive in it, which would be the developer's."""
    assert cache_of_tests == cache_root()


def test_a_first_start_that_never_succeeds_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the reason, once the deadline is past; whoever restarts the connector gets as much time again."""
    Losing(monkeypatch, at="session", times=9)
    engine = SparkEngine(SparkSettings(), slots=1)
    with pytest.raises(RetriableError):
        engine.run([])
    monkeypatch.setattr(start, "_START_SECONDS", 0)
    with pytest.raises(TaskFailedError, match=r"The process ended\. Check whether it runs there"):
        engine.run([])
    monkeypatch.undo()
    Losing(monkeypatch, at="session", times=9)
    with pytest.raises(RetriableError):
        engine.run([])


def test_what_spark_itself_refuses_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as a master that it cannot read: its JVM lives, and would say the same each time."""
    Losing(monkeypatch, at="session", times=9)
    monkeypatch.setattr(java_process, "has_ended", lambda: False)

    with pytest.raises(TaskFailedError, match="keys of the worker"):
        SparkEngine(SparkSettings(), slots=1).run([])


@pytest.mark.spark
@pytest.mark.kill
@pytest.mark.slow
def test_a_jvm_that_is_killed_while_it_starts_is_started_again(tmp_path: Path) -> None:
    """In a process of its own, as a worker has one; the log has a sentence and no trace."""
    done = subprocess.run(
        [sys.executable, "-c", _KILLED_ONCE],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )

    assert "lost once, ready then" in done.stdout, done.stderr
    assert "Traceback" not in done.stderr


_KILLED_ONCE = """
import logging, threading
from headrace.connect.errors import RetriableError
from headrace.spark import java_process
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from waiting import until
logging.basicConfig(level=logging.INFO)
def kill():
    until(java_process._gateway, seconds=100)
    java_process._gateway().proc.kill()
threading.Thread(target=kill).start()
engine = SparkEngine(SparkSettings(master="local[1]"), slots=1)
try:
    engine.session()
except RetriableError:
    engine.session()
    print("lost once, ready then")
engine.close()
java_process.end(seconds=60)
"""
