"""Values and their bytes by Kafka Connect's rules; the judge has confirmed each of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from headrace.connect.schema import (
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
    decimal,
)
from judges.drawn import FLOAT32, INT8
from judges.told import Told


@dataclass(frozen=True, slots=True)
class Vector:
    """A value, and what a converter makes of it: bytes, nothing, or an error that begins with *refused*."""

    name: str
    told: Told
    made: bytes | None = None
    refused: str | None = None
    config: dict[str, str] = field(default_factory=dict[str, str])


def struct(*fields: Field, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of structs."""
    return Schema(type=SchemaType.STRUCT, fields=fields, **more)


def map_of(keys: Schema, values: Schema) -> Schema:
    """A schema of maps."""
    return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=values)


PLAIN = {"schemas.enable": "false"}
FIVE = replace(INT32, optional=True, default=5)
REQUIRED_FIVE = replace(INT32, default=5)
NULL_IN_NO_PLACE = "Conversion error: null value for field that is required and has no default"


def _json(schema: Schema, value: Any, made: bytes, **config: str) -> Vector:  # noqa: ANN401
    dotted = {key.replace("_", "."): each for key, each in config.items()}
    return Vector("json", Told(schema, value, schema), made, config={**PLAIN, **dotted})


_FLOATS = [
    (FLOAT64, 0.1, b"0.1"),
    (FLOAT64, -0.0, b"-0.0"),
    (FLOAT64, 1e-3, b"0.001"),
    (FLOAT64, 9.99e-4, b"9.99E-4"),
    (FLOAT64, 9999999.0, b"9999999.0"),
    (FLOAT64, 1e7, b"1.0E7"),
    (FLOAT64, 5e-324, b"4.9E-324"),
    (FLOAT64, 1.7976931348623157e308, b"1.7976931348623157E308"),
    (FLOAT64, math.nan, b'"NaN"'),
    (FLOAT64, -math.inf, b'"-Infinity"'),
    (FLOAT32, 0.10000000149011612, b"0.1"),
    (FLOAT32, 2.0**-149, b"1.4E-45"),
    (FLOAT32, 16777216.0, b"1.6777216E7"),
    (FLOAT32, math.inf, b'"Infinity"'),
]
_VALUES = [
    (INT8, -128, b"-128"),
    (INT64, -(2**63), b"-9223372036854775808"),
    (STRING, '\x00\x1f\x7f/\\"\n', rb'"\u0000\u001F' + b"\x7f" + rb'/\\\"\n"'),
    (STRING, "\u2028é😀", '"\u2028é\\uD83D\\uDE00"'.encode()),
    (BYTES, b"\xfb\xff\x00", b'"+/8A"'),
    (BYTES, b"", b'""'),
    (DATE, -1, b"-1"),
    (TIME, 86_399_999, b"86399999"),
    (TIMESTAMP, -1, b"-1"),
    (decimal(2), Decimal("-1.28"), b'"gA=="'),
    (decimal(-2), Decimal("12E+2"), b'"DA=="'),
    (map_of(STRING, INT32), [("b", 1), ("a", 2)], b'{"b":1,"a":2}'),
    (map_of(INT32, STRING), [(1, "x"), (2, "y")], b'[[1,"x"],[2,"y"]]'),
    (map_of(FLOAT64, INT8), [(math.nan, 1)], b'[["NaN",1]]'),
    (struct(Field("z", FIVE), Field("a", STRING)), {"z": None, "a": ""}, b'{"z":5,"a":""}'),
    (struct(Field("z", REQUIRED_FIVE)), {"z": None}, b'{"z":5}'),
    (FIVE, None, b"5"),
    (STRING.as_optional(), None, b"null"),
]
_INT_TOLD = b'{"schema":{"type":"int32","optional":true,"default":5},"payload":'
VECTORS = [
    *(_json(*each) for each in _FLOATS + _VALUES),
    _json(decimal(2), Decimal("12.50"), b"12.50", decimal_format="NUMERIC"),
    _json(decimal(9), Decimal("1E-9"), b"1E-9", decimal_format="numeric"),
    _json(decimal(-2), Decimal("12E+2"), b"1.2E+3", decimal_format="NUMERIC"),
    _json(FIVE, None, b"null", replace_null_with_default="false"),
    _json(FIVE, None, _INT_TOLD + b"5}", schemas_enable="true"),
    Vector("json", Told(INT32, 7, None), b'{"schema":null,"payload":7}'),
    Vector("json", Told(INT32, 7, None), b"7", config=PLAIN),
    Vector("json", Told(INT32, None, None), None),
    Vector("json", Told(INT32, None, INT32), refused=NULL_IN_NO_PLACE),
    Vector("json", Told(INT64, 7, INT32), refused="Invalid type for INT32: class java.lang.Long"),
    Vector("json", Told(decimal(1), Decimal("1.5"), decimal(2)), refused="Decimal value has"),
    Vector("json", Told(DATE, 1, None), refused="Java class class java.util.Date does not have"),
    Vector("string", Told(FLOAT64, 1e10, FLOAT64), b"1.0E10"),
    Vector("string", Told(STRING, "é", None), b"\xe9", config={"converter.encoding": "latin1"}),
    Vector("string", Told(map_of(STRING, INT32), [("a", 1)], map_of(STRING, INT32)), b"{a=1}"),
    Vector("bytes", Told(BYTES, b"\xff", BYTES), b"\xff"),
    Vector("bytes", Told(STRING, "a", STRING), refused="Invalid schema type for ByteArray"),
    Vector("short", Told(INT8, 1, INT8), refused="Failed to serialize to short (was class"),
    Vector("integer", Told(INT32, -2, INT32), b"\xff\xff\xff\xfe"),
    Vector("float", Told(FLOAT32, math.nan, FLOAT32), b"\x7f\xc0\x00\x00"),
    Vector("boolean", Told(INT8, 1, INT8), refused="Invalid schema type for BooleanConverter"),
]
