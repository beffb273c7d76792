"""Frames of records in Spark as a SQL step gets them, made by hand, and what it leaves of them."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from headrace.spark.job import applied
from headrace.task.sql.step import SqlStep

FIELDS = pa.struct([("a", pa.int32()), ("b", pa.string())])
RECORD = 0
OTHER = 3
"""A kind of row that is no record."""
MOMENT = 1_700_000_000_123


def row(value: object, **other: object) -> dict[str, object]:
    """A row with *value*, and what *other* says of it."""
    given = {"kind": RECORD, "topic": "t", "keep": True, "timestamp": MOMENT, "value": value}
    return {**given, **other}


def frame(
    session: SparkSession, rows: Sequence[Mapping[str, object]], value: pa.DataType = FIELDS
) -> DataFrame:
    """A frame of *rows* with values of the type *value*, as Python functions give it to Spark."""
    schema = frame_schema(value)
    numbered = [{"offset": b"%d" % number, **each} for number, each in enumerate(rows)]
    table = pa.Table.from_pylist(numbered, schema=schema)
    text = spark_schema(session, schema)

    def read(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=2)

    return session.range(0, 1, 1, 1).mapInArrow(read, text)


def frame_schema(value: pa.DataType) -> pa.Schema:
    """The columns of a frame whose values are of the type *value*."""
    header = pa.struct([("key", pa.string()), ("value", pa.binary())])
    columns: list[tuple[str, pa.DataType]] = [
        ("kind", pa.int8()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.string()),
        ("value", value),
        ("headers", pa.list_(header)),
        ("timestamp", pa.int64()),
        ("source_partition", pa.int32()),
        ("offset", pa.binary()),
        ("keep", pa.bool_()),
        ("payload", pa.binary()),
    ]
    return pa.schema(columns)


def spark_schema(session: SparkSession, schema: pa.Schema) -> Any:  # noqa: ANN401 (Spark's type)
    """*schema* in Spark's words."""
    return session.createDataFrame(pa.Table.from_pylist([{}], schema=schema)).schema


def left_of(changed: DataFrame) -> list[dict[str, Any]]:
    """The rows of *changed* as the next Python function gets them, in their order."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [pickle.dumps(batch.to_pylist())]})

    pickled = changed.mapInArrow(write, "rows BINARY").toArrow()["rows"].to_pylist()
    return [each for rows in pickled for each in pickle.loads(rows)]


def values_of(
    session: SparkSession,
    rows: Sequence[Mapping[str, object]],
    value: pa.DataType = FIELDS,
    **step: Any,  # noqa: ANN401 (what a step takes)
) -> list[Any]:
    """The values that a step leaves of *rows*."""
    changed = applied(frame(session, rows, value), SqlStep(**step))
    return [each["value"] for each in left_of(changed)]


def kept_of(
    session: SparkSession,
    rows: Sequence[Mapping[str, object]],
    where: str,
    value: pa.DataType = FIELDS,
) -> list[bool]:
    """Which of *rows* are to be kept."""
    changed = applied(frame(session, rows, value), SqlStep(where=where))
    return [each["keep"] for each in left_of(changed)]
