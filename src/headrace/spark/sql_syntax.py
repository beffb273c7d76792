"""Whether Spark understands the expressions of a SQL step, whatever the records are that they are for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession

from headrace.connect.config import Problem
from headrace.slot.sql_step import SqlStep
from headrace.spark.reasons import of_analysis
from headrace.spark.sql_names import condition, expression


def syntax_problems(session: SparkSession, step: SqlStep) -> Iterator[Problem]:
    """The expressions of *step* that are none: settings of SparkSql, each with Spark's sentence. Runs nothing.

    Raises what Spark raises when it does not answer.
    """
    rows = session.range(0)
    if step.where is not None:
        yield from _misread(rows, "where", step.where, condition)
    for each in step.select:
        yield from _misread(rows, "select", each, expression)


def _misread(
    rows: DataFrame, name: str, text: str, read: Callable[[str], Column]
) -> Iterator[Problem]:
    try:
        # Asked for its columns: over Spark Connect nothing is read before.
        _ = rows.select(read(text)).columns
    except ParseException as error:
        yield name, f"{text}: {of_analysis(error)}"
    except AnalysisException:
        # These rows have none of the names in it, which is no fault of the expression.
        return
