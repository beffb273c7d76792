"""Sessions of headrace's own beside those of the program that it runs in; nothing is started here."""

from __future__ import annotations

import logging
import socketserver
import subprocess
import sys
import threading
import warnings
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.spark import java_process
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings, cut_off, open_session, stop_session

CONNECT = "pyspark.sql.connect.session"


class Java:
    """A JVM's process that notes whether it was killed."""

    def __init__(self) -> None:
        self.killed = 0

    def kill(self) -> None:
        """Note it."""
        self.killed += 1


class Remote:
    """A session on a Spark Connect server."""

    def __init__(self) -> None:
        self.closed = 0
        self.client = SimpleNamespace(close=self._close)

    def _close(self) -> None:
        self.closed += 1


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Java:
    """The JVM that this process has started."""
    made = Java()
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=made))
    return made


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Remote:
    """The Spark Connect session of this process."""
    made = Remote()
    kind = SimpleNamespace(_get_default_session=lambda: made)
    monkeypatch.setitem(sys.modules, CONNECT, SimpleNamespace(SparkSession=kind))  # type: ignore[arg-type]
    return made


def refusal() -> str:
    """Why an engine of headrace's own does not open a session."""
    engine = SparkEngine(SparkSettings(), slots=1)
    with pytest.raises(TaskFailedError) as refused:
        engine.session()
    engine.close()
    return str(refused.value)


def test_somebody_elses_session_is_not_taken_over(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is neither stopped nor is its JVM ended, and the sentence says what to do."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", object())

    assert "headrace.run as spark=" in refusal()
    assert 0 == java.killed


def test_somebody_elses_connect_session_is_not_taken_over(java: Java, remote: Remote) -> None:
    """The same over Spark Connect."""
    assert "headrace.run as spark=" in refusal()
    assert (0, 0) == (java.killed, remote.closed)


def test_what_a_server_refuses_of_headrace_s_own_keys_is_not_printed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No user can do anything about it; they can about their own keys."""

    class Builder:
        """Opens a session on a server, which has refused each key."""

        def __init__(self) -> None:
            self._keys = dict[str, str]()

        def remote(self, _: str) -> Builder:
            """Where it is."""
            return self

        def config(self, key: str, value: str) -> Builder:
            """A key of it."""
            self._keys[key] = value
            return self

        def getOrCreate(self) -> object:  # noqa: N802 (Spark's name)
            """As PySpark reports what a server has refused."""
            for key, value in self._keys.items():
                warnings.warn(
                    f"Failed to set {key} to Some({value}) due to [CANNOT_MODIFY_CONFIG]",
                    stacklevel=1,
                )
            return object()

    monkeypatch.setattr(SparkSession, "builder", Builder())
    with warnings.catch_warnings(record=True) as printed:
        warnings.simplefilter("always")
        open_session(SparkSettings(remote="sc://there", conf={"spark.executor.cores": "1"}))

    (warning,) = printed
    assert str(warning.message).startswith("Failed to set spark.executor.cores to")


def test_an_engine_that_is_closed_while_it_opens_starts_no_job(
    java: Java, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a cluster without free cores the first job would keep its session forever."""
    session = SimpleNamespace(conf={})
    jobs: list[object] = []

    def opened(_: SparkSettings, **__: object) -> object:
        engine.close()
        return session

    discarded: list[object] = []
    monkeypatch.setattr("headrace.spark.start.open_session", opened)
    monkeypatch.setattr("headrace.spark.start.discard_session", discarded.append)
    monkeypatch.setattr("headrace.spark.job._run", lambda *job: jobs.append(job))
    engine = SparkEngine(SparkSettings(), slots=1)
    with pytest.raises(RetriableError, match="not started any more"):
        engine.session()

    assert ([], [session]) == (jobs, discarded)
    assert 1 == java.killed


def test_an_engine_closes_after_the_jobs_that_were_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A thread that still waits within Arrow when Python ends would abort the process."""
    stopped, waiting, over = threading.Event(), threading.Event(), threading.Event()
    session = SimpleNamespace(conf={}, stop=stopped.set)

    def lost(*_: object) -> list[object]:
        waiting.set()
        stopped.wait()
        # The end of a session is noticed a moment later.
        over.wait(0.1)
        over.set()
        raise OSError("the connection has ended")

    def run() -> None:
        with pytest.raises(RetriableError):
            engine.run([])

    monkeypatch.setattr("headrace.spark.start.open_session", lambda *_, **__: session)
    monkeypatch.setattr("headrace.spark.engine.first_job", lambda *_, **__: None)
    monkeypatch.setattr("headrace.spark.engine.run_slots", lost)
    engine = SparkEngine(SparkSettings(), slots=1)
    job = threading.Thread(target=run)
    job.start()
    waiting.wait()
    engine.close()

    assert over.is_set()
    job.join()


def test_what_is_half_open_is_cut_off(java: Java, remote: Remote) -> None:
    """So that whoever waits for it fails, and nothing of it keeps the process from ending."""
    cut_off()

    assert (1, 1) == (java.killed, remote.closed)


def test_a_session_that_does_not_stop_is_cut_off(java: Java) -> None:
    """A server that is away is asked for minutes."""
    held = threading.Event()
    session: Any = SimpleNamespace(stop=held.wait)
    stop_session(session, within=0.05)
    held.set()

    assert 1 == java.killed


def test_a_session_that_stops_keeps_its_java(java: Java) -> None:
    """Its JVM ends with the process: ended sooner, PySpark's threads would complain."""
    session: Any = SimpleNamespace(stop=lambda: None)
    stop_session(session)

    assert 0 == java.killed


def test_what_a_dead_jvm_leaves_is_not_printed_by_each_thread(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever has used the session raises the same; nothing else of the root logger is kept back."""
    server = socketserver.TCPServer(
        ("127.0.0.1", 0), socketserver.BaseRequestHandler, bind_and_activate=False
    )
    session: Any = SimpleNamespace(sparkContext=SimpleNamespace(_accumulatorServer=server))
    java_process.silence_py4j_traces()
    java_process.mute_accumulators(session)
    try:
        logging.getLogger().error("Exception while sending command.", exc_info=OSError())
        logging.getLogger().error("Something else.")
        try:
            raise ConnectionResetError
        except ConnectionResetError:
            server.handle_error(object(), "127.0.0.1")  # type: ignore[arg-type]
    finally:
        server.server_close()

    assert ["Something else."] == caplog.messages
    assert ("", "") == capsys.readouterr()


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
        ("raise SystemExit(3)", "has ended with exit code 3"),
        ("import time; time.sleep(60)", "does not answer"),
    ],
)
def test_how_a_jvm_has_ended_is_said(
    monkeypatch: pytest.MonkeyPatch, program: str, said: str
) -> None:
    """Killed by someone, ended by itself, or hanging."""
    process = subprocess.Popen([sys.executable, "-c", program])
    monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=process))
    monkeypatch.setattr(java_process, "_DYING_SECONDS", 1 if "sleep" in program else 30)
    try:
        assert said == java_process.ending()
    finally:
        process.kill()
        process.wait()
