"""With which options of Java Spark is started, and when it is started again with others."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.connect.errors import RetriableError
from headrace.jvm.class_archive import ClassArchive
from headrace.jvm.java import find_java
from headrace.spark import engine as engines
from headrace.spark import java_process, job, start
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings, class_archive
from headrace.spark.start import JavaStart
from headrace.task.sql.step import SqlStage
from waiting import until

DEFAULTS = "spark.driver.defaultJavaOptions"
SCHEDULING_ONLY = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms48m"]


class Archive:
    """An archive that is there, and notes what is done to it."""

    def __init__(self, *options: str) -> None:
        self.made = options
        self.discarded = 0

    def options(self) -> list[str]:
        """Those of a JVM that starts from it."""
        return list(self.made)

    def discard(self, reason: str) -> None:
        """Note it."""
        del reason
        self.discarded += 1


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Archive:
    """The archive of the JVM that would be started here; no one makes another."""
    there = Archive("-XX:SharedArchiveFile=there")
    monkeypatch.setattr(start, "class_archive", lambda: there)
    for name in (
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "SPARK_SUBMIT_OPTS",
        "PYSPARK_SUBMIT_ARGS",
        "SPARK_CONF_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    return there


@pytest.mark.parametrize(("sql", "chosen"), [(False, SCHEDULING_ONLY), (True, [])])
def test_a_jvm_that_records_pass_through_compiles_as_java_does(
    archive: Archive, *, sql: bool, chosen: list[str]
) -> None:
    """One that only starts jobs is ready sooner with the quick compiler; each starts from the archive."""
    assert (*chosen, *archive.made) == JavaStart(SparkSettings(), sql=sql).options


@pytest.mark.parametrize(
    "settings",
    [
        SparkSettings(conf={"spark.driver.extraJavaOptions": "-Dmine=1"}),
        SparkSettings(conf={DEFAULTS: "-XX:+UseZGC"}),
        SparkSettings(remote="sc://there"),
    ],
)
def test_options_of_the_user_s_stay_theirs(archive: Archive, settings: SparkSettings) -> None:
    """Two collectors, for one, would keep Java from starting."""
    del archive
    assert () == JavaStart(settings, sql=False).options


@pytest.mark.parametrize(
    ("name", "value", "is_theirs"),
    [
        ("JAVA_TOOL_OPTIONS", "-Dno=matter -XX:+UseG1GC", True),
        ("_JAVA_OPTIONS", "-javaagent:agent.jar", True),
        ("PYSPARK_SUBMIT_ARGS", "--driver-java-options '-Dmine=1' pyspark-shell", True),
        ("PYSPARK_SUBMIT_ARGS", f"--conf {DEFAULTS}=-XX:+UseG1GC pyspark-shell", True),
        ("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStore=there", False),
    ],
)
def test_so_do_those_in_the_environment(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, name: str, value: str, *, is_theirs: bool
) -> None:
    """As far as they choose something that ours choose, too."""
    monkeypatch.setenv(name, value)

    options = JavaStart(SparkSettings(), sql=False).options
    assert (() if is_theirs else (*SCHEDULING_ONLY, *archive.made)) == options


@pytest.mark.parametrize(
    ("line", "is_theirs"),
    [
        (f"{DEFAULTS} -XX:+UseG1GC", True),
        (f"  {DEFAULTS}=-XX:+UseG1GC", True),
        (f"# {DEFAULTS} -XX:+UseG1GC", False),
        ("spark.driver.extraJavaOptions -Dmine=1", False),
    ],
)
def test_so_do_those_in_spark_s_own_file(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, line: str, *, is_theirs: bool
) -> None:
    """As far as Spark adds them to ours; ours replace its other options."""
    (tmp_path / "spark-defaults.conf").write_text(f"spark.eventLog.enabled false\n{line}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))

    options = JavaStart(SparkSettings(), sql=False).options
    assert (() if is_theirs else (*SCHEDULING_ONLY, *archive.made)) == options


def test_spark_starts_where_there_can_be_no_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is never needed."""

    def refused() -> ClassArchive:
        raise PermissionError("read-only")

    monkeypatch.setattr(start, "class_archive", refused)
    java = JavaStart(SparkSettings(), sql=False)

    assert tuple(SCHEDULING_ONLY) == java.options
    java.succeeded()


