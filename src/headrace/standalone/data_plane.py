"""The data plane of a worker: Spark as its configuration says, or a session of somebody else's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.admission import Admitted, PluginPath
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import TaskFailedError
from headrace.runtime.settings.local_master import shortage
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.spark.reasons import in_short

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.spark.engine import SparkEngine


def spark_engine(
    config: WorkerConfig, connectors: Sequence[Admitted], session: SparkSession | None = None
) -> SparkEngine:
    """The engine that *config* asks for, or one on somebody's own *session*, which stays theirs.

    The modules of *connectors* that are not headrace's own are shipped to Spark. Raises
    :class:`~headrace.connect.errors.TaskFailedError` for a local *session* with fewer cores than slots, and
    for one that has ended.
    """
    if session is not None:
        _refuse_small(session, config.slots)
    # Spark takes a second to import, and a JVM to start: only when something is to run.
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
    )


def _refuse_small(session: SparkSession, slots: int) -> None:
    try:
        master = session.conf.get("spark.master", None) or ""
    except Exception as error:
        raise TaskFailedError(
            f"The Spark session that was given does not answer: {in_short(error)}. Give a running one."
        ) from error
    # Its machine may be another one, so local[*] says nothing; slots that do not start are told then.
    problem = shortage(master, slots=slots, machine=None)
    if problem:
        raise TaskFailedError(f"The Spark session is too small. {problem}")


def foreign_modules(connector: SourceConnector, plugins: Iterable[str]) -> frozenset[str]:
    """The top-level modules that a connector's slots import and headrace does not bring.

    *plugins* are the classes of its converters, transformations and predicates, authors' by where they lie.
    """
    places = (each.partition(":")[0] for each in plugins if ":" in each)
    modules = (connector.task_class.__module__, *places)
    return frozenset(each.partition(".")[0] for each in modules) - {"headrace"}
