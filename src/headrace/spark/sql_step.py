"""A SQL step between reading and writing: what becomes of a frame's rows."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)

from headrace.connect.errors import TaskFailedError
from headrace.slot.sql_step import SqlStep
from headrace.spark.sql_check import sql_problems
from headrace.spark.sql_function import with_function
from headrace.spark.sql_names import ROW, condition, expression, named
from headrace.spark.sql_rows import has_value, is_open, put_back


def applied(frame: DataFrame, step: SqlStep) -> DataFrame:
    """*frame* as *step* leaves it: the same rows and columns, in their order. Runs nothing.

    *frame* has the columns of frames of records. The function comes first, then ``where``, then ``select``. They are
    evaluated for records (kind 0) that are to be kept. ``where`` only changes ``keep``; what is not to be kept
    has no value behind a ``select`` or a function, and a null value stays null.

    Raises :class:`~headrace.connect.errors.TaskFailedError`, naming the setting, for what Spark refuses, and for
    what it would not do row by row.
    """
    problems = sql_problems(frame.sparkSession, frame.schema, step)
    if problems:
        told = " ".join(f"{step.prefix}{name}: {sentence}" for name, sentence in problems)
        raise TaskFailedError(f"SparkSql cannot do what it is asked. {told}")
    changed = with_function(frame, step.function) if step.function else frame
    judged = _judged(changed, step.where) if step.where else changed
    return _selected(judged, step.select) if step.select else judged


def _judged(frame: DataFrame, text: str) -> DataFrame:
    is_true = F.coalesce(condition(text), F.lit(False))  # noqa: FBT003 (a literal)
    keep = F.when(is_open(ROW), is_true).otherwise(F.col(f"{ROW}.keep"))
    return put_back(named(frame), {"keep": keep})


def _selected(frame: DataFrame, items: tuple[str, ...]) -> DataFrame:
    value = F.when(is_open(ROW) & has_value(ROW), F.struct(*map(expression, items)))
    return put_back(named(frame), {"value": value})
