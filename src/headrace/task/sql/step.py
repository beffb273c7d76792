"""The Spark SQL step of a connector between reading and writing, as a stage of the micro-batch."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.errors import TaskFailedError
from headrace.task.sql.row_types import FrameTypes


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    """A Spark SQL step of a chain, as ``headrace.transforms.SparkSql`` is configured; JSON-able.

    *function* is the path of a Python function from DataFrame to DataFrame, which is applied first; *where* is a
    condition for the records that are kept, *select* are the expressions that become the value's fields. An
    empty *select* leaves the value unchanged. *prefix* is that of its settings in the connector's configuration,
    such as ``transforms.sql.``.
    """

    select: tuple[str, ...] = ()
    where: str | None = None
    function: str | None = None
    prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStage:
    """A SQL *step* on records of the types *carries*; fixed before a job begins."""

    step: SqlStep
    carries: FrameTypes


def refuse_sql(between: SqlStage | None) -> None:
    """For engines without SQL: raises :class:`~headrace.connect.errors.TaskFailedError` if *between* is given."""
    if between is not None:
        raise TaskFailedError("A SparkSql step needs Spark, which this data plane does not use.")
