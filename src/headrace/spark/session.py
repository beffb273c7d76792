"""A Spark session: opened from a worker's settings, kept for all threads, and replaced when it is lost."""

from __future__ import annotations

import logging
import os
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.jvm.class_archive import ClassArchive
from headrace.jvm.jars import spark_jars
from headrace.jvm.java import find_java, spark_python
from headrace.spark import java_process

_log = logging.getLogger(__name__)

DEFAULT_MASTER = "local[2]"
# py4j logs every connection that it closes.
logging.getLogger("py4j").setLevel(logging.WARNING)
# These print each refused expression with Java's stack trace as JSON; the worker's own log has the reason.
for _context in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    logging.getLogger(_context).setLevel(logging.CRITICAL)

# Users may override these keys.
_DEFAULTS = {
    "spark.app.name": "headrace",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    # Nothing is shuffled, so there is nothing to adapt, and planning is quicker without.
    "spark.sql.adaptive.enabled": "false",
    "spark.python.daemon.module": "headrace.spark.python_daemon",
    "spark.python.worker.reuse": "true",
    # A file in the working directory must not hide a module of Python's own from the processes of slots.
    "spark.executorEnv.PYTHONSAFEPATH": "1",
}
# A slot is retried with a new plan; a copy that Spark starts on its own would find its token claimed.
_FIXED = {"spark.speculation": "false"}
# The client would ask an unreachable Spark Connect server for minutes to release the session, which expires anyway.
_STOP_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs: a ``spark.master``, or a Spark Connect server's ``spark.remote``.

    *conf* are further ``spark.*`` keys, passed through unchanged.
    """

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict[str, str])


def open_session(settings: SparkSettings, *, java_options: Sequence[str] = ()) -> SparkSession:
    """Open a session with *settings*. Starting a classic one takes seconds; a remote server is connected to.

    *java_options* are for the JVM of a classic session, quoted where necessary. Raises
    :class:`~headrace.connect.errors.TaskFailedError` when this process has a session already.
    """
    refuse_active_session()
    if settings.remote:
        builder = SparkSession.builder.remote(settings.remote)
    else:
        builder = SparkSession.builder.master(settings.master or DEFAULT_MASTER)
    if not os.environ.get("PYSPARK_PYTHON"):
        os.environ.update(spark_python(sys.executable, os.environ.get("PATH", "")))
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    keys = {**({} if settings.remote else _defaults(java_options)), **settings.conf, **_FIXED}
    for key, value in keys.items():
        builder = builder.config(key, value)
    starts_java = not settings.remote or settings.remote.startswith("local")
    # A server refuses it, which no user can change; engines refuse a session in which it is true.
    warnings.filterwarnings("ignore", "Failed to set spark.speculation ")
    python = settings.conf.get("spark.pyspark.python")
    started_with = {
        **({"JAVA_HOME": str(find_java().home)} if starts_java else {}),
        # PySpark itself looks at the key only where spark-submit has started it.
        **({"PYSPARK_PYTHON": python} if python else {}),
    }
    with _in_environment(started_with):
        java_process.silence_py4j_traces()
        session = builder.getOrCreate()
    if not settings.remote:
        java_process.mute_accumulators(session)
    return session


def refuse_active_session() -> None:
    """Raise :class:`~headrace.connect.errors.TaskFailedError` when this process has a Spark session.

    PySpark would return that session instead of a new one, and headrace would stop it at the end.
    """
    if _has_session():
        raise TaskFailedError(
            "This program has an active Spark session, which headrace would take over and stop at the "
            "end. Pass it to headrace.run as spark=…, or stop it before."
        )


def _has_session() -> bool:
    context = getattr(SparkContext, "_active_spark_context", None)
    return context is not None or _remote_session() is not None


def _remote_session() -> Any:  # noqa: ANN401 (its type is in a module that may not be importable)
    """The process's session on a Spark Connect server, also while it is being opened."""
    # If such a session exists, the module is imported; it needs packages that may not be installed.
    module = sys.modules.get("pyspark.sql.connect.session")
    return None if module is None else module.SparkSession._get_default_session()  # noqa: SLF001


def stop_session(session: SparkSession, *, within: float = _STOP_SECONDS) -> None:
    """Stop a session that headrace opened, for at most *within* seconds; called when its work is over.

    Its JVM ends with this Python process: if it ended before, PySpark's own threads would log errors.
    """
    stopping = threading.Thread(
        target=_stop, args=(session,), name="headrace-spark-stop", daemon=True
    )
    stopping.start()
    stopping.join(within)
    if stopping.is_alive():
        _log.warning("The Spark session did not stop in %g s; it is aborted.", within)
        cut_off()


