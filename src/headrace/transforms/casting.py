"""One value as a value of another type, as Kafka Connect's Cast makes it; pure."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from headrace.connect.errors import RecordError
from headrace.connect.java_text import java_double, java_float
from headrace.connect.schema import DATE, TIME, TIMESTAMP, Schema, SchemaType
from headrace.transforms.cast_spec import TARGETS
from headrace.transforms.java_numbers import (
    as_single,
    decimal_float,
    decimal_int,
    narrowed,
    parsed_float,
    parsed_int,
    truncated,
)
from headrace.transforms.requiring import java_class
from headrace.transforms.times import day_number, milliseconds, time_text

INT_BITS: Final[Mapping[SchemaType, int]] = {
    SchemaType.INT8: 8,
    SchemaType.INT16: 16,
    SchemaType.INT32: 32,
    SchemaType.INT64: 64,
}
FLOAT_BITS: Final[Mapping[SchemaType, int]] = {SchemaType.FLOAT32: 32, SchemaType.FLOAT64: 64}
CONTAINERS: Final = (SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT)


def cast_value(schema: Schema | None, value: object, target: SchemaType) -> Any:  # noqa: ANN401 (of type *target*)
    """*value*, which may have a *schema*, as a value of type *target*; ``None`` stays.

    Raises :class:`~headrace.connect.errors.RecordError` in Kafka Connect's words for what cannot become one.
    """
    if value is None:
        return None
    check_source(schema, value)
    if target is SchemaType.STRING:
        return _text(schema, value)
    number = _encoded(schema, value)
    if isinstance(number, bytes):
        raise RecordError(f"Unexpected type in Cast transformation: class {java_class(value)}")
    try:
        return _of_number(number, target)
    except ValueError:
        raise RecordError(f"Value ({value}) was out of range for requested data type") from None


def check_source(schema: Schema | None, value: object) -> None:
    """Raises :class:`~headrace.connect.errors.RecordError` for arrays, maps, structs, and times without schema."""
    if schema is None and isinstance(value, dt.date | dt.time):
        raise RecordError(
            f"Cast transformation was passed a value of type class {java_class(value)} "
            "which is not supported by Connect's data API"
        )
    kind = _kind_without_schema(value) if schema is None else schema.type
    if kind is not None and kind in CONTAINERS:
        raise RecordError(
            f"Cast transformation does not support casting from {kind.name}; "
            f"supported types are [{', '.join(TARGETS)}, BYTES]"
        )


def _kind_without_schema(value: object) -> SchemaType | None:
    """The type of *value* where it is a container."""
    if isinstance(value, Mapping):
        return SchemaType.MAP
    return SchemaType.ARRAY if isinstance(value, list | tuple) else None


def _of_number(value: object, target: SchemaType) -> Any:  # noqa: ANN401 (of type *target*)
    if target is SchemaType.BOOLEAN:
        return _truth(value)
    if target in FLOAT_BITS:
        return _float(value, FLOAT_BITS[target])
    return _integer(value, INT_BITS[target])


def _integer(value: object, bits: int) -> int:
    if isinstance(value, str):
        return parsed_int(value, bits)
    if isinstance(value, float):
        return truncated(value, bits)
    if isinstance(value, Decimal):
        return decimal_int(value, bits)
    assert isinstance(value, int), "no other kind of value is left"
    return narrowed(value, bits)


def _float(value: object, bits: int) -> float:
    if isinstance(value, str):
        return parsed_float(value, bits)
    if isinstance(value, Decimal):
        return decimal_float(value, bits)
    assert isinstance(value, int | float), "no other kind of value is left"
    single = bits == FLOAT_BITS[SchemaType.FLOAT32]
    return as_single(value) if single else float(value)


def _truth(value: object) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    return _integer(value, INT_BITS[SchemaType.INT64]) != 0


def _text(schema: Schema | None, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        single = schema is not None and schema.type is SchemaType.FLOAT32
        return java_float(value) if single else java_double(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.date | dt.time):
        return time_text(milliseconds(value))
    return str(value)


def _encoded(schema: Schema | None, value: object) -> object:
    """*value* as a number, where Connect's schema makes a date or time of it.

    Without schema a number that is not whole is a double in Kafka Connect, whatever its digits.
    """
    if schema is None and isinstance(value, Decimal):
        return float(value)
    if not isinstance(value, dt.date | dt.time):
        return value
    named = (schema.type, schema.name) if schema is not None else None
    if named == (DATE.type, DATE.name) and not isinstance(value, dt.time):
        return day_number(value)
    if named in ((TIME.type, TIME.name), (TIMESTAMP.type, TIMESTAMP.name)):
        return milliseconds(value)
    raise RecordError(f"Unexpected type in Cast transformation: class {java_class(value)}")
