"""The Spark SQL step of a connector: which transformation it is, the types of the records that reach it, and the work on either side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from headrace.task.connector_spec import StageChoice
from headrace.task.slot_work import SlotWork
from headrace.transforms.spark_sql import SPARK_SQL, SparkSqlConfig

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


def is_sql(choice: StageChoice) -> bool:
    """Whether *choice* is executed by Spark. Pure; classes are named in full."""
    return choice.transform.class_name == SPARK_SQL


def names_sql(config: Mapping[str, str | None]) -> bool:
    """Whether a transformation of *config*, which need not be valid, seems to be one that Spark executes. Pure."""
    name = SPARK_SQL.rpartition(".")[2]
    return any(
        key.endswith(".type") and (value or "").rpartition(".")[2] == name
        for key, value in config.items()
    )


def sql_step(choices: Sequence[StageChoice]) -> SqlStep | None:
    """The step that Spark executes between reading and writing, if any; a chain has at most one. Pure.

    Raises :class:`~headrace.connect.errors.ConfigError` for invalid settings.
    """
    return next((_step_of(each.transform.config) for each in choices if is_sql(each)), None)


def _step_of(settings: Mapping[str, str]) -> SqlStep:
    config = SparkSqlConfig.parse(settings)
    return SqlStep(
        select=config.items(),
        where=(config.where or "").strip() or None,
        function=(config.function or "").strip() or None,
    )


def work_of_reading(work: SlotWork) -> SlotWork:
    """*work* with the transformations before the SQL step."""
    return _with(work, work.spec.transforms[: _sql_index(work)])


def work_of_writing(work: SlotWork) -> SlotWork:
    """*work* with the transformations after the SQL step, and nothing to read."""
    return replace(_with(work, work.spec.transforms[_sql_index(work) + 1 :]), splits=())


def _with(work: SlotWork, transforms: tuple[StageChoice, ...]) -> SlotWork:
    return replace(work, spec=replace(work.spec, transforms=transforms))


def _sql_index(work: SlotWork) -> int:
    return [is_sql(each) for each in work.spec.transforms].index(True)
