"""The data plane on Spark: one micro-batch is one job, one slot is one of its tasks."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.slot.work import STALE, Outcome, SlotTicket
from headrace.spark.session import SparkSettings, discard_session, open_session
from headrace.spark.shipping import ship
from headrace.spark.slot_function import OUTCOME_SCHEMA, ArrowFunction, slot_function, warm

_log = logging.getLogger(__name__)


class SparkEngine:
    """An ``Engine`` on a classic session, a cluster, or a Spark Connect server.

    The session is made when the first micro-batch starts, and again when it was lost. A *session* that is
    given belongs to the giver: it is used as it is and never closed. *modules* are the authors' top-level
    modules, which are shipped to every session.
    """

    def __init__(
        self,
        settings: SparkSettings,
        *,
        slots: int,
        session: SparkSession | None = None,
        modules: Sequence[str] = (),
    ) -> None:
        self.slots = slots
        self._settings = settings
        self._given = session
        self._modules = modules
        self._has_been_open = False
        self._archives: tempfile.TemporaryDirectory[str] | None = None
        self._session: SparkSession | None = None
        self._lock = threading.Lock()

    def run(self, tickets: Sequence[SlotTicket]) -> None:
        """Run one slot per ticket and wait for all of them."""
        session = self.session()
        try:
            outcomes = _run(session, slot_function(tickets), len(tickets))
        except Exception as error:
            self._look_after(session, error)
            raise RetriableError(f"The Spark job was lost: {_in_short(error)}") from error
        _refuse_if_unclaimed(outcomes)

    def session(self) -> SparkSession:
        """The session, opened and warmed when there is none."""
        with self._lock:
            if self._session is None:
                self._session = self._opened()
            return self._session

    def close(self) -> None:
        """Stop the session that this engine opened."""
        with self._lock:
            if self._session is not None and self._session is not self._given:
                # Its JVM ends with this Python process: ended sooner, PySpark's own threads would complain.
                self._session.stop()
            self._session = None
            if self._archives is not None:
                self._archives.cleanup()
                self._archives = None

    def _opened(self) -> SparkSession:
        session: SparkSession | None = None
        try:
            session = self._given or open_session(self._settings)
            _refuse_speculation(session)
            self._ship(session)
            _run(session, warm, self.slots)
        except ConnectError:
            raise
        except Exception as error:
            if self._given is None:
                discard_session(session)
            raise self._not_started(_in_short(error)) from error
        self._has_been_open = True
        return session

    def _not_started(self, reason: str) -> ConnectError:
        if self._has_been_open:
            return RetriableError(f"Spark could not be started again: {reason}")
        return TaskFailedError(
            f"Spark could not be started: {reason} Look at spark.master, spark.remote and the other "
            "spark.* keys of the worker."
        )

    def _ship(self, session: SparkSession) -> None:
        if self._modules:
            self._archives = self._archives or tempfile.TemporaryDirectory(prefix="headrace-")
            ship(session, self._modules, Path(self._archives.name))

    def _look_after(self, session: SparkSession, error: Exception) -> None:
        if session is self._given:
            return
        with self._lock:
            if session is not self._session or _is_alive(session, error):
                return
            _log.warning(
                "The Spark session was lost; a new one is opened for the next micro-batch."
            )
            discard_session(session)
            self._session = None


def _run(session: SparkSession, function: ArrowFunction, tasks: int) -> list[dict[str, Any]]:
    frame = session.range(0, tasks, 1, tasks).mapInArrow(function, OUTCOME_SCHEMA)
    return frame.toArrow().to_pylist()


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
    if "stopped SparkContext" in str(error):
        return False
    try:
        return bool(session.conf.get("spark.app.name"))
    except Exception as gone:  # noqa: BLE001 - any failure of so small a question means "no"
        _log.debug("The Spark session does not answer: %s", gone)
        return False


def _in_short(error: Exception) -> str:
    """The first line of a long message, and its last, where Python's tracebacks have the reason."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    ends = lines[:1] + lines[1:][-1:]
    return " … ".join(ends) or type(error).__name__
