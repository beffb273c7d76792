"""How the session of an engine is started: with which options of Java, how often that is tried, what is logged."""

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
from headrace.spark.failures import in_short
from headrace.spark.session import (
    DEFAULT_MASTER,
    SparkSettings,
    class_archive,
    discard_session,
    open_session,
    spark_home,
)

_log = logging.getLogger(__name__)

# From its first failure on, Spark's first start is tried again for so long: something that ends processes, such as a
# shortage of memory, may pass, a wrong setting does not.
_START_SECONDS: Final = 60.0
# Jobs are planned and started in it, nothing else: code that is compiled well is not worth the wait, nor are threads
# for the collection of a small heap.
_SCHEDULING_ONLY: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# Nor is code for the few rows that tell slots apart, which Spark would generate and compile for each job.
_SCHEDULING_CONF: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
# PySpark imports it when its JVM is there; imported while that starts, it takes no time of its own.
_IMPORTED_BY_PYSPARK: Final = "pandas"
_TOLD_SECONDS: Final = 5.0
_DEFAULT_OPTIONS: Final = "spark.driver.defaultJavaOptions"
_KEYS: Final = ("spark.driver.extraJavaOptions", _DEFAULT_OPTIONS)
_VARIABLES: Final = (
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "SPARK_SUBMIT_OPTS",
    "PYSPARK_SUBMIT_ARGS",
)
# Other options, such as a trust store's, do not choose what these do.
_CHOOSING: Final = ("-X", "-javaagent", "-agent", "--driver-java-options")


class Progress:
    """Logs, while Spark starts at *place*, what is being waited for; it takes long enough for somebody to wonder."""

    def __init__(self, place: str, *, every_seconds: float = _TOLD_SECONDS) -> None:
        self._place = place
        self._every_seconds = every_seconds
        self._ended = threading.Event()
        self.awaited = "its Java process"

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        _log.info("Starting Spark (%s) …", self._place)
        threading.Thread(target=self._tell, name="headrace-spark-start", daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ended.set()
        if kind is None:
            _log.info("Spark (%s) is ready after %.0f s", self._place, self._seconds())

    def _tell(self) -> None:
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
    """All starts of one engine's session, which is a *given* one or opened as *settings* say.

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
        self._has_succeeded = False
        self._failing_since: float | None = None
        self.scheduling_only: SparkSession | None = None
        """The session whose JVM is slow with records that pass through it."""

    def session(self, *, sql: bool) -> SparkSession:
        """One that is ready for slots. With *sql* records pass through its JVM.

        Raises RetriableError where it is worth another try, TaskFailedError where it is not.
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
            raise _NotStartedError(in_short(error), is_lost=True) from error
        return session

    def _opened(self, *, sql: bool) -> SparkSession:
        with Progress(self._place) as progress:
            java = JavaStart(self._settings, sql=sql)
            try:
                session = self._attempt(progress, java.options, java.conf)
            except _NotStartedError as error:
                if not java.options or error.ending is None:
                    raise
                _log.debug("Spark's JVM is started without options of headrace's: %s", error)
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
        progress.awaited = "its Java process"
        threading.Thread(target=_import_for_pyspark, name="headrace-imports", daemon=True).start()
        session: SparkSession | None = None
        try:
            settings = replace(self._settings, conf={**conf, **self._settings.conf})
            session = open_session(settings, java_options=java_options)
            progress.awaited = "the Python processes of its slots, which need free cores"
            self._begin(session)
        except ConnectError:
            # A refusal without a session of ours may be about somebody else's, which is none of our business.
            if session is not None:
                discard_session(session)
            raise
        except Exception as error:
            # Read before the session is discarded: what went wrong in Java has to be asked for there.
            has_ended = java_process.has_ended()
            failed = _NotStartedError(
                in_short(error),
                is_lost=has_ended or session is not None,
                ending=java_process.own_ending(error) if has_ended else None,
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
        # Whoever restarts a connector then wants it tried as patiently as before.
        self._failing_since = None
        return TaskFailedError(
            f"Spark could not be started ({self._place}): {error}. Look whether it runs there, and at "
            "spark.master, spark.remote and the other spark.* keys of the worker."
        )


def _import_for_pyspark() -> None:
    with suppress(ImportError):
        importlib.import_module(_IMPORTED_BY_PYSPARK)


class _NotStartedError(Exception):
    """There is no session; *is_lost* when a process of it may have ended by chance, *ending* is its JVM's own."""

    def __init__(self, reason: str, *, is_lost: bool, ending: str | None = None) -> None:
        told = ending and f"; its Java process {ending} and has written why to standard error"
        super().__init__(f"{reason}{told or ''}")
        self.is_lost = is_lost
        self.ending = ending


class JavaStart:
    """The options and settings that Spark's JVM is started with; no options where the user has chosen some.

    With *sql* records pass through it, and it compiles and collects as Java does by default.
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
        """Spark is ready; see to it that its next start is a fast one."""
        if self._archive is not None and not self._from_archive:
            try:
                make_beside(self._archive)
            except OSError as error:
                _log.debug("No class archive is made: %s", error)

    def succeeded_without_options(self, ending: str) -> None:
        """Spark is ready, but its JVM has *ending* when it was started with :attr:`options`."""
        _log.warning(
            "Spark's JVM %s when it was started with %s, and has started without. Where other options of Java are "
            "set that do not go with these, set them in spark.driver.extraJavaOptions instead.",
            ending,
            " ".join(self.options),
        )
        if self._archive is not None and self._from_archive:
            self._archive.discard("Spark's JVM has started without it, and not with it.")


def _are_chosen(settings: SparkSettings) -> bool:
    told = " ".join(os.environ.get(each, "") for each in _VARIABLES)
    return (
        any(key in settings.conf or key in told for key in _KEYS)
        or any(each.startswith(_CHOOSING) for each in re.split(r"[\s'\"]+", told))
        or _are_in_defaults()
    )


def _are_in_defaults() -> bool:
    """Whether Spark's own file of defaults has options, which it puts before ours; others there have no effect."""
    with suppress(ConnectError, OSError):
        folder = os.environ.get("SPARK_CONF_DIR") or spark_home() / "conf"
        defaults = Path(folder, "spark-defaults.conf").read_text(errors="replace")
        return (
            re.search(rf"^\s*{re.escape(_DEFAULT_OPTIONS)}\b", defaults, re.MULTILINE) is not None
        )
    return False
