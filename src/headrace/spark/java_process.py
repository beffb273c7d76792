"""The Java process that PySpark has started for this one, which it keeps in attributes of its classes."""

from __future__ import annotations

import logging
import os
import subprocess
import warnings
from contextlib import suppress
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def end(*, seconds: float) -> None:
    """Ask it to end, and wait for that, but no longer than *seconds*; called when no session is left.

    PySpark leaves it to the end of a pipe, and so to a moment after this program's own end.
    """
    gateway = _gateway()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(seconds)


def kill() -> None:
    """Kill it, so that every thread that waits for it fails at once; from any thread."""
    gateway = _gateway()
    if gateway is not None:
        logging.getLogger().addFilter(_is_no_echo)
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process")
        gateway.proc.kill()


def forget() -> None:
    """Wait for the end of one that was killed, and let PySpark start another for its next session.

    One that is about to die still looks alive for a moment; and a live one without a session is of no
    use, because PySpark would not make another session in it. So it has to be killed before.
    """
    gateway = _gateway()
    if gateway is None:
        return
    gateway.proc.communicate()
    gateway.shutdown()
    for name in ("_gateway", "_jvm", "_active_spark_context"):
        setattr(SparkContext, name, None)
    SparkSession._instantiatedSession = None  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]  # noqa: SLF001
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"):
        os.environ.pop(name, None)


def _gateway() -> Any:  # noqa: ANN401 (py4j has no types)
    """PySpark's connection to it; ``None`` without one, and for a Java process of somebody else's."""
    gateway = getattr(SparkContext, "_gateway", None)
    return None if getattr(gateway, "proc", None) is None else gateway


def _is_no_echo(record: logging.LogRecord) -> bool:
    """Whether *record* is another one than py4j's of the error that it also raises, on the root logger."""
    return record.msg != "Exception while sending command."
