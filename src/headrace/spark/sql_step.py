"""A SQL step between reading and writing: the Spark job that contains it, and its effect on a frame's rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.connect.errors import TaskFailedError
from headrace.spark.slot_function import OUTCOME_SCHEMA, reading_function, writing_function
from headrace.spark.sql_check import sql_problems, types_after_step
from headrace.spark.sql_rows import (
    ROW,
    condition,
    expression,
    has_value,
    is_open,
    named,
    put_back,
    with_function,
)
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.reader import ArrowFlush
from headrace.task.sql.step import SqlStage, SqlStep

_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
# So many filler rows are made twice a second: Spark's default of 10,000 costs some milliseconds.
_MOST_ROWS: Final = 200_000
# Four of the buffers that Spark gives a Python process.
_FLUSH_OCTETS: Final = 4 * 65_536


def applied(frame: DataFrame, step: SqlStep) -> DataFrame:
    """*frame* after *step*: the same rows and columns, in the same order. Runs nothing.

    *frame* has the columns of frames of records. The function is applied first, then ``where``, then ``select``. They
    are evaluated for records (kind 0) that are to be kept. ``where`` only changes ``keep``; a record that is not kept
    has no value after a ``select`` or a function, and a null value stays null.

    Raises :class:`~headrace.connect.errors.TaskFailedError`, naming the setting, for what Spark refuses or would not
    execute row by row.
    """
    problems = sql_problems(frame.sparkSession, frame.schema, step)
    if problems:
        reasons = " ".join(f"{step.prefix}{name}: {sentence}" for name, sentence in problems)
        raise TaskFailedError(f"The SparkSql step is invalid. {reasons}")
    changed = with_function(frame, step.function) if step.function else frame
    filtered = _filtered(changed, step.where) if step.where else changed
    return _selected(filtered, step.select) if step.select else filtered


def _filtered(frame: DataFrame, text: str) -> DataFrame:
    is_true = F.coalesce(condition(text), F.lit(False))  # noqa: FBT003 (a literal)
    keep = F.when(is_open(ROW), is_true).otherwise(F.col(f"{ROW}.keep"))
    return put_back(named(frame), {"keep": keep})


def _selected(frame: DataFrame, items: tuple[str, ...]) -> DataFrame:
    value = F.when(is_open(ROW) & has_value(ROW), F.struct(*map(expression, items)))
    return put_back(named(frame), {"value": value})


def split_job(
    session: SparkSession,
    tickets: Sequence[SlotTicket],
    sql_stage: SqlStage,
    plugin_folders: Sequence[str] = (),
) -> DataFrame:
    """The outcomes of *tickets*' slots, each of which reads and writes in separate processes.

    The job has one stage, whose rows keep their order. Raises :class:`~headrace.connect.errors.TaskFailedError` for a
    step that Spark refuses, and for a session whose Arrow batch size would hold rows back.
    """
    count, types = len(tickets), types_after_step(session, sql_stage)
    reading = reading_function(tickets, types, _flush_settings(session), plugin_folders)
    frames = session.range(0, count, 1, count).mapInArrow(
        reading, from_arrow_schema(types.schema())
    )
    writing = writing_function(tickets, plugin_folders)
    return applied(frames, sql_stage.step).mapInArrow(writing, OUTCOME_SCHEMA)


def _flush_settings(session: SparkSession) -> ArrowFlush:
    value = session.conf.get(_ROWS)
    rows = int(str(value))
    if not 0 < rows <= _MOST_ROWS:
        raise TaskFailedError(
            f"The Spark session has {_ROWS}={value}: between reading and writing, rows would wait for that many "
            f"others. For a SparkSql step it must be from 1 to {_MOST_ROWS}; Spark's default is 10000."
        )
    return ArrowFlush(rows=rows, octets=_FLUSH_OCTETS)
