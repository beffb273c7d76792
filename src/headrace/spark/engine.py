"""The data plane on Spark: one session, in which a micro-batch is a job and a slot is one of its tasks."""

from __future__ import annotations

import importlib.util
import logging
import tempfile
import threading
import zipfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.connect.config import Problem
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.runtime.engine import OtherVersionError
from headrace.spark import java_process
from headrace.spark.failures import full_text, in_short, of_expression
from headrace.spark.job import first_job, run_slots
from headrace.spark.session import (
    SessionKeeper,
    SparkSettings,
    cut_off,
    discard_session,
    stop_session,
)
from headrace.spark.sql_check import sql_problems
from headrace.spark.start import SparkStart
from headrace.task.slot_report import STALE, Outcome
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage

_log = logging.getLogger(__name__)

# How long a thread that waits for Spark may take to learn that it has ended.
_USERS_SECONDS = 10.0


def ship(session: SparkSession, modules: Iterable[str], folder: Path) -> None:
    """Make the top-level *modules* importable in every slot of *session*; archives are written to *folder*.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a module that does not consist of Python files.
    """
    for module in sorted(set(modules)):
        archive = packed(module, folder)
        session.addArtifacts(str(archive), pyfile=True)
        _log.debug("Shipped %s to Spark", module)


def packed(module: str, folder: Path) -> Path:
    """A zip file in *folder* from which Python imports the top-level *module*."""
    spec = importlib.util.find_spec(module)
    origin = None if spec is None or spec.origin is None else Path(spec.origin)
    if spec is None or origin is None or origin.suffix != ".py":
        raise TaskFailedError(
            f"The module {module} cannot be shipped to Spark: it is not a Python file."
        )
    archive = folder / f"{module}.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as target:
        if not spec.submodule_search_locations:
            target.write(origin, origin.name)
        else:
            for each in sorted(origin.parent.rglob("*.py")):
                target.write(each, each.relative_to(origin.parent.parent))
    return archive


