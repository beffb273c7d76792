"""What a SQL step may make null is optional after it, and nothing else is."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.partition import SourcePartition
from headrace.connect.schema import INT64, STRING, Field, Schema, SchemaType, arrow_type
from headrace.task.frames import Records
from headrace.task.sql.frame_codec import FrameDecoder, FrameEncoder
from headrace.task.sql.spark_types import nullable_schema, spark_type
from headrace.task.sql.step import FrameTypes

NAMED = Schema(type=SchemaType.STRING, name="Name", version=2, default="no one")
INNER = Schema(type=SchemaType.STRUCT, name="Inner", fields=(Field("x", STRING),))


def struct(**fields: Schema) -> Schema:
    """A struct with a name, of *fields*."""
    return Schema(
        type=SchemaType.STRUCT, name="Outer", fields=tuple(map(Field, fields, fields.values()))
    )


def array(of: Schema) -> Schema:
    """An array of *of*."""
    return Schema(type=SchemaType.ARRAY, value_schema=of)


def mapped(to: Schema) -> Schema:
    """A map from text to *to*."""
    return Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=to)


@pytest.mark.parametrize(
    ("read", "left"),
    [
        (struct(a=STRING, b=INT64), struct(a=STRING, b=INT64)),
        (struct(a=NAMED, b=INT64), struct(a=NAMED.as_optional(), b=INT64)),
        (struct(a=STRING.as_optional()), struct(a=STRING.as_optional())),
        (struct(a=INNER), struct(a=INNER.as_optional())),
        (struct(a=struct(x=NAMED)), struct(a=struct(x=NAMED.as_optional()))),
        (struct(a=array(STRING)), struct(a=array(STRING.as_optional()))),
        (struct(a=mapped(INNER)), struct(a=mapped(INNER.as_optional()))),
        (struct(a=mapped(array(STRING))), struct(a=mapped(array(STRING.as_optional())))),
    ],
)
def test_what_may_be_null_becomes_optional(read: Schema, left: Schema) -> None:
    """However deep; names, versions and defaults stay."""
    assert left == nullable_schema(read, spark_type(arrow_type(left), as_required=True))


def test_what_stays_required_says_so() -> None:
    """Where values were optional, and Spark says that they are never null, the schema stays, too."""
    optional = struct(a=STRING.as_optional())

    assert optional is nullable_schema(
        optional, spark_type(arrow_type(struct(a=STRING)), as_required=True)
    )


def test_a_null_in_a_field_that_was_required_comes_out_with_its_schema() -> None:
    """The value that Spark has made is one of the schema that is sent with it."""
    read, left = struct(a=NAMED, b=INT64), struct(a=NAMED.as_optional(), b=INT64)
    types = FrameTypes(
        value=spark_type(arrow_type(read)),
        after_step=spark_type(arrow_type(left), as_required=True),
    )
    batch = SourceBatch(
        topic="t",
        values=pa.array([{"a": "x", "b": 1}], arrow_type(read)),
        value_schema=read,
        source_partition=SourcePartition(f=1),
        offsets=None,
    )

    head, rows = FrameEncoder(types).rows(Records(batch))
    made = pa.array([{"a": None, "b": 1}], types.value)
    decoder = FrameDecoder()
    (frame,) = [
        *decoder.frames(head),
        *decoder.frames(rows.set_column(rows.schema.get_field_index("value"), "value", made)),
    ]

    assert isinstance(frame, Records)
    assert (left, [{"a": None, "b": 1}], arrow_type(left)) == (
        frame.batch.value_schema,
        frame.batch.values.to_pylist(),
        frame.batch.values.type,
    )


def test_tombstones_alone_keep_the_schema_that_they_have() -> None:
    """It may be another one than that of the values."""
    left = spark_type(arrow_type(struct(a=STRING.as_optional())), as_required=True)
    types = FrameTypes(value=spark_type(left), after_step=left)
    other = struct(b=INT64, c=INT64)
    batch = SourceBatch(
        topic="t",
        values=pa.nulls(1),
        value_schema=other,
        source_partition=SourcePartition(f=1),
        offsets=None,
    )
    decoder = FrameDecoder()

    (frame,) = [
        each for rows in FrameEncoder(types).rows(Records(batch)) for each in decoder.frames(rows)
    ]

    assert isinstance(frame, Records)
    assert (other, [None]) == (frame.batch.value_schema, frame.batch.values.to_pylist())
