"""What is reported about a failure of Spark."""

from __future__ import annotations

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.spark import engine, start
from headrace.spark.engine import SparkEngine
from headrace.spark.failures import in_short
from headrace.spark.session import SparkSettings

JAVA = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: java.lang.IllegalStateException: Spark context stopped while waiting for backend
\tat org.apache.spark.scheduler.TaskSchedulerImpl.waitBackendReady(TaskSchedulerImpl.scala:1224)
\tat java.base/java.lang.Thread.run(Thread.java:1583)
\t... 12 more
"""


class _LostError(Exception):
    """As an exception of Java's, whose text has to be asked for in a process that has ended."""

    def __str__(self) -> str:
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    ("long", "short"),
    [
        ("One line.", "One line"),
        ("First.\n  at some place\nValueError: the reason", "First. … ValueError: the reason"),
        (
            JAVA,
            "java.lang.IllegalStateException: Spark context stopped while waiting for backend",
        ),
        ("", "Exception"),
    ],
)
def test_a_long_message_is_shortened(long: str, short: str) -> None:
    """What went wrong, without the frames of Java's trace."""
    assert short == in_short(Exception(long))


def test_a_text_that_cannot_be_had_is_no_error_of_its_own() -> None:
    """Java's exceptions have no text any more once Java is gone."""
    assert "_LostError, and Spark's Java process has ended" == in_short(_LostError())


def test_a_master_that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to look at, also when the reason is lost with Spark's Java process."""

    def fail(_: SparkSettings, **__: object) -> None:
        raise _LostError

    monkeypatch.setattr(start, "open_session", fail)
    monkeypatch.setattr(start, "_START_SECONDS", 0)
    # It would end the Java process that other tests share.
    monkeypatch.setattr(start, "discard_session", lambda _: None)
    monkeypatch.setattr(engine, "discard_session", lambda _: None)
    tried = SparkEngine(SparkSettings(master="spark://127.0.0.1:1"), slots=1)

    with pytest.raises(TaskFailedError) as caught:
        tried.session()

    message = str(caught.value)
    assert message.startswith("Spark could not be started (spark://127.0.0.1:1): _LostError, and ")
    assert "spark.master" in message
