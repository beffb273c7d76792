"""Starts the session of an engine: chooses Java options, retries, and logs the progress."""

from __future__ import annotations

import importlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

from pyspark.sql import SparkSession

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.jvm.class_archive import ClassArchive
from headrace.spark import java_process
from headrace.spark.archive_making import make_beside
from headrace.spark.failures import in_short, python_ending
from headrace.spark.session import (
    DEFAULT_MASTER,
    SparkSettings,
    class_archive,
    discard_session,
    open_session,
    spark_home,
)

_log = logging.getLogger(__name__)

# Spark's first start is retried for so long after its first failure: a cause that kills processes, such as a shortage of
# memory, may be temporary, a wrong setting is not.
_START_SECONDS: Final = 60.0
# The JVM only plans and starts jobs: optimised compilation is not worth its time, nor are threads for the garbage
# collection of a small heap. By default that begins with a 64th of the machine's memory, which is filled before the first
# collection.
_SCHEDULING_ONLY: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms48m")
# Nor is generated code for the few rows that identify slots, which Spark would compile for each job.
_SCHEDULING_CONF: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# PySpark imports it when its JVM has started; importing it meanwhile takes no extra time.
_IMPORTED_BY_PYSPARK: Final = "pandas"
_LOG_SECONDS: Final = 5.0
_DEFAULT_OPTIONS: Final = "spark.driver.defaultJavaOptions"
_KEYS: Final = ("spark.driver.extraJavaOptions", _DEFAULT_OPTIONS)
_VARIABLES: Final = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "SPARK_SUBMIT_OPTS",
    "PYSPARK_SUBMIT_ARGS",
)
# Only such options conflict with headrace's; others, such as a trust store's, do not.
_CHOOSING: Final = ("-X", "-javaagent", "-agent", "--driver-java-options")


class Progress:
    """Logs what is being waited for while Spark starts at *place*, because that may take long."""

    def __init__(self, place: str, *, every_seconds: float = _LOG_SECONDS) -> None:
        self._place = place
        self._every_seconds = every_seconds
        self._ended = threading.Event()
        self.awaited = "its Java process"

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        _log.info("Starting Spark (%s) …", self._place)
        threading.Thread(
            target=self._log_progress, name="headrace-spark-start", daemon=True
        ).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        if kind is None:
            _log.info("Spark (%s) is ready after %.0f s", self._place, self._seconds())

    def _log_progress(self) -> None:
        while not self._ended.wait(self._every_seconds):
            _log.info(
                "Spark (%s) has been starting for %.0f s: waiting for %s",
                self._place,
                self._seconds(),
                self.awaited,
            )

    def _seconds(self) -> float:
        return time.monotonic() - self._began


