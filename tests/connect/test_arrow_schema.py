"""Arrow's types and columns as Connect's."""

from __future__ import annotations

import uuid
from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.connect.arrow_types import conformed, schema_of, struct_schema
from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    arrow_type,
)

NAME = uuid.UUID("0123456789abcdeffedcba9876543210")
OTHER = uuid.UUID("ffffffffeeeeddddccccbbbbaaaaaaaa")
FLOAT32 = Schema(type=SchemaType.FLOAT32)
INT16 = Schema(type=SchemaType.INT16)
HOUR_MS = 3_600_000


def precise(precision: int, scale: int) -> Schema:
    """Connect's Decimal with the parameter in which its Avro converter keeps the precision."""
    return Schema(
        type=SchemaType.BYTES,
        name="org.apache.kafka.connect.data.Decimal",
        version=1,
        parameters={"scale": str(scale), "connect.decimal.precision": str(precision)},
    )


# A column, the schema of its type, and the numbers, texts or bytes that are in it afterwards.
COLUMNS = [
    (pa.array([-1, None], pa.int8()), Schema(type=SchemaType.INT8), [-1, None]),
    (pa.array([2**8 - 1, None], pa.uint8()), INT16, [2**8 - 1, None]),
    (pa.array([2**16 - 1, None], pa.uint16()), INT32, [2**16 - 1, None]),
    (pa.array([2**32 - 1, None], pa.uint32()), INT64, [2**32 - 1, None]),
    (pa.array([2**64 - 1, None], pa.uint64()), precise(20, 0), [Decimal(2**64 - 1), None]),
    (pa.array([1.5, None], pa.float16()), FLOAT32, [1.5, None]),
    (pa.array([1.5, None], pa.float64()), FLOAT64, [1.5, None]),
    (pa.array([True, None]), BOOLEAN, [True, None]),
    (pa.array(["é", None], pa.large_utf8()), STRING, ["é", None]),
    (pa.array(["é", None]).dictionary_encode(), STRING, ["é", None]),
    (pa.array([b"ab", None], pa.binary(2)), BYTES, [b"ab", None]),
    (pa.array([NAME.bytes, None, OTHER.bytes], pa.uuid()), STRING, [str(NAME), None, str(OTHER)]),
    (pa.array([None, None], pa.null()), STRING.as_optional(), [None, None]),
    (pa.array([86_400_000, None], pa.date64()), DATE, [1, None]),
    (pa.array([3600, None], pa.time32("s")), TIME, [HOUR_MS, None]),
    (pa.array([1, None], pa.time64("us")), INT64, [1, None]),
    (pa.array([1, None], pa.time64("ns")), INT64, [1, None]),
    (pa.array([1, None], pa.timestamp("s")), TIMESTAMP, [1000, None]),
    (pa.array([1, None], pa.timestamp("ms", tz="Asia/Tokyo")), TIMESTAMP, [1, None]),
    (pa.array([1, None], pa.timestamp("us", tz="UTC")), INT64, [1, None]),
    (pa.array([1, None], pa.timestamp("ns")), INT64, [1, None]),
    (pa.array([1, None], pa.duration("ms")), INT64, [1, None]),
    (
        pa.array([Decimal("-1.25"), None], pa.decimal256(50, 2)),
        precise(50, 2),
        [Decimal("-1.25"), None],
    ),
    (
        pa.array([[1], None, [None]], pa.large_list(pa.uint8())),
        Schema(type=SchemaType.ARRAY, value_schema=INT16.as_optional()),
        [[1], None, [None]],
    ),
    (
        pa.array([[1, 2], None], pa.list_(pa.field("item", pa.int64(), nullable=False), 2)),
        Schema(type=SchemaType.ARRAY, value_schema=INT64),
        [[1, 2], None],
    ),
    (
        pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.large_utf8(), pa.uint8())),
        Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=INT16.as_optional()),
        [[("a", 1)], None, [("b", None)]],
    ),
    (
        pa.array([{"a": 1, "b": "x"}, None], pa.struct([("a", pa.uint8()), ("b", pa.utf8())])),
        Schema(
            type=SchemaType.STRUCT,
            fields=(Field("a", INT16.as_optional()), Field("b", STRING.as_optional())),
        ),
        [{"a": 1, "b": "x"}, None],
    ),
]


@pytest.mark.parametrize(("column", "schema", "inside"), COLUMNS)
def test_a_column_gets_a_schema_and_its_arrow_type(
    column: pa.Array, schema: Schema, inside: list[object]
):
    """Every value is kept exactly, also in a slice."""
    assert schema == schema_of(column.type)
    for start in (0, 1):
        made = conformed(column.slice(start), schema)
        made.validate(full=True)
        assert arrow_type(schema) == made.type
        assert inside[start:] == numbers(made)


def numbers(column: pa.Array) -> list[object]:
    """What is in *column*, times and dates as the numbers that they are in Connect."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int64() if pa.types.is_timestamp(column.type) else pa.int32())
    return column.to_pylist()


def test_a_column_of_the_right_type_is_not_copied():
    """What has its schema's type already is what comes back."""
    column = pa.array([[1], None], pa.list_(pa.int64()))
    assert column is conformed(column, schema_of(column.type))


def test_null_structs_and_lists_hide_their_elements():
    """The elements of a null list are not part of it, whatever its offsets say."""
    behind = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4]),
        pa.array([1, 2, 3, 4], pa.uint8()),
        mask=pa.array([False, True, False]),
    )
    assert [[1], None, [4]] == conformed(behind, schema_of(behind.type)).to_pylist()


def test_records_say_which_fields_may_be_null():
    """A nullable column becomes an optional field; the record itself is not optional."""
    fields = [pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.utf8())]
    schema = Schema(
        type=SchemaType.STRUCT, fields=(Field("a", INT64), Field("b", STRING.as_optional()))
    )
    assert schema == struct_schema(fields)


def test_what_connect_cannot_hold_is_refused_by_name():
    """The field is named with its path."""
    union = pa.sparse_union([pa.field("x", pa.int8())])
    with pytest.raises(TypeError, match=r"a: b: Kafka Connect has no type .* sparse_union"):
        struct_schema([pa.field("a", pa.struct([("b", union)]))])


def test_a_number_too_large_for_38_digits_is_refused():
    """It is never cut."""
    column = pa.array([Decimal(10) ** 40], pa.decimal256(50, 0))
    with pytest.raises(pa.ArrowInvalid):
        conformed(column, schema_of(column.type))
