"""The Spark jobs: one of a micro-batch has one stage, with a task for each slot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.connect.errors import TaskFailedError
from headrace.spark.slot_function import (
    OUTCOME_SCHEMA,
    ArrowFunction,
    for_this_version,
    reading_function,
    slot_function,
    warm,
    writing_function,
)
from headrace.spark.sql_check import sql_problems, types_after_step
from headrace.spark.sql_step import with_expressions
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.reader import ArrowFlush
from headrace.task.sql.step import SqlStage, SqlStep

_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
# So many filler rows are made twice a second: Spark's default of 10,000 costs some milliseconds.
_MOST_ROWS: Final = 200_000
# Four of the buffers that Spark gives a Python process.
_FLUSH_OCTETS: Final = 4 * 65_536


def run_slots(
    session: SparkSession,
    tickets: Sequence[SlotTicket],
    sql_stage: SqlStage | None = None,
    plugin_folders: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Run the job of a micro-batch, one slot per ticket, and return the slots' outcomes when all have ended.

    Raises what :func:`split_job` raises, and what Spark raises when the job is lost.
    """
    if sql_stage is None:
        return _run(session, slot_function(tickets, plugin_folders), len(tickets))
    return split_job(session, tickets, sql_stage, plugin_folders).toArrow().to_pylist()


def first_job(session: SparkSession, *, slots: int) -> None:
    """Start a Python process for each slot, which imports everything that slots need."""
    _run(session, warm, slots)


def _run(session: SparkSession, function: ArrowFunction, tasks: int) -> list[dict[str, Any]]:
    frame = session.range(0, tasks, 1, tasks).mapInArrow(for_this_version(function), OUTCOME_SCHEMA)
    return frame.toArrow().to_pylist()


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
        for_this_version(reading, tells=False), from_arrow_schema(types.schema())
    )
    writing = writing_function(tickets, plugin_folders)
    return applied(frames, sql_stage.step).mapInArrow(for_this_version(writing), OUTCOME_SCHEMA)


def _flush_settings(session: SparkSession) -> ArrowFlush:
    value = session.conf.get(_ROWS)
    rows = int(str(value))
    if not 0 < rows <= _MOST_ROWS:
        raise TaskFailedError(
            f"The Spark session has {_ROWS}={value}: between reading and writing, rows would wait for that many "
            f"others. For a SparkSql step it must be from 1 to {_MOST_ROWS}; Spark's default is 10000."
        )
    return ArrowFlush(rows=rows, octets=_FLUSH_OCTETS)


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
    return with_expressions(frame, step)
