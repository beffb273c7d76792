"""Which failures of a job are about a value, and what is said of them."""

from __future__ import annotations

import re

import pytest
from pyspark.sql import SparkSession

from headrace.spark.engine import SparkEngine
from headrace.spark.failures import of_expression
from headrace.spark.job import applied
from headrace.task.sql.step import SqlStep
from spark.sql_frames import frame, left_of, row


@pytest.fixture(scope="module")
def session(spark_engine: SparkEngine) -> SparkSession:
    """The session that all tests share."""
    return spark_engine.session()


@pytest.mark.spark
def test_a_value_that_an_expression_cannot_take_is_told_in_sparks_words(
    session: SparkSession,
) -> None:
    """The first sentence of a job's failure, which says what to write instead."""
    step = SqlStep(select=("CAST(b AS INT) AS n",))

    with pytest.raises(Exception, match="CAST_INVALID_INPUT") as failed:
        left_of(applied(frame(session, [row({"a": 1, "b": "x"})]), step))

    expected = '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT"'
    found = of_expression(failed.value) or ""
    assert (expected, True) == (found[: len(expected)], found.endswith("with where."))


def test_what_an_expression_could_not_take_is_found_among_what_java_tells() -> None:
    """Spark wraps it, and adds where in its own code it happened."""
    message = "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012"
    error = Exception(
        f"Job aborted: java.lang.X: {message}\n== SQL ==\n1 / a\n\tat org.apache.Y.z(Y.java:1)"
    )

    said = f"{message}. The expression is 1 / a. errors.tolerance does not apply. Use a variant that returns null"
    assert said in (of_expression(error) or "")


@pytest.mark.parametrize(
    "message",
    [
        "[DUPLICATED_MAP_KEY] Duplicate map key 0 was found.\nSet LAST_WIN. SQLSTATE: 23505",
        "[MALFORMED_RECORD_IN_PARSING.X] Malformed: {x.\nParse Mode: FAILFAST. SQLSTATE: 22023",
        "[FAILED_EXECUTE_UDF] User defined function failed. SQLSTATE: 39000",
        "java.util.IllegalFormatConversionException: d != java.lang.String",
        "java.lang.reflect.InvocationTargetException",
        "java.lang.NumberFormatException: For input string: x",
    ],
)
def test_a_failure_that_comes_again_whenever_the_value_is_read_is_about_an_expression(message: str):
    """Spark's own are on several lines; Java's have no state of SQL."""
    error = Exception(
        "Job aborted due to stage failure: Lost task 0.0 in stage 3.0 (TID 3) (h executor driver): "
        f"{message}\n\tat org.apache.Y.z(Y.java:1)\n\nDriver stacktrace:"
    )

    assert (of_expression(error) or "").startswith(" ".join(message.split()))


@pytest.mark.parametrize(
    "message",
    [
        "Job aborted. SQLSTATE: XXKDA",
        "[UNABLE_TO_ACQUIRE_MEMORY] Not enough. SQLSTATE: 53200",
        "[INTERNAL_ERROR] It broke. SQLSTATE: XX000 [CAST_OVERFLOW] without a state",
        "Lost task 0.0 in stage 3.0 (TID 3) (h executor 1): ExecutorLostFailure (executor 1 exited)",
        "Lost task 0.0 in stage 3.0 (TID 3) (h executor 1): java.io.IOException: no space left",
        "Lost task 0.0 in stage 3.0 (TID 3) (h executor 1): java.lang.OutOfMemoryError: Java heap space",
        "Lost task 0.0 in stage 3.0 (TID 3) (h executor 1): java.lang.IllegalStateException: stopped",
        "Lost task 0.0 in stage 3.0 (TID 3) (h executor 1): java.util.concurrent.TimeoutException",
        "Lost task 0.0 in stage 3.0 (TID 3) (h executor 1): org.apache.spark.SparkException: Python worker exited",
    ],
)
def test_other_failures_of_jobs_are_not_about_expressions(message: str) -> None:
    """They may pass, and are tried again."""
    assert None is of_expression(Exception(message))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "size(sequence(a, a + 4, 0 * a))",
            "Illegal sequence boundaries: 1 to 5 by 0",
        ),
        ("format_string('%d', b)", "java.util.IllegalFormatConversionException: d != "),
        ("length(repeat(b, 2147483647))", "java.lang.ArithmeticException: integer overflow"),
        ("to_json(map(a, b, a, b))", "[DUPLICATED_MAP_KEY] "),
        ("from_json(b, 'i INT', map('mode', 'FAILFAST'))", "[MALFORMED_RECORD_IN_PARSING"),
    ],
)
def test_a_value_that_spark_or_java_refuses_is_found_in_a_real_jobs_failure(
    session: SparkSession, expression: str, expected: str
) -> None:
    """Whatever class of exception it comes as."""
    step = SqlStep(select=(f"{expression} AS n",))

    with pytest.raises(Exception, match=re.escape(expected)) as failed:
        left_of(applied(frame(session, [row({"a": 1, "b": "x1"})]), step))

    assert expected in (of_expression(failed.value) or "")
