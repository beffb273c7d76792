"""Which parts of a value a SQL step may make null that were required when it was read: told without a record."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from headrace.slot.split.between import Between
from headrace.slot.split.types import FrameTypes, travelling
from headrace.slot.sql_step import SqlStep
from headrace.spark.answers import Answers
from headrace.spark.sql_check import sql_problems, stand_in
from headrace.spark.sql_function import returned
from headrace.spark.sql_names import RECORD, expression, named
from headrace.spark.sql_rows import put_back, value_of

_known = Answers[pa.DataType]()


def told_nulls(session: SparkSession, between: Between) -> FrameTypes:
    """What *between* carries, with what its step leaves required. Runs nothing, and is asked once for a micro-batch.

    Nothing is told where the step makes values of another type, which have a schema of their own, and where it is
    one that Spark refuses.
    """
    carries, step = between.carries, between.step
    if carries.read is None or not (step.select or step.function):
        return carries
    if sql_problems(session, from_arrow_schema(carries.schema()), step):
        return carries
    left = _known.of(session, between, lambda: _left(_stand_in(session, carries), step))
    return replace(carries, left=left) if travelling(left) == carries.value else carries


def _stand_in(session: SparkSession, carries: FrameTypes) -> DataFrame:
    """A frame that has a value in each row, and in the value all that is required."""
    schema = carries.schema()
    value = pa.field("value", carries.read, nullable=False)
    return stand_in(session, from_arrow_schema(schema.set(schema.get_field_index("value"), value)))


def _left(frame: DataFrame, step: SqlStep) -> pa.DataType:
    if step.function:
        made = returned(frame, step.function)
        frame = put_back(made, {"value": value_of(made, RECORD)})
    if step.select:
        frame = named(frame).select(F.struct(*map(expression, step.select)).alias("value"))
    return travelling(to_arrow_schema(frame.select("value").schema)[0].type, as_required=True)
