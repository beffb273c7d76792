"""A job in which Spark stands between reading and writing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from headrace.connect.errors import TaskFailedError
from headrace.slot.split.between import Between
from headrace.slot.split.pushing import Push
from headrace.slot.work import SlotTicket
from headrace.spark.slot_function import OUTCOME_SCHEMA, reading_function, writing_function
from headrace.spark.sql_nulls import told_nulls
from headrace.spark.sql_step import applied

_ROWS: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
# Twice a second so many rows that mean nothing are made: 10,000, as usual, cost some milliseconds.
_MOST_ROWS: Final = 200_000
# Four of the buffers that Spark gives a Python process.
_PUSHED_OCTETS: Final = 4 * 65_536


def split_job(
    session: SparkSession,
    tickets: Sequence[SlotTicket],
    between: Between,
    plugin_folders: Sequence[str] = (),
) -> DataFrame:
    """The outcomes of *tickets*' slots, each of which reads and writes in a process of its own.

    One stage, whose rows keep their order. Raises :class:`~headrace.connect.errors.TaskFailedError` for a step
    that Spark refuses, and for a session in which rows would not come through.
    """
    count, carries = len(tickets), told_nulls(session, between)
    reading = reading_function(tickets, carries, _push(session), plugin_folders)
    frames = session.range(0, count, 1, count).mapInArrow(
        reading, from_arrow_schema(carries.schema())
    )
    writing = writing_function(tickets, plugin_folders)
    return applied(frames, between.step).mapInArrow(writing, OUTCOME_SCHEMA)


def _push(session: SparkSession) -> Push:
    told = session.conf.get(_ROWS)
    rows = int(str(told))
    if not 0 < rows <= _MOST_ROWS:
        raise TaskFailedError(
            f"The Spark session has {_ROWS}={told}: between reading and writing, rows would wait for that many "
            f"others. For a SparkSql step it has to be from 1 to {_MOST_ROWS}; 10000 is Spark's own."
        )
    return Push(rows=rows, octets=_PUSHED_OCTETS)