class SparkStart:
    """Starts and restarts one engine's session, which is a *given* one or opened with *settings*.

    *begin* prepares a session and runs its first job.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        given: SparkSession | None,
        begin: Callable[[SparkSession], None],
    ) -> None:
        self._settings = settings
        self._given = given
        self._begin = begin
        # A remote's parameters may hold a token.
        place = (settings.remote or settings.master or DEFAULT_MASTER).partition("/;")[0]
        self._place = place if given is None else "the session that was given"
        # A local remote is a server that PySpark starts on this machine; of another one the master is not known.
        is_local = place.startswith("local")
        self._opening = (
            "the Spark Connect server" if settings.remote and not is_local else "its Java process"
        )
        needs_cores = not is_local or place.startswith("local-cluster")
        self._beginning = (
            f"the Python processes of its slots{', which need free cores' if needs_cores else ''}"
        )
        self._has_succeeded = False
        self._failing_since: float | None = None
        self._logged: str | None = None
        self.scheduling_only: SparkSession | None = None
        """The session whose JVM was started for scheduling only, and is slow with records that pass through it."""

    def session(self, *, sql: bool) -> SparkSession:
        """Start a session that is ready for slots. With *sql* records pass through its JVM.

        Raises RetriableError if another attempt may succeed, otherwise TaskFailedError.
        """
        try:
            session = self._opened(sql=sql) if self._given is None else self._begun(self._given)
        except _NotStartedError as error:
            raise self._failure(error) from error.__cause__
        self._has_succeeded = True
        return session

    def _begun(self, session: SparkSession) -> SparkSession:
        try:
            self._begin(session)
        except ConnectError:
            raise
        except Exception as error:
            self.log_traceback(error)
            raise _NotStartedError(in_short(error), is_lost=True) from error
        return session

    def log_traceback(self, error: Exception) -> None:
        """Log what a Python process wrote that ended at its start, if that is *error*; not again while it stays the same."""
        ending = python_ending(error)
        if ending is not None and ending != self._logged:
            self._logged = ending
            _log.error(
                "A Python process of Spark (%s) ended at its start:\n%s", self._place, ending
            )

    def _opened(self, *, sql: bool) -> SparkSession:
        with Progress(self._place) as progress:
            java = JavaStart(self._settings, sql=sql)
            try:
                session = self._attempt(progress, java.options, java.conf)
            except _NotStartedError as error:
                if not java.options or error.ending is None:
                    raise
                _log.debug("Spark's JVM is restarted without headrace's options: %s", error)
                session = self._attempt(progress, (), {})
                java.succeeded_without_options(error.ending)
                self.scheduling_only = None
            else:
                java.succeeded()
                self.scheduling_only = session if java.is_scheduling_only else None
            return session

    def _attempt(
        self, progress: Progress, java_options: Sequence[str], conf: Mapping[str, str]
    ) -> SparkSession:
        progress.awaited = self._opening
        threading.Thread(target=_import_for_pyspark, name="headrace-imports", daemon=True).start()
        session: SparkSession | None = None
        try:
            settings = replace(self._settings, conf={**conf, **self._settings.conf})
            session = open_session(settings, java_options=java_options)
            progress.awaited = self._beginning
            self._begin(session)
        except ConnectError:
            # Without a session of its own, headrace must not discard one of the program that embeds it.
            if session is not None:
                discard_session(session)
            raise
        except Exception as error:
            # Before the session is discarded, because the messages of Java's errors are read from the JVM.
            self.log_traceback(error)
            has_ended = java_process.has_ended()
            failed = _NotStartedError(
                in_short(error),
                is_lost=has_ended or session is not None,
                ending=java_process.own_ending(error) if has_ended else None,
                killing=java_process.killing(error) if has_ended else None,
            )
            discard_session(session)
            raise failed from error
        return session

    def _failure(self, error: _NotStartedError) -> ConnectError:
        if self._has_succeeded:
            return RetriableError(f"Spark could not be started again: {error}")
        now = time.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        if error.is_lost and now < self._failing_since + _START_SECONDS:
            return RetriableError(f"Spark could not be started ({self._place}): {error}")
        # After a restart of the connector, Spark's start is retried for the full time again.
        self._failing_since = None
        return TaskFailedError(
            f"Spark could not be started ({self._place}): {error}. Check whether it runs there, and check "
            "spark.master, spark.remote and the other spark.* keys of the worker."
        )


def _import_for_pyspark() -> None:
    with suppress(ImportError):
        importlib.import_module(_IMPORTED_BY_PYSPARK)


class _NotStartedError(Exception):
    """No session was started. *is_lost*: one of its processes may have died.

    *ending*: how its JVM ended by itself, *killing*: by which signal it was killed.
    """

    def __init__(
        self, reason: str, *, is_lost: bool, ending: str | None = None, killing: str | None = None
    ) -> None:
        detail = killing and f"; its Java process {killing}"
        if ending is not None:
            detail = f"; its Java process {ending} and has written why to standard error"
        super().__init__(f"{reason}{detail or ''}")
        self.is_lost = is_lost
        self.ending = ending


class JavaStart:
    """The options and settings with which Spark's JVM is started; no options if the user has set some.

    With *sql* records pass through it, and it uses Java's default compiler and garbage collector.
    """

    def __init__(self, settings: SparkSettings, *, sql: bool) -> None:
        is_ours = not settings.remote and not _are_chosen(settings)
        self.is_scheduling_only = is_ours and not sql
        self._archive: ClassArchive | None = None
        self._from_archive: Sequence[str] = ()
        if is_ours:
            try:
                self._archive = class_archive()
                self._from_archive = self._archive.options()
            except (ConnectError, OSError) as error:
                _log.debug("Spark starts without a class archive: %s", error)
        chosen = _SCHEDULING_ONLY if self.is_scheduling_only else ()
        self.options = (*chosen, *self._from_archive)
        self.conf: Mapping[str, str] = _SCHEDULING_CONF if self.is_scheduling_only else {}

    def succeeded(self) -> None:
        """Called when Spark is ready; makes the class archive for faster starts if there is none."""
        if self._archive is not None and not self._from_archive:
            try:
                make_beside(self._archive)
            except OSError as error:
                _log.debug("The class archive could not be made: %s", error)

    def succeeded_without_options(self, ending: str) -> None:
        """Called when Spark is ready, but its JVM ended (*ending*) when it was started with :attr:`options`."""
        _log.warning(
            "Spark's JVM %s when it was started with %s, and has started without. If other Java options are set that "
            "conflict with these, set them in spark.driver.extraJavaOptions instead.",
            ending,
            " ".join(self.options),
        )
        if self._archive is not None and self._from_archive:
            self._archive.discard("Spark's JVM started without it, but not with it.")


def _are_chosen(settings: SparkSettings) -> bool:
    given = " ".join(os.environ.get(each, "") for each in _VARIABLES)
    return (
        any(key in settings.conf or key in given for key in _KEYS)
        or any(each.startswith(_CHOOSING) for each in re.split(r"[\s'\"]+", given))
        or _are_in_defaults()
    )


def _are_in_defaults() -> bool:
    """Whether Spark's defaults file sets default Java options, which Spark puts before headrace's."""
    with suppress(ConnectError, OSError):
        folder = os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf"
        defaults = Path(folder, "spark-defaults.conf").read_text(errors="replace")
        return (
            re.search(rf"^\s*{re.escape(_DEFAULT_OPTIONS)}\b", defaults, re.MULTILINE) is not None
        )
    return False
