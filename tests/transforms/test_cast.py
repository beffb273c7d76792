"""Cast: what values become, as Java casts, parses and writes them."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

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
    Schema,
    SchemaType,
    decimal,
)
from transforms.applied import Settings, become, problems, refusal, struct
from transforms.generated import FLOAT32, INT8

NAME = "Cast$Value"
TARGETS = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"]
ABOUT: dict[str, Any] = {"name": "n", "version": 3, "doc": "d", "parameters": {"x": "y"}}
INSTANT = dt.datetime(2023, 11, 14, 22, 13, 20, 123_000, tzinfo=dt.UTC)


def single(value: float) -> float:
    """*value* as 32 bits hold it."""
    return float(np.float32(value))


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INT8, -1, [-1, -1, -1, -1, -1.0, -1.0, True, "-1"]),
        (INT64, 2**40 + 5, [5, 5, 5, 2**40 + 5, single(2**40), 2.0**40 + 5, True, "1099511627781"]),
        (INT64, 2**63 - 1, [-1, -1, -1, 2**63 - 1, 2.0**63, 2.0**63, True, "9223372036854775807"]),
        (INT64, 256, [0, 256, 256, 256, 256.0, 256.0, True, "256"]),
        (FLOAT64, -300.7, [-44, -300, -300, -300, single(-300.7), -300.7, True, "-300.7"]),
        (FLOAT64, 1e20, [-1, -1, 2**31 - 1, 2**63 - 1, single(1e20), 1e20, True, "1.0E20"]),
        (FLOAT64, -1e20, [0, 0, -(2**31), -(2**63), single(-1e20), -1e20, True, "-1.0E20"]),
        (FLOAT64, 0.5, [0, 0, 0, 0, 0.5, 0.5, False, "0.5"]),
        (FLOAT64, 1e39, [-1, -1, 2**31 - 1, 2**63 - 1, math.inf, 1e39, True, "1.0E39"]),
        (FLOAT32, single(0.1), [0, 0, 0, 0, single(0.1), single(0.1), False, "0.1"]),
        (BOOLEAN, True, [1, 1, 1, 1, 1.0, 1.0, True, "true"]),
        (STRING, "12", [12, 12, 12, 12, 12.0, 12.0, False, "12"]),
        (DATE, dt.date(2003, 10, 20), [57, 12345, 12345, 12345, 12345.0, 12345.0, True, "2003-10-20"]),
        (TIME, dt.time(1, 2, 3, 4000), [-4, -12548, 3723004, 3723004, 3723004.0, 3723004.0, True, "01:02:03.004Z"]),
        (TIMESTAMP, INSTANT, [123, 26747, -807049093, 1700000000123, single(1.7e12), 1700000000123.0, True, "2023-11-14T22:13:20.123Z"]),
        (decimal(2), Decimal("1142.11"), [118, 1142, 1142, 1142, single(1142.11), 1142.11, True, "1142.11"]),
        (decimal(10), Decimal("5E-10"), [0, 0, 0, 0, single(5e-10), 5e-10, False, "5E-10"]),
        (decimal(0), Decimal(2**70), [0, 0, 0, 0, 2.0**70, 2.0**70, False, str(2**70)]),
    ],
)  # fmt: skip
def test_a_field_becomes_any_type(schema: Schema, value: object, expected: list[Any]) -> None:
    """Whole numbers lose their upper bits, fractions their fraction; what is too large is the largest."""
    row = struct(("f", schema))

    cast = [become(NAME, {"spec": f"f:{name}"}, {"f": value}, row)[0]["f"] for name in TARGETS]

    assert expected == cast


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("+5", [5, 5.0, False]),
        ("\N{FULLWIDTH DIGIT ONE}2", [12, None, False]),
        ("128", [None, 128.0, False]),
        (" 1", [None, 1.0, False]),
        ("1.5", [None, 1.5, False]),
        ("-0", [0, -0.0, False]),
        (".5e1f", [None, 5.0, False]),
        ("0x1p3", [None, 8.0, False]),
        ("1e400", [None, math.inf, False]),
        ("-Infinity", [None, -math.inf, False]),
        ("0x1", [None, None, False]),
        ("1_0", [None, None, False]),
        ("nan", [None, None, False]),
        ("", [None, None, False]),
        ("TRUE", [None, None, True]),
    ],
)
def test_text_is_read_as_java_reads_it(text: str, expected: list[Any]) -> None:
    """What is no number, or one out of range, is refused with its text."""
    targets = ["int8", "float64", "boolean"]
    reported = f"Value ({text}) was out of range for requested data type"

    for target, value in zip(targets, expected, strict=True):
        if value is None:
            assert reported == refusal(NAME, {"spec": target}, text, STRING)
        else:
            assert repr(value) == repr(become(NAME, {"spec": target}, text, STRING)[0])


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (BYTES, b"\x01\x02", "AQI="),
        (DATE, dt.date(1969, 12, 31), "00:00:00.000Z"),
        (DATE, dt.date(1970, 1, 1), "00:00:00.000Z"),
        (TIMESTAMP, dt.datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=dt.UTC), "23:59:59.999Z"),
        (TIMESTAMP, dt.datetime(2000, 1, 1, tzinfo=dt.UTC), "2000-01-01"),
        (FLOAT64, math.nan, "NaN"),
        (FLOAT64, 1e-5, "1.0E-5"),
    ],
)
def test_values_become_javas_text(schema: Schema, value: object, text: str) -> None:
    """Bytes are base64, numbers as Java writes them, and a date looks like what its milliseconds are."""
    assert text == become(NAME, {"spec": "string"}, value, schema)[0]


def test_a_cast_field_keeps_its_optionality_and_default() -> None:
    """Nothing else of its schema; the struct keeps all but its default, and names that it has not do nothing."""
    five = Schema(type=SchemaType.INT32, optional=True, default=300, doc="gone", name="gone")
    row = struct(("a", five), ("b", STRING), optional=True, **ABOUT)

    changed = become(NAME, {"spec": "a:int8,zz:int8"}, {"a": None, "b": "x"}, row)

    cast = Schema(type=SchemaType.INT8, optional=True, default=44)
    assert (
        {"a": 44, "b": "x"},
        struct(("a", cast), ("b", STRING), optional=True, **ABOUT),
    ) == changed


def test_nulls_stay_where_defaults_are_not_wanted() -> None:
    """With ``replace.null.with.default=false`` a null field is null afterwards."""
    row = struct(("a", Schema(type=SchemaType.INT32, optional=True, default=5)))
    config = {"spec": "a:string", "replace.null.with.default": "false"}

    assert {"a": None} == become(NAME, config, {"a": None}, row)[0]


def test_a_whole_value_keeps_all_but_its_type() -> None:
    """Name, version, doc and parameters stay; a null keeps the schema that it had."""
    before = Schema(type=SchemaType.INT32, optional=True, default=300, **ABOUT)
    after = Schema(type=SchemaType.INT8, optional=True, default=44, **ABOUT)

    assert (-1, after) == become(NAME, {"spec": "int8"}, 255, before)
    assert (None, before) == become(NAME, {"spec": "int8"}, None, before)


@pytest.mark.parametrize(
    ("before", "value", "spec", "number"),
    [
        (DATE, dt.date(1970, 1, 3), "int32", 2),
        (TIME, dt.time(0, 0, 1), "int32", 1000),
        (TIMESTAMP, INSTANT, "int64", 1_700_000_000_123),
    ],
)
def test_the_number_of_a_whole_date_is_no_date_again(
    before: Schema, value: object, spec: str, number: int
) -> None:
    """Under the name of a date, its converters and columns would take it for one."""
    assert (number, Schema(type=before.type)) == become(NAME, {"spec": spec}, value, before)


@pytest.mark.parametrize(
    ("spec", "value", "changed"),
    [
        ("a:string,zz:int8", {"a": 1.5, "b": 1}, {"a": "1.5", "b": 1, "zz": None}),
        ("a:int8", {"a": True}, {"a": 1}),
        ("int8", "5", 5),
        ("string", Decimal("1.10"), "1.10"),
        ("int64", Decimal("12345678901234567.5"), 12345678901234568),
        ("int8", Decimal("1E+999999999"), -1),
    ],
)
def test_values_without_schema_are_cast(spec: str, value: object, changed: object) -> None:
    """By what they are; an entry that is missing is null afterwards."""
    assert (changed, None) == become(NAME, {"spec": spec}, value)


@pytest.mark.parametrize(
    ("spec", "value", "schema", "reported"),
    [
        ("a:int8", 5, None, "Only Map objects supported in absence of schema for [cast types], found: java.lang.Long"),
        ("a:int8", 5, INT32, "Only Struct objects supported for [cast types], found: java.lang.Integer"),
        ("int8", {"a": 1}, None, "Cast transformation does not support casting from MAP; supported types are [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES]"),
        ("string", dt.date(1970, 1, 2), None, "Cast transformation was passed a value of type class java.util.Date which is not supported by Connect's data API"),
        ("f:int8", {"f": b"x"}, struct(("f", BYTES)), "Unexpected type in Cast transformation: class [B"),
    ],
)  # fmt: skip
def test_what_cannot_be_cast_is_refused(
    spec: str, value: object, schema: Schema | None, reported: str
) -> None:
    """Containers, times without schema, and bytes as numbers."""
    assert reported == refusal(NAME, {"spec": spec}, value, schema)


SUPPORTED = "supported types are [INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING]"


@pytest.mark.parametrize(
    ("config", "reported"),
    [
        ({}, 'Missing required configuration "spec" which has no default value.'),
        ({"spec": ""}, "Must specify at least one field to cast."),
        ({"spec": "a:foo"}, f"Invalid type found in casting spec: foo; {SUPPORTED}"),
        ({"spec": "a:bytes"}, f"Cast transformation does not support casting to BYTES; {SUPPORTED}"),
        ({"spec": "a:b:c"}, "Invalid value [a:b:c] for configuration spec: Invalid mapping of a field to a type: a:b:c"),
        ({"spec": "int8,b:int8"}, "Cast transformations that specify a type to cast the entire value to may only specify a single cast in their spec"),
    ],
)  # fmt: skip
def test_settings_are_checked(config: Settings, reported: str) -> None:
    """A type is one that there is, and alone when it is for everything."""
    assert (("spec", reported),) == problems(NAME, config)