class SparkEngine:
    """An ``Engine`` on a classic session, a cluster, or a Spark Connect server.

    The session is opened when the first micro-batch starts, and again when it was lost. A given *session* belongs
    to the caller: it is used unchanged and never closed. *modules* are the authors' top-level modules, which are
    shipped to every session; *plugin_folders* are where slots find what these import. With *sql*, records will pass
    through Spark's JVM, which otherwise is started for scheduling only.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        slots: int,
        session: SparkSession | None = None,
        modules: Sequence[str] = (),
        plugin_folders: Sequence[str] = (),
        sql: bool = False,
    ) -> None:
        self.slots = slots
        self.is_starting = False
        """See :class:`~headrace.runtime.engine.Engine`; a session without free cores starts until it has some."""
        self._is_remote = bool(settings.remote)
        self._given = session
        self._start = SparkStart(settings, given=session, begin=self._begin)
        self._modules = frozenset(modules)
        self._plugin_folders = tuple(plugin_folders)
        # Which modules were shipped, and to which session; the lock keeps two micro-batches from shipping the same.
        self._shipped: tuple[SparkSession | None, frozenset[str]] = (None, frozenset())
        self._shipping = threading.Lock()
        # How many micro-batches use the session or are about to, and whether records pass through its JVM; the lock keeps
        # them from getting a session that is about to be replaced.
        self._users = 0
        self._is_warming = False
        self._sql = sql
        self._entering = threading.Condition()
        self._archives: tempfile.TemporaryDirectory[str] | None = None
        ours = session is None
        self._keeper = SessionKeeper[SparkSession](
            open_one=self._started,
            stop=stop_session if ours else _leave_open,
            discard=discard_session,
            abandon=cut_off if ours else _leave_open,
        )

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Run one slot per ticket, with *sql_stage* as two processes, and wait for all of them."""
        with self._using(sql=sql_stage is not None) as session:
            self._run_slots(session, tickets, sql_stage)

    def _run_slots(
        self, session: SparkSession, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None
    ) -> None:
        try:
            self._ship(session)
            outcomes = run_slots(session, tickets, sql_stage, self._plugin_folders)
        except TaskFailedError:
            raise
        except Exception as error:
            if sql_stage is not None:
                _raise_if_of_data(error)
            self._start.log_traceback(error)
            ended = self._look_after(session, error)
            reason = in_short(error) if str(error) or ended is None else f"Spark {ended}"
            raise RetriableError(f"The Spark job was lost: {reason}") from error
        _refuse_if_unclaimed(outcomes)

    @contextmanager
    def _using(self, *, sql: bool) -> Generator[SparkSession]:
        with self._entering:
            self._users += 1
        try:
            if sql:
                self._ensure_full_compiler()
            yield self.session()
        finally:
            with self._entering:
                self._users -= 1
                self._entering.notify_all()

    def _ensure_full_compiler(self) -> None:
        """Replace a JVM that was started for scheduling only, unless other micro-batches are using it."""
        with self._entering:
            self._sql = True
        # One that is being started by now, ahead of all micro-batches, may be for scheduling only.
        self.session()
        with self._entering:
            slow = self._start.scheduling_only
            if self._users == 1 and slow is not None and self._keeper.replace(slow):
                _log.info(
                    "Restarting Spark with Java's default compiler and collector: a connector uses SparkSql."
                )

    def require(self, modules: Iterable[str], *, sql: bool = False) -> None:
        """Make these top-level modules available, too, in every slot of later micro-batches. Any thread may call.

        With *sql* a JVM that is started from now on uses Java's default compiler and garbage collector.
        """
        with self._shipping:
            self._modules |= set(modules)
        with self._entering:
            self._sql = self._sql or sql

    def sql_problems(self, sql_stage: SqlStage) -> Sequence[Problem]:
        """What Spark refuses in *sql_stage*, if a session is open; does not open one. Any thread may call."""
        session = self._keeper.opened()
        if session is None:
            return ()
        try:
            schema = from_arrow_schema(sql_stage.types.schema())
            return sql_problems(session, schema, sql_stage.step)
        except Exception as error:  # noqa: BLE001 - the step is checked again when its connector starts
            _log.debug("A SQL step could not be checked by Spark: %s", in_short(error))
            return ()

    def warm_up(self) -> None:
        """Open the session when there is none, with a Python process for each slot; called by one thread."""
        self._is_warming = True
        try:
            self.session()
        finally:
            with self._entering:
                self._is_warming = False
                self._entering.notify_all()

    def session(self) -> SparkSession:
        """The session, opened and warmed when there is none."""
        return self._keeper.session()

    def close(self) -> None:
        """Stop the session that this engine opened, or give up opening it; the engine cannot be used afterwards."""
        self._keeper.close()
        if self._given is None:
            self._await_users()
        archives, self._archives = self._archives, None
        if archives is not None:
            archives.cleanup()

    def _await_users(self) -> None:
        """Let the threads of micro-batches that were given up, and of a start ahead, learn that their session has ended.

        They wait within Arrow's C++. A Python process that ends meanwhile is aborted when they wake.
        """
        with self._entering:
            if not self._entering.wait_for(
                lambda: self._users == 0 and not self._is_warming, _USERS_SECONDS
            ):
                _log.debug("%d micro-batches still wait for Spark, which has ended", self._users)

    def _started(self) -> SparkSession:
        # Until the end of its first job: on a busy machine Python processes take long to start, too.
        self.is_starting = True
        try:
            return self._start.session(sql=self._sql)
        finally:
            self.is_starting = False

    def _begin(self, session: SparkSession) -> None:
        self._keeper.check_open()
        _refuse_speculation(session)
        self._ship(session)
        first_job(session, slots=self.slots)

    def _ship(self, session: SparkSession) -> None:
        with self._shipping:
            holder, shipped = self._shipped
            missing = self._modules - (shipped if holder is session else frozenset())
            if missing:
                archives = self._archives = self._archives or tempfile.TemporaryDirectory(
                    prefix="headrace-", ignore_cleanup_errors=True
                )
                ship(session, missing, Path(archives.name))
            self._shipped = (session, self._modules)

    def _look_after(self, session: SparkSession, error: Exception) -> str | None:
        """See to it that the next job has a session; how this one has ended, as the predicate of a sentence, if it has."""
        if session is self._given or _is_alive(session, error):
            return None
        how = "does not answer" if self._is_remote else java_process.ending()
        if self._keeper.replace(session):
            _log.warning("Spark %s; it is restarted for the next micro-batch.", how)
        return how


def _leave_open(*_: SparkSession) -> None:
    """Do nothing: a session that the caller gave is the caller's to end."""


def _raise_if_of_data(error: Exception) -> None:
    reason = of_expression(error)
    if reason is not None:
        raise TaskFailedError(f"SparkSql failed on a record's value. {reason}") from error


def _refuse_if_unclaimed(outcomes: Sequence[dict[str, Any]]) -> None:
    """Raise if a slot could not even claim its work, for example because it has another version, or cannot reach the driver."""
    refused = [each for each in outcomes if each["outcome"] == Outcome.REFUSED]
    if refused:
        raise OtherVersionError({each["slot"]: _place(each["reason"]) for each in refused})
    for each in outcomes:
        if each["outcome"] == Outcome.STALE and each["reason"] != STALE:
            raise RetriableError(f"Slot {each['slot']} could not start: {each['reason']}")


def _place(reason: str) -> tuple[str, str]:
    host, _, version = reason.partition(" ")
    return host, version


def _refuse_speculation(session: SparkSession) -> None:
    if session.conf.get("spark.speculation", "false") == "true":
        raise TaskFailedError(
            "The Spark session has spark.speculation=true: copies of a task would compete with each "
            "other. Use a session without it."
        )


def _is_alive(session: SparkSession, error: Exception) -> bool:
    """Whether *session* can run another job after one failed with *error*; does not run one to find out."""
    if "stopped SparkContext" in full_text(error):
        return False
    try:
        return bool(session.conf.get("spark.app.name"))
    except Exception as gone:  # noqa: BLE001 - any failure of such a simple call means "no"
        _log.debug("The Spark session does not answer: %s", gone)
        return False
