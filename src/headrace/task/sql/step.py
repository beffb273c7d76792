"""What a connector asks of Spark SQL between reading and writing, as a stage of the micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.task.sql.row_types import FrameTypes


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    """A Spark SQL step of a chain, as ``headrace.transforms.SparkSql`` is configured; JSON-able.

    *function* is where a Python function from DataFrame to DataFrame lies, and comes first; *where* is an
    expression that says which records stay, *select* are the expressions that become the value's fields. An
    empty *select* leaves the value as it is. *prefix* is what its settings begin with in the connector's
    configuration, such as ``transforms.sql.``.
    """

    select: tuple[str, ...] = ()
    where: str | None = None
    function: str | None = None
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStage:
    """A *step* of SQL on records of the types *carries*; known before a job begins."""

    step: SqlStep
    carries: FrameTypes


def refuse_sql(between: SqlStage | None) -> None:
    """For a data plane without SQL: raises :class:`~headrace.connect.errors.TaskFailedError` when it is asked for."""
    if between is not None:
        raise TaskFailedError("A SparkSql step needs Spark, and this data plane is another one.")
