"""The data plane on Spark: one micro-batch is one job, one slot is one of its tasks."""

from __future__ import annotations

import logging
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.connect.config import Problem
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.slot.split.between import Between
from headrace.slot.work import STALE, Outcome, SlotTicket
from headrace.spark.expression_failures import of_expression
from headrace.spark.reasons import full_text, in_short
from headrace.spark.session import (
    DEFAULT_MASTER,
    SparkSettings,
    cut_off,
    discard_session,
    open_session,
    stop_session,
)
from headrace.spark.session_keeper import SessionKeeper
from headrace.spark.shipping import ship
from headrace.spark.slot_function import OUTCOME_SCHEMA, ArrowFunction, slot_function, warm
from headrace.spark.split_job import split_job
from headrace.spark.sql_check import sql_problems

_log = logging.getLogger(__name__)


class SparkEngine:
    """An ``Engine`` on a classic session, a cluster, or a Spark Connect server.

    The session is made when the first micro-batch starts, and again when it was lost. A *session* that is
    given belongs to the giver: it is used as it is and never closed. *modules* are the authors' top-level
    modules, which are shipped to every session; *plugin_folders* are where slots find what these import.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        slots: int,
        session: SparkSession | None = None,
        modules: Sequence[str] = (),
        plugin_folders: Sequence[str] = (),
    ) -> None:
        self.slots = slots
        self.is_starting = False
        """See :class:`~headrace.runtime.engine.Engine`; a session without free cores starts until it has some."""
        self._settings = settings
        self._given = session
        self._modules = frozenset(modules)
        self._plugin_folders = tuple(plugin_folders)
        # The session that has modules, and which; the lock keeps two micro-batches from shipping the same.
        self._shipped: tuple[SparkSession | None, frozenset[str]] = (None, frozenset())
        self._shipping = threading.Lock()
        self._has_been_open = False
        self._archives: tempfile.TemporaryDirectory[str] | None = None
        ours = session is None
        self._keeper = SessionKeeper[SparkSession](
            open_one=self._started,
            stop=stop_session if ours else _leave_open,
            discard=discard_session,
            abandon=cut_off if ours else _leave_open,
        )

    def run(self, tickets: Sequence[SlotTicket], between: Between | None = None) -> None:
        """Run one slot per ticket, with *between* as two processes, and wait for all of them."""
        session = self.session()
        try:
            self._ship(session)
            outcomes = self._outcomes(session, tickets, between)
        except TaskFailedError:
            raise
        except Exception as error:
            if between is not None:
                _raise_if_of_data(error)
            reason = in_short(error)
            self._look_after(session, error)
            raise RetriableError(f"The Spark job was lost: {reason}") from error
        _refuse_if_unclaimed(outcomes)

    def _outcomes(
        self, session: SparkSession, tickets: Sequence[SlotTicket], between: Between | None
    ) -> list[dict[str, Any]]:
        if between is None:
            return _run(session, slot_function(tickets, self._plugin_folders), len(tickets))
        job = split_job(session, tickets, between, self._plugin_folders)
        return job.toArrow().to_pylist()

    def require(self, modules: Iterable[str]) -> None:
        """Have these top-level modules, too, in every slot of later micro-batches. Any thread may call."""
        with self._shipping:
            self._modules |= set(modules)

    def sql_problems(self, between: Between) -> Sequence[Problem]:
        """What Spark does not take of *between*, where a session is open; opens none. Any thread may call."""
        session = self._keeper.opened()
        if session is None:
            return ()
        try:
            schema = from_arrow_schema(between.carries.schema())
            return sql_problems(session, schema, between.step)
        except Exception as error:  # noqa: BLE001 - the step is looked at again when its connector starts
            _log.debug("Spark was asked about a SQL step and did not answer: %s", in_short(error))
            return ()

    def session(self) -> SparkSession:
        """The session, opened and warmed when there is none."""
        return self._keeper.session()

    def close(self) -> None:
        """Stop the session that this engine opened, or give up opening it; the engine is of no use then."""
        self._keeper.close()
        archives, self._archives = self._archives, None
        if archives is not None:
            archives.cleanup()

    def _started(self) -> SparkSession:
        # To the end of its first job: Python processes take long, too, where a machine is busy.
        self.is_starting = True
        try:
            return self._told_opening()
        finally:
            self.is_starting = False

    def _told_opening(self) -> SparkSession:
        # It takes long enough for somebody who watches to wonder.
        if self._given is not None:
            return self._opened()
        place, started = self._place(), time.monotonic()
        _log.info("Starting Spark (%s) …", place)
        session = self._opened()
        _log.info("Spark (%s) is ready after %.0f s", place, time.monotonic() - started)
        return session

    def _opened(self) -> SparkSession:
        session: SparkSession | None = None
        try:
            session = self._given or open_session(self._settings)
            self._keeper.check_open()
            _refuse_speculation(session)
            self._ship(session)
            _run(session, warm, self.slots)
        except Exception as error:
            # Read before the session is discarded: what went wrong in Java has to be asked for there.
            reason = in_short(error)
            ours = self._given is None
            refused = isinstance(error, ConnectError)
            # A refusal without a session of ours may be about somebody else's, which is none of our business.
            if ours and not (refused and session is None):
                discard_session(session)
            if refused:
                raise
            raise self._not_started(reason) from error
        self._has_been_open = True
        return session

    def _place(self) -> str:
        if self._given is not None:
            return "the session that was given"
        place = self._settings.remote or self._settings.master or DEFAULT_MASTER
        # A remote's parameters may hold a token.
        return place.partition("/;")[0]

    def _not_started(self, reason: str) -> ConnectError:
        if self._has_been_open:
            return RetriableError(f"Spark could not be started again: {reason}")
        return TaskFailedError(
            f"Spark could not be started ({self._place()}): {reason}. Look whether it runs there, and at "
            "spark.master, spark.remote and the other spark.* keys of the worker."
        )

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

    def _look_after(self, session: SparkSession, error: Exception) -> None:
        if session is self._given or _is_alive(session, error):
            return
        if self._keeper.replace(session):
            _log.warning(
                "The Spark session was lost; a new one is opened for the next micro-batch."
            )


def _leave_open(*_: SparkSession) -> None:
    """A session of somebody else's is theirs to end."""


