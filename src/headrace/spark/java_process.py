"""The Java process that PySpark has started for this process; PySpark keeps it in attributes of its classes."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import traceback
import warnings
from contextlib import suppress
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)

_DYING_SECONDS = 1.0
_KILLED = (-signal.SIGKILL, -signal.SIGTERM, 128 + signal.SIGKILL, 128 + signal.SIGTERM)


def end(*, seconds: float) -> None:
    """Let it end, and wait for at most *seconds*; called when no session is left.

    Otherwise it would end only when a pipe is closed, shortly after the end of this program.
    """
    gateway = _gateway()
    if gateway is not None:
        gateway.shutdown()
        gateway.proc.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            gateway.proc.wait(seconds)


def silence_py4j_traces() -> None:
    """Keep py4j from logging a stack trace in each thread that notices that the JVM is gone.

    The same error is raised to the caller, who reports it in one sentence.
    """
    logging.getLogger().addFilter(_is_no_py4j_trace)


def mute_accumulators(session: SparkSession) -> None:
    """Keep *session*'s accumulator server, which headrace does not use, from printing when its connection ends."""
    server = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = _log_failed_request


def _log_failed_request(_request: object, _address: object) -> None:
    lost = isinstance(sys.exception(), (OSError, EOFError))
    level = logging.DEBUG if lost else logging.ERROR
    _log.log(level, "A request to PySpark's accumulator server failed", exc_info=True)


def ending() -> str:
    """How the JVM ended, as the predicate of a sentence; "does not answer" if it has not."""
    gateway = _gateway()
    code = None if gateway is None else _exit_code(gateway.proc)
    return "does not answer" if code is None else _in_words(code)


def has_ended() -> bool:
    """Whether no Java process runs: it was not started, or has ended."""
    gateway = _gateway()
    return gateway is None or _exit_code(gateway.proc) is not None


def own_ending(error: Exception) -> str | None:
    """How the JVM ended by itself, as the predicate of a sentence, when *error* is why there is no session.

    ``None`` if it runs, was killed, or could not be launched.
    """
    code = _code_at_start(error)
    return None if code is None or code in _KILLED else _in_words(code)


def killing(error: Exception) -> str | None:
    """How the JVM was killed, as the predicate of a sentence, when *error* is why there is no session."""
    code = _code_at_start(error)
    return _in_words(code) if code in _KILLED else None


def _code_at_start(error: Exception) -> int | None:
    gateway = _gateway()
    process = _launched(error) if gateway is None else gateway.proc
    return None if process is None else _exit_code(process)


def _in_words(code: int) -> str:
    if code < 0:
        return f"was ended by {signal.Signals(-code).name}"
    return f"has ended with exit code {code}"


def _launched(error: Exception) -> subprocess.Popen[bytes] | None:
    """The JVM that PySpark launched but could not connect to: only the frames that raised *error* refer to it."""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        process = frame.f_locals.get("proc")
        if isinstance(process, subprocess.Popen):
            return process
    return None


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    with suppress(subprocess.TimeoutExpired):
        # A killed process looks alive for a moment.
        return process.wait(_DYING_SECONDS)
    return None


def kill() -> None:
    """Kill it, so that every thread that waits for it fails at once; from any thread."""
    gateway = _gateway()
    if gateway is not None:
        warnings.filterwarnings("ignore", "Unable to cleanly shutdown Spark JVM process")
        gateway.proc.kill()


def forget() -> None:
    """Wait for the end of a killed process, and let PySpark start another for its next session.

    A dying process still looks alive for a moment, and PySpark would not create another session in a live one. So
    it has to be killed before.
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
    """PySpark's connection to it; ``None`` without one, and for a Java process that PySpark did not start."""
    gateway = getattr(SparkContext, "_gateway", None)
    return None if getattr(gateway, "proc", None) is None else gateway


def _is_no_py4j_trace(record: logging.LogRecord) -> bool:
    """Whether *record* is not py4j's log line about an error that it also raises."""
    return record.msg != "Exception while sending command."
