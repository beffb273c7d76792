"""Builds a Spark session from a worker's settings, and clears away one that is lost."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from headrace.jvm.java import find_java

_log = logging.getLogger(__name__)
# It tells of every connection that it closes.
logging.getLogger("py4j").setLevel(logging.WARNING)

# Spark's own log repeats what headrace reports; whoever wants it sets these keys.
_DEFAULTS = {
    "spark.app.name": "headrace",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.python.worker.reuse": "true",
}
# A slot's own retry is a new plan; a copy that Spark starts by itself finds its token claimed.
_FIXED = {"spark.speculation": "false"}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSettings:
    """Where Spark runs: a ``spark.master``, or a Spark Connect server's ``spark.remote``.

    *conf* are further ``spark.*`` keys, passed through as they are.
    """

    master: str | None = None
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict[str, str])


def open_session(settings: SparkSettings) -> SparkSession:
    """A session as *settings* say. Starting a classic one takes seconds; a remote one is joined."""
    if settings.remote:
        builder = SparkSession.builder.remote(settings.remote)
    else:
        builder = SparkSession.builder.master(settings.master or "local[2]")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    keys = {**({} if settings.remote else _defaults()), **settings.conf, **_FIXED}
    for key, value in keys.items():
        builder = builder.config(key, value)
    starts_java = not settings.remote or settings.remote.startswith("local")
    with _our_java() if starts_java else nullcontext():
        return builder.getOrCreate()


def discard_session(session: SparkSession | None) -> None:
    """Forget a session that does not answer, and end its JVM, so that another can be opened."""
    try:
        if session is not None:
            session.stop()
    except Exception as error:  # noqa: BLE001 - it is lost already; what counts is the cleaning below
        _log.debug("The lost Spark session could not be stopped: %s", error)
    gateway = getattr(SparkContext, "_gateway", None)
    if gateway is None:
        return
    # A JVM that is about to die still looks alive for a moment; and a live one without a session is of
    # no use, because PySpark would not make another session in it.
    gateway.proc.kill()
    gateway.proc.communicate()
    gateway.shutdown()
    # PySpark keeps the dead JVM's gateway in class attributes and would use it again.
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
    SparkSession._instantiatedSession = None  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]  # noqa: SLF001
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        os.environ.pop(name, None)


def _defaults() -> dict[str, str]:
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    return {**_DEFAULTS, "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}"}


@contextmanager
def _our_java() -> Generator[None]:
    """Spark starts our Java home; programs that this process starts later do not inherit it."""
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = str(find_java().home)
    try:
        yield
    finally:
        if before is None:
            del os.environ["JAVA_HOME"]
        else:
            os.environ["JAVA_HOME"] = before
