"""A SQL step on a Spark Connect server: a program for a player."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
from pyspark.sql import SparkSession

from headrace.spark.sql_check import sql_problems, types_after_step
from headrace.task.sql.spark_types import spark_type
from headrace.task.sql.step import FrameTypes, SqlStage, SqlStep
from spark.sql_frames import FIELDS, frame_schema, row, spark_schema, values_of

ROWS = [row({"a": 1, "b": "x"}, keep=False), row({"a": 2, "b": "7"}), row({"a": 3, "b": "8"})]
RIGHT = {"select": ("a + 1 AS c", "record.topic AS t"), "where": "CAST(b AS INT) > 7"}
WRONG = (
    SqlStep(select=("a", "sum(a) AS s"), where="b > "),
    SqlStep(select=("* EXCEPT (",), where="a > 1 AND"),
    SqlStep(select=("c",)),
    SqlStep(function="spark.sql_functions:ordered"),
    SqlStep(function="spark.sql_functions:counted"),
    SqlStep(function="spark.sql_functions:raising"),
)


def required(session: SparkSession) -> list[str]:
    """The fields that are required after a step that makes one of two null."""
    read = pa.struct([pa.field(each, pa.utf8(), nullable=False) for each in ("a", "b")])
    step = SqlStep(select=("nullif(a, 'x') AS a", "b"))
    types = FrameTypes(value=spark_type(read), required=read)
    left = types_after_step(session, SqlStage(step=step, types=types)).after_step
    assert isinstance(left, pa.StructType)
    return [each.name for each in left if not each.nullable]


def play(session: SparkSession, asked: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    """Ask, and tell what it finds."""
    schema = spark_schema(session, frame_schema(FIELDS))
    problems = [each for step in WRONG for each in sql_problems(session, schema, step)]
    doubled = values_of(session, ROWS[1:], function="spark.sql_functions:doubled")
    left = [values_of(session, ROWS, **RIGHT), doubled]
    yield {"left": left, "problems": problems, "required": required(session)}
