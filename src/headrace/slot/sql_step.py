"""What a connector asks of Spark SQL between reading and writing."""

from __future__ import annotations

from dataclasses import dataclass


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