def cut_off() -> None:
    """Make every thread that waits for Spark fail at once; may be called from any thread.

    The JVM that this process has started is killed, and the connection to a Spark Connect server closed.
    """
    remote = _remote_session()
    if remote is not None:
        # Left open, it would retry an unreachable server for minutes when Python exits.
        remote.client.close()
    java_process.kill()


def discard_session(session: SparkSession | None) -> None:
    """Forget a session that does not answer, and end its JVM, so that another can be opened."""
    if session is not None:
        _stop(session)
    cut_off()
    java_process.forget()


def _stop(session: SparkSession) -> None:
    try:
        session.stop()
    except Exception as error:  # noqa: BLE001 - the session is lost already; the caller's next steps matter
        _log.debug("The Spark session could not be stopped: %s", error)


def class_archive() -> ClassArchive:
    """The class archive of the JVM that headrace's sessions start. Raises ConnectError if there can be none."""
    return ClassArchive(find_java(), spark_home() / "jars")


def spark_home() -> Path:
    """The home of the Spark whose JVM headrace's sessions start."""
    home = os.environ.get("SPARK_HOME")
    return Path(home).absolute() if home else spark_jars().parent


def _defaults(java_options: Sequence[str]) -> dict[str, str]:
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    options = [f"-Dlog4j2.configurationFile={quiet}", *java_options]
    return {**_DEFAULTS, "spark.driver.extraJavaOptions": " ".join(options)}


@contextmanager
def _in_environment(values: Mapping[str, str]) -> Generator[None]:
    """Have Spark start with these *values*, such as the Java that headrace has found; programs that are started later do not inherit them."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


Session = TypeVar("Session")

# PySpark keeps its gateway and its session in class attributes, so a process opens one at a time.
_process = threading.Lock()


class SessionKeeper(Generic[Session]):
    """Opens and replaces a session. Any thread may call :meth:`session`; one opens it, the others wait for it.

    Opening may block indefinitely: a cluster without free cores, a server that does not answer. So no lock that
    :meth:`close` needs is held meanwhile. *open_one* opens a session and cleans up when it raises, *stop*
    ends a session quickly, *discard* cleans up after a lost one, which may also take long, and *abandon*, which
    another thread calls, makes the two long operations fail soon if that is possible.
    """

    def __init__(
        self,
        *,
        open_one: Callable[[], Session],
        stop: Callable[[Session], None],
        discard: Callable[[Session], None],
        abandon: Callable[[], None],
    ) -> None:
        self._open_one = open_one
        self._stop = stop
        self._discard = discard
        self._abandon = abandon
        self._changed = threading.Condition()
        self._session: Session | None = None
        self._busy = False
        self._under_way = False
        self._closed = False

    def session(self) -> Session:
        """The session, opened when there is none.

        Raises what opening it raises, and :class:`~headrace.connect.errors.RetriableError` once closed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._busy)
            self.check_open()
            if self._session is not None:
                return self._session
            self._busy = True
        with self._alone():
            return self._opened()

    def opened(self) -> Session | None:
        """The session if one is open; does not open one and does not wait."""
        with self._changed:
            return self._session

    def replace(self, session: Session) -> bool:
        """Discard *session*, which is lost; ``False`` when another thread has done so already."""
        with self._changed:
            if self._session is not session:
                return False
            self._session, self._busy = None, True
        with self._alone():
            self._discard(session)
        return True

    def close(self) -> None:
        """Stop the session; if one is being opened, give it up without waiting for it."""
        with self._changed:
            self._closed = True
            session, self._session = self._session, None
            under_way = self._under_way
            self._changed.notify_all()
        if session is not None:
            self._stop(session)
        elif under_way:
            self._abandon()

    def check_open(self) -> None:
        """Raise :class:`~headrace.connect.errors.RetriableError` once closed; *open_one* calls it between steps."""
        if self._closed:
            raise _too_late()

    @contextmanager
    def _alone(self) -> Generator[None]:
        try:
            with _process:
                with self._changed:
                    self.check_open()
                    self._under_way = True
                yield
        finally:
            with self._changed:
                self._busy = self._under_way = False
                self._changed.notify_all()

    def _opened(self) -> Session:
        try:
            session = self._open_one()
        except Exception as error:
            if self._closed:
                raise _too_late() from error
            raise
        with self._changed:
            if not self._closed:
                self._session = session
                return session
        self._stop(session)
        raise _too_late()


def _too_late() -> RetriableError:
    return RetriableError("Spark is not started any more: its worker has been closed.")