class Java:
    """Launched instead of Spark's: a process that ends as *program* says, unless *starts_plain* and without options."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, program: str, *, starts_plain: bool = False
    ) -> None:
        self.launched = list[Sequence[str]]()
        self._program = program
        self._starts_plain = starts_plain
        monkeypatch.setattr(start, "open_session", self._open)
        monkeypatch.setattr(start, "discard_session", lambda _: None)
        monkeypatch.setattr(engines, "_refuse_speculation", lambda _: None)
        monkeypatch.setattr(job, "_run", lambda *_: [])
        monkeypatch.setattr(java_process, "_DYING_SECONDS", 30)

    def _open(self, _: SparkSettings, *, java_options: Sequence[str]) -> object:
        self.launched.append(java_options)
        if self._starts_plain and not java_options:
            return SimpleNamespace()
        proc = subprocess.Popen([sys.executable, "-c", self._program])
        proc.wait()
        raise RuntimeError("Java gateway process exited")


EXITS = "raise SystemExit(1)"
KILLED = "import os; os.kill(os.getpid(), 9)"


def test_an_archive_that_java_does_not_start_from_is_removed(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Spark starts at once without it, and without what else is set; the log says both."""
    java = Java(monkeypatch, EXITS, starts_plain=True)
    SparkEngine(SparkSettings(), slots=1).session()

    options = (*SCHEDULING_ONLY, *archive.made)
    assert ([options, ()], 1) == (java.launched, archive.discarded)
    [warning] = (each for each in caplog.messages if "when it was started with" in each)
    assert warning.startswith("Spark's JVM has ended with exit code 1 when")
    assert " ".join(options) in warning