def _run(session: SparkSession, function: ArrowFunction, tasks: int) -> list[dict[str, Any]]:
    frame = session.range(0, tasks, 1, tasks).mapInArrow(function, OUTCOME_SCHEMA)
    return frame.toArrow().to_pylist()


def _raise_if_of_data(error: Exception) -> None:
    told = of_expression(error)
    if told is not None:
        raise TaskFailedError(f"SparkSql failed at a record's value. {told}") from error


def _refuse_if_unclaimed(outcomes: Sequence[dict[str, Any]]) -> None:
    """Tell why a slot could not even claim its work, such as a driver that it cannot reach."""
    for each in outcomes:
        if each["outcome"] == Outcome.STALE and each["reason"] != STALE:
            raise RetriableError(f"Slot {each['slot']} could not begin: {each['reason']}")


def _refuse_speculation(session: SparkSession) -> None:
    if session.conf.get("spark.speculation", "false") == "true":
        raise TaskFailedError(
            "The Spark session has spark.speculation=true: copies of a task would take each other's "
            "place. Use a session without it."
        )


def _is_alive(session: SparkSession, error: Exception) -> bool:
    """Whether *session* can run another job after one failed with *error*; runs none to find out."""
    if "stopped SparkContext" in full_text(error):
        return False
    try:
        return bool(session.conf.get("spark.app.name"))
    except Exception as gone:  # noqa: BLE001 - any failure of so small a question means "no"
        _log.debug("The Spark session does not answer: %s", gone)
        return False
