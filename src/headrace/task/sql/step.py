"""The Spark SQL step of a connector, and the types of the records that reach it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from headrace.connect.errors import TaskFailedError

# Of records as SQL sees them: both are text.
HEADER: Final = pa.struct([pa.field("key", pa.utf8()), pa.field("value", pa.utf8())])


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
class FrameTypes:
    """The types of the keys and values of all records of a connector; fixed before its job begins.

    Both are Spark's, as ``spark_types.spark_type`` returns. *required* is the values' type with required fields kept
    (in *value* all are nullable), *after_step* the same after the step; each is ``None`` if nothing is required, or if
    it is unknown.
    """

    value: pa.DataType = field(default_factory=pa.utf8)
    key: pa.DataType = field(default_factory=pa.utf8)
    required: pa.DataType | None = None
    after_step: pa.DataType | None = None

    def schema(self) -> pa.Schema:
        """The columns of frames, in their order."""
        return pa.schema(
            {
                "kind": pa.int8(),
                "topic": pa.utf8(),
                "partition": pa.int32(),
                "key": self.key,
                "value": self.value,
                "headers": pa.list_(HEADER),
                "timestamp": pa.int64(),
                "source_partition": pa.int32(),
                "offset": pa.binary(),
                "keep": pa.bool_(),
                "payload": pa.binary(),
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStage:
    """A SQL *step* on records of the given *types*; fixed before a job begins."""

    step: SqlStep
    types: FrameTypes


def refuse_sql(sql_stage: SqlStage | None) -> None:
    """For engines without SQL: raises :class:`~headrace.connect.errors.TaskFailedError` if *sql_stage* is given."""
    if sql_stage is not None:
        raise TaskFailedError("A SparkSql step needs Spark, which this data plane does not use.")
