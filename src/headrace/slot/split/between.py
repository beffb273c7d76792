"""What happens to frames between the process that reads them and the one that writes them."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.slot.split.types import FrameTypes
from headrace.slot.sql_step import SqlStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Between:
    """A *step* of SQL on records of the types *carries*; known before a job begins."""

    step: SqlStep
    carries: FrameTypes


def refuse_sql(between: Between | None) -> None:
    """For a data plane without SQL: raises :class:`~headrace.connect.errors.TaskFailedError` when it is asked for."""
    if between is not None:
        raise TaskFailedError("A SparkSql step needs Spark, and this data plane is another one.")