def test_an_archive_stays_when_java_does_not_start_without_it_either(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as over a wrong size of its memory; the reason names how it has ended."""
    java = Java(monkeypatch, EXITS)
    engine = SparkEngine(SparkSettings(conf={"spark.driver.memory": "much"}), slots=1)
    with pytest.raises(
        RetriableError, match="exited; its Java process has ended with exit code 1 and"
    ):
        engine.session()

    assert (2, 0) == (len(java.launched), archive.discarded)


def test_an_archive_stays_when_java_is_killed(
    archive: Archive, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as good as it was, also where PySpark had no connection to that JVM yet; the reason names the signal."""
    java = Java(monkeypatch, KILLED, starts_plain=True)
    with pytest.raises(RetriableError, match=r"exited; its Java process was ended by SIGKILL$"):
        SparkEngine(SparkSettings(), slots=1).session()

    assert (1, 0) == (len(java.launched), archive.discarded)


class Sessions:
    """Opens and replaces sessions without Spark, and notes which."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.opened = list[list[str]]()
        self.discarded = list[object]()
        monkeypatch.setattr(start, "open_session", self._open)
        monkeypatch.setattr(engines, "discard_session", self.discarded.append)
        monkeypatch.setattr(engines, "stop_session", lambda _: None)
        monkeypatch.setattr(engines, "_refuse_speculation", lambda _: None)
        monkeypatch.setattr(job, "_run", lambda *_: self.job())
        monkeypatch.setattr(job, "split_job", lambda *_: self)
        self.lost = False
        self.during = threading.Event()
        self.end = threading.Event()
        self.end.set()

    def _open(self, _: SparkSettings, *, java_options: list[str]) -> object:
        self.opened.append([each for each in java_options if each in SCHEDULING_ONLY])
        return SimpleNamespace(conf={})

    def job(self) -> list[object]:
        """One that takes until the test lets it end."""
        if self.lost:
            raise OSError("The JVM is gone.")
        self.during.set()
        assert self.end.wait(30)
        return []

    def toArrow(self) -> Any:  # noqa: N802, ANN401 (Spark's name)
        """A job with SQL."""
        return SimpleNamespace(to_pylist=list)


@pytest.fixture
def sessions(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    """Instead of Spark's."""
    del archive
    return Sessions(monkeypatch)


SQL: Any = object.__new__(SqlStage)


def test_the_first_micro_batch_with_sql_gets_a_jvm_with_java_s_compiler(sessions: Sessions) -> None:
    """One for scheduling only is replaced, once."""
    engine = SparkEngine(SparkSettings(), slots=1)
    engine.run([])
    engine.run([], SQL)
    engine.run([], SQL)
    engine.run([])

    assert ([SCHEDULING_ONLY, []], 1) == (sessions.opened, len(sessions.discarded))


def test_a_jvm_for_scheduling_only_stays_while_others_use_it(sessions: Sessions) -> None:
    """To replace it would lose their jobs."""
    engine = SparkEngine(SparkSettings(), slots=2)
    engine.session()
    sessions.end.clear()
    sessions.during.clear()
    other = threading.Thread(target=engine.run, args=[[]])
    other.start()
    assert sessions.during.wait(30)
    engine.run([], SQL)
    assert [SCHEDULING_ONLY] == sessions.opened
    sessions.end.set()
    other.join()
    engine.run([], SQL)

    assert [SCHEDULING_ONLY, []] == sessions.opened


def test_a_restart_is_logged_where_there_is_one(
    sessions: Sessions, caplog: pytest.LogCaptureFixture
) -> None:
    """Not where the JVM for scheduling only was lost before the first micro-batch with SQL."""
    caplog.set_level(logging.INFO)
    restarting = (
        "Restarting Spark with Java's default compiler and collector: a connector uses SparkSql."
    )
    engine = SparkEngine(SparkSettings(), slots=1)
    engine.session()
    sessions.lost = True
    with pytest.raises(RetriableError, match="The Spark job was lost"):
        engine.run([])
    sessions.lost = False
    engine.run([], SQL)
    assert restarting not in caplog.messages

    engine = SparkEngine(SparkSettings(), slots=1)
    engine.run([])
    engine.run([], SQL)
    assert restarting in caplog.messages


def test_sql_that_comes_while_spark_starts_ahead_gets_java_s_compiler(sessions: Sessions) -> None:
    """The JVM that is being started for scheduling only is replaced, and not used once."""
    engine = SparkEngine(SparkSettings(), slots=1)
    sessions.end.clear()
    with ThreadPoolExecutor(2) as threads:
        ahead = threads.submit(engine.warm_up)
        assert sessions.during.wait(30)
        run = threads.submit(engine.run, [], SQL)
        until(lambda: engine._users == 1)
        sessions.end.set()
        run.result(30)
        ahead.result(30)

    assert ([SCHEDULING_ONLY, []], 1) == (sessions.opened, len(sessions.discarded))


def test_the_end_waits_for_a_start_ahead(sessions: Sessions) -> None:
    """Its thread waits within Arrow, where the end of the process would abort it."""
    engine = SparkEngine(SparkSettings(), slots=1)
    sessions.end.clear()
    with ThreadPoolExecutor(2) as threads:
        ahead = threads.submit(engine.warm_up)
        assert sessions.during.wait(30)
        end = threads.submit(engine.close)
        with pytest.raises(TimeoutError):
            end.result(0.2)
        sessions.end.set()
        end.result(30)

    assert isinstance(ahead.exception(), RetriableError)


def test_who_knows_of_sql_beforehand_starts_once(sessions: Sessions) -> None:
    """A worker's connectors are known before the first of them has work."""
    engine = SparkEngine(SparkSettings(), slots=1)
    engine.require([], sql=True)
    engine.run([])
    engine.run([], SQL)

    assert [[]] == sessions.opened


@pytest.mark.spark
@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_process_that_is_killed_while_it_makes_an_archive_leaves_nothing_that_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next one makes it."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    archive = class_archive()
    killed = subprocess.Popen([sys.executable, "-c", _MAKING], start_new_session=True)
    until((archive.folder / "making.log").exists, seconds=60)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()

    assert ([], True) == (list(archive.options()), archive.is_wanted())


@pytest.fixture
def made_archive(cache_of_tests: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The file of the archive of this machine's Spark, which takes up to a minute of a processor to make.

    The folders of Spark and Java, which may be read-only, are as they were before.
    """
    monkeypatch.setenv("HEADRACE_CACHE", str(cache_of_tests))
    before = installed()
    subprocess.run([sys.executable, "-c", _MAKING], check=True)
    assert before == installed()
    [option, _] = class_archive().options()
    return option.partition("=")[2]


def installed() -> set[tuple[Path, int, int]]:
    """The files of PySpark and of Java, but for what Python compiles, with their sizes and times.

    Workers of a local-cluster, which tests beside these may start, write into the folder ``work``.
    """
    spark = find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    return {
        (file, file.stat().st_size, file.stat().st_mtime_ns)
        for home in (Path(spark.origin).parent, find_java().executable.parent.parent)
        for file in home.rglob("*")
        if file.is_file()
        and file.parent.name != "__pycache__"
        and file.relative_to(home).parts[0] != "work"
    }


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_next_jvm_starts_from_an_archive_that_was_made(made_archive: str) -> None:
    """It has it mapped into its memory."""
    started = subprocess.run([sys.executable, "-c", _STARTED], text=True, capture_output=True)

    assert made_archive in started.stdout, started.stderr


_MAKING = "from headrace.spark import archive_making; archive_making.make()"
_STARTED = """
from pathlib import Path
from headrace.spark import java_process
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
engine = SparkEngine(SparkSettings(master="local[1]"), slots=1)
engine.session()
print(Path(f"/proc/{java_process._gateway().proc.pid}/maps").read_text())
engine.close()
java_process.end(seconds=60)
"""
