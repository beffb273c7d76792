"""A column of Python values holds what they are, or they are refused."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.schema import (
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
)

FLOAT32 = Schema(type=SchemaType.FLOAT32)
INT64S = Schema(type=SchemaType.ARRAY, value_schema=INT64)
COUNTS = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=INT64)
BY_NUMBER = Schema(type=SchemaType.MAP, key_schema=INT64, value_schema=STRING)
POINT = Schema(type=SchemaType.STRUCT, fields=(Field("x", INT64), Field("y", FLOAT64)))
POINTS = Schema(type=SchemaType.ARRAY, value_schema=POINT)
LARGEST = 3.4028234663852886e38


@pytest.mark.parametrize(
    ("schema", "value", "reported"),
    [
        (INT64, 1.5, "1.5 is not a whole number"),
        (INT32, Decimal("-0.5"), "is not a whole number"),
        (INT64, np.float64(2.5), "is not a whole number"),
        (INT64, math.nan, "is not a whole number"),
        (TIMESTAMP, 5.7, "5.7 is not a whole number"),
        (TIME, 0.1, "0.1 is not a whole number"),
        (DATE, dt.datetime(2020, 1, 1, 5, tzinfo=dt.UTC), "is not a date, but has a time"),
        (FLOAT32, LARGEST * 1.1, "is too large for float"),
        (FLOAT32, -1e300, "is too large for float"),
        (INT64S, [1, 1.5], "1.5 is not a whole number"),
        (COUNTS, {"a": 1.5}, "1.5 is not a whole number"),
        (COUNTS, [("a", 1.5)], "1.5 is not a whole number"),
        (BY_NUMBER, {1.5: "a"}, "1.5 is not a whole number"),
        (POINT, {"x": 1.5, "y": 2.0}, "field 'x': 1.5 is not a whole number"),
        (POINT, {"x": 1, "y": 2.0, "z": 3}, "the schema has no field 'z'"),
        (POINT, (1, 2.0), "a struct is a mapping of its fields, not 'tuple'"),
        (POINTS, [None, {"z": 3}], "the schema has no field 'z'"),
    ],
)
def test_what_would_change_is_refused(schema: Schema, value: object, reported: str) -> None:
    """Arrow would cut it, round it to infinity, or leave it out."""
    with pytest.raises(RecordError, match=reported):
        column_of(schema, [None, value])


@pytest.mark.parametrize(
    ("schema", "value", "held"),
    [
        (INT64, 2.0, 2),
        (INT64, Decimal("3.00"), 3),
        (INT64, np.int64(4), 4),
        (DATE, dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.date(2020, 1, 1)),
        (FLOAT32, LARGEST, LARGEST),
        (FLOAT32, math.inf, math.inf),
        (POINT, {"y": 2.0}, {"x": None, "y": 2.0}),
        (POINT, {}, {"x": None, "y": None}),
        (INT64S, (1, None), [1, None]),
        (COUNTS, {"a": None}, [("a", None)]),
    ],
)
def test_what_stays_the_same_is_taken(schema: Schema, value: object, held: object) -> None:
    """Whatever its Python type; what is left out is null."""
    assert [held, None] == column_of(schema, [value, None]).to_pylist()


@given(
    values=some.lists(
        some.none() | some.integers(-9, 9) | some.floats() | some.decimals(places=1), max_size=4
    )
)
def test_a_column_of_whole_numbers_holds_them_all(values: list[Any]) -> None:
    """Each as it is, or none of them."""
    try:
        column = column_of(INT64, values)
    except RecordError:
        return

    assert values == column.to_pylist()


def test_an_error_names_the_type_and_the_name_of_the_schema() -> None:
    """And not all that the schema holds."""
    with pytest.raises(RecordError, match="A value does not fit its schema, struct 'point': the"):
        column_of(Schema(type=SchemaType.STRUCT, name="point"), [{"x": 1}])
