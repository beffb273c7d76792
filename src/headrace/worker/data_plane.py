"""The data plane of a worker, created when the first connector runs: Spark as configured, or the user's session."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Protocol

from headrace.config.spark_cores import shortage
from headrace.config.worker_config import WorkerConfig
from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.observe.log_format import in_log_context
from headrace.plugins import PluginPath, ValidatedConnector
from headrace.runtime.engine import Engine
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage, names_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.engine import SparkEngine

_log = logging.getLogger(__name__)


def spark_engine(
    config: WorkerConfig,
    connectors: Sequence[ValidatedConnector],
    session: SparkSession | None = None,
) -> SparkEngine:
    """The engine that *config* describes, or one on the user's *session*, which is never closed here.

    The modules of *connectors* that are not headrace's own are shipped to Spark. Raises
    :class:`~headrace.connect.errors.TaskFailedError` for a local *session* with fewer cores than slots, and
    for one that has ended.
    """
    if session is not None:
        _refuse_small(session, config.slots)
    # Importing Spark takes a second, and starts a JVM: only when something is to run.
    from headrace.spark.engine import SparkEngine  # noqa: PLC0415
    from headrace.spark.session import SparkSettings  # noqa: PLC0415

    keys = config.spark()
    settings = SparkSettings(
        master=keys.pop("spark.master", None), remote=keys.pop("spark.remote", None), conf=keys
    )
    modules = [
        name
        for each in connectors
        for name in foreign_modules(each.connector, (one.class_name for one in each.plugins))
    ]
    return SparkEngine(
        settings,
        slots=config.slots,
        session=session,
        modules=modules,
        plugin_folders=PluginPath(config.plugin_path).folders,
        sql=any(each.has_sql for each in connectors),
    )


def _refuse_small(session: SparkSession, slots: int) -> None:
    # It imports Spark, which is there only with a session.
    from headrace.spark.failures import in_short  # noqa: PLC0415

    try:
        master = session.conf.get("spark.master", None) or ""
    except Exception as error:
        raise TaskFailedError(
            f"The given Spark session does not answer: {in_short(error)}. Pass a running session."
        ) from error
    # The session may run on another machine, so local[*] says nothing; slots that do not start are reported later.
    problem = shortage(master, slots=slots, machine=None)
    if problem:
        raise TaskFailedError(f"The Spark session is too small. {problem}")


def foreign_modules(connector: SourceConnector, plugins: Iterable[str]) -> frozenset[str]:
    """The top-level modules that a connector's slots import and that are not part of headrace.

    *plugins* are the classes of its converters, transformations and predicates, custom ones as ``module:Class``.
    """
    places = (each.partition(":")[0] for each in plugins if ":" in each)
    modules = (connector.task_class.__module__, *places)
    return frozenset(each.partition(".")[0] for each in modules) - {"headrace"}


class ShippingEngine(Engine, Protocol):
    """An engine that ships plugins' modules to its slots."""

    def warm_up(self) -> None:
        """Start what the first run would start, and return when it has started; may be called while one runs."""
        ...

    def require(self, modules: Iterable[str], *, sql: bool = False) -> None:
        """Ship these top-level modules to every slot of later micro-batches; with *sql* records pass through Spark."""
        ...

    def sql_problems(self, sql_stage: SqlStage) -> Sequence[Problem]:
        """Problems of the expressions of *sql_stage*, as far as they can be found without starting anything."""
        ...


class LazyEngine:
    """A :class:`ShippingEngine` that creates the real one with *make*, once, at the first run. Any thread may call."""

    def __init__(self, make: Callable[[], ShippingEngine], *, slots: int) -> None:
        self.slots = slots
        self._make = make
        self._engine: ShippingEngine | None = None
        self._is_making = False
        self._is_closed = False
        self._ahead: Future[None] | None = None
        self._required = set[str]()
        self._sql = False
        # One thread creates the engine, the others wait; that imports libraries, and waits for nothing else.
        self._lock = threading.Lock()

    @property
    def is_starting(self) -> bool:
        """See :class:`~headrace.runtime.engine.Engine`."""
        engine = self._engine
        return self._is_making if engine is None else engine.is_starting

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """See :class:`~headrace.runtime.engine.Engine`."""
        self._made().run(tickets, sql_stage)

    def start_ahead(self) -> Future[None]:
        """Start the data plane on a thread, once, so that the first run need not wait; returns at once.

        What is returned is done when slots can begin at once, or has the error, which is logged, and which the first run meets again.
        """
        with self._lock:
            if self._ahead is not None:
                return self._ahead
            ahead = self._ahead = Future[None]()
        threading.Thread(
            target=in_log_context(partial(self._warm_up, ahead)), name="headrace-ahead", daemon=True
        ).start()
        return ahead

    def _warm_up(self, ahead: Future[None]) -> None:
        try:
            self._made().warm_up()
        except Exception as error:  # noqa: BLE001 (the first run meets it again, and reports it)
            level = logging.DEBUG if self._is_closed else logging.WARNING
            _log.log(level, "The data plane could not be started ahead: %s", error)
            ahead.set_exception(error)
        else:
            ahead.set_result(None)

    def require(self, modules: Iterable[str], *, sql: bool = False) -> None:
        """Pass *modules* and *sql* on to the engine, now or when it is created."""
        with self._lock:
            self._required.update(modules)
            self._sql = self._sql or sql
            if self._engine is not None:
                self._engine.require(self._required, sql=self._sql)

    def sql_problems(self, sql_stage: SqlStage) -> Sequence[Problem]:
        """The engine's problems with *sql_stage*; none before it has been created, which is not waited for."""
        engine = self._engine
        return () if engine is None else engine.sql_problems(sql_stage)

    def close(self) -> None:
        """Close the data plane if it was created, and never create it after this."""
        with self._lock:
            self._is_closed = True
            engine = self._engine
        if engine is not None:
            engine.close()

    def _made(self) -> ShippingEngine:
        with self._lock:
            if self._is_closed:
                raise RetriableError(
                    "The data plane cannot be started: the worker is shutting down."
                )
            if self._engine is None:
                self._is_making = True
                try:
                    self._engine = self._make()
                finally:
                    self._is_making = False
                self._engine.require(self._required, sql=self._sql)
            return self._engine


def lazy_engine(config: WorkerConfig, connectors: Sequence[ValidatedConnector] = ()) -> LazyEngine:
    """Spark as *config* describes it, started by the first run; *connectors* as for :func:`spark_engine`."""
    return LazyEngine(lambda: spark_engine(config, connectors), slots=config.slots)


def started_ahead(engine: Engine, configs: Iterable[Mapping[str, str | None]]) -> Future[None]:
    """Start *engine* before it has a connector, for those with *configs*; see :meth:`LazyEngine.start_ahead`.

    Whether they use Spark SQL decides how its JVM is started; one that is found later has it started anew. Another engine is taken for started.
    """
    if isinstance(engine, LazyEngine):
        engine.require((), sql=any(map(names_sql, configs)))
        return engine.start_ahead()
    started = Future[None]()
    started.set_result(None)
    return started
