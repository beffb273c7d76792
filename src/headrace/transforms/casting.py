"""Values and columns as another type, as Kafka Connect's Cast makes them; pure."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import RecordError
from headrace.connect.schema import DATE, TIME, TIMESTAMP, Schema, SchemaType
from headrace.java.numbers import (
    as_single,
    decimal_float,
    decimal_int,
    java_double,
    java_float,
    java_floats,
    narrowed,
    parsed_float,
    parsed_int,
    truncated,
)
from headrace.transforms.record_part import PAIR, java_class, parts_of

DAY_MS: Final = 86_400_000
_EPOCH = dt.date(1970, 1, 1)
_START = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)


def milliseconds(value: dt.date | dt.time) -> int:
    """Milliseconds since 1970 of an instant or of a day's start, or since midnight of a time of day."""
    if isinstance(value, dt.datetime):
        return (value - _START) // _MILLISECOND
    if isinstance(value, dt.time):
        since = dt.datetime.combine(_EPOCH, value, tzinfo=dt.UTC) - _START
        return since // _MILLISECOND
    return day_number(value) * DAY_MS


def day_number(value: dt.date) -> int:
    """Days since 1970."""
    return value.toordinal() - _EPOCH.toordinal()


def time_text(millis: int) -> str:
    """*millis* since 1970 as Kafka Connect writes it: as a time, a date, or both, depending on the number."""
    days, rest = divmod(millis, DAY_MS)
    if millis < DAY_MS:
        # Also everything before 1970.
        return f"{_clock(rest)}Z"
    day = (_EPOCH + dt.timedelta(days=days)).isoformat()
    return f"{day}T{_clock(rest)}Z" if rest else day


def _clock(millis: int) -> str:
    return (_START + millis * _MILLISECOND).time().isoformat("milliseconds")


TARGETS: Final[Mapping[str, SchemaType]] = {
    "INT8": SchemaType.INT8,
    "INT16": SchemaType.INT16,
    "INT32": SchemaType.INT32,
    "INT64": SchemaType.INT64,
    "FLOAT32": SchemaType.FLOAT32,
    "FLOAT64": SchemaType.FLOAT64,
    "BOOLEAN": SchemaType.BOOLEAN,
    "STRING": SchemaType.STRING,
}
"""The types to which a value can be cast, by Java's names."""

_UNCASTABLE = ("BYTES", "ARRAY", "MAP", "STRUCT")


@dataclass(frozen=True, slots=True, kw_only=True)
class CastSpec:
    """The types of *fields*; or *whole*, the type of all of the operand."""

    fields: Mapping[str, SchemaType] = field(default_factory=dict[str, SchemaType])
    whole: SchemaType | None = None


def parsed_spec(items: Sequence[str]) -> CastSpec:
    """The parsed ``spec``; raises ``ValueError`` with what is wrong with it."""
    if not items:
        raise ValueError("Must specify at least one field to cast.")
    pairs = [_parts(item, items) for item in items]
    types = [_target(parts[-1]) for parts in pairs]
    if all(len(parts) == PAIR for parts in pairs):
        names = [parts[0].strip() for parts in pairs]
        return CastSpec(fields=dict(zip(names, types, strict=True)))
    if len(items) > 1:
        raise ValueError(
            "Cast transformations that specify a type to cast the entire value to may only specify "
            "a single cast in their spec"
        )
    return CastSpec(whole=types[0])


def _parts(item: str, items: Sequence[str]) -> list[str]:
    parts = parts_of(item)
    if len(parts) > PAIR:
        # Not Kafka Connect's own sentence, which names the key of another transformation.
        message = f"Invalid value [{', '.join(items)}] for configuration spec"
        raise ValueError(f"{message}: Invalid mapping of a field to a type: {item}")
    return parts


def _target(name: str) -> SchemaType:
    wanted = name.strip().upper()
    if wanted in TARGETS:
        return TARGETS[wanted]
    supported = ", ".join(TARGETS)
    if wanted in _UNCASTABLE:
        raise ValueError(
            f"Cast transformation does not support casting to {wanted}; "
            f"supported types are [{supported}]"
        )
    raise ValueError(
        f"Invalid type found in casting spec: {name.strip()}; supported types are [{supported}]"
    )


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

    Raises :class:`~headrace.connect.errors.RecordError` in Kafka Connect's words for a value that cannot be cast.
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
    """*value* as a number, also where Connect's schema makes a date or time of it.

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


_ARROW = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
}
# Text that Arrow parses as Java does: Arrow also accepts hexadecimal integers, and Java more forms than these.
_PLAIN_INT = r"^-?[0-9]{1,18}$"
_PLAIN_FLOAT = r"^-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,2})?$"


def cast_column(column: pa.Array, target: SchemaType) -> pa.Array | None:
    """*column* as *target*, nulls still null; ``None`` when its values have to be cast one by one."""
    return _texts(column) if target is SchemaType.STRING else _numbers(column, target)


def _numbers(column: pa.Array, target: SchemaType) -> pa.Array | None:
    kind = column.type
    if pa.types.is_string(kind):
        return _of_texts(column, target)
    if pa.types.is_decimal(kind):
        return _of_decimals(column, target)
    if pa.types.is_temporal(kind):
        wide = pa.types.is_timestamp(kind)
        return _of_integers(column.view(pa.int64() if wide else pa.int32()), target)
    if pa.types.is_boolean(kind):
        return _of_integers(column.cast(pa.int8()), target)
    if pa.types.is_floating(kind):
        return _of_floats(column, target)
    return _of_integers(column, target) if pa.types.is_integer(kind) else None


def _of_integers(column: pa.Array, target: SchemaType) -> pa.Array:
    if target is SchemaType.BOOLEAN:
        return pc.not_equal(column, pa.scalar(0, column.type))
    return column.cast(_ARROW[target], safe=False)


def _of_floats(column: pa.Array, target: SchemaType) -> pa.Array:
    if target in FLOAT_BITS:
        return column.cast(_ARROW[target], safe=False)
    if target is SchemaType.BOOLEAN:
        return _of_integers(_whole_numbers(column, np.int64), target)
    wide = INT_BITS[target] > INT_BITS[SchemaType.INT32]
    return _of_integers(_whole_numbers(column, np.int64 if wide else np.int32), target)


def _whole_numbers(column: pa.Array, kind: type[np.signedinteger]) -> pa.Array:
    """As in Java: the nearest number that fits, and 0 for NaN."""
    limits = np.iinfo(kind)
    values = column.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    high, low = values >= float(limits.max), values <= float(limits.min)
    inside = np.where(high | low | np.isnan(values), 0.0, values).astype(kind)
    whole = np.where(high, limits.max, np.where(low, limits.min, inside))
    mask = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(whole.astype(kind), mask=mask)


def _of_texts(column: pa.Array, target: SchemaType) -> pa.Array | None:
    if target is SchemaType.BOOLEAN:
        return pc.equal(pc.ascii_lower(column), "true")
    plain = _PLAIN_FLOAT if target in FLOAT_BITS else _PLAIN_INT
    if not pc.all(pc.match_substring_regex(column, plain), min_count=0).as_py():
        return None
    return _unless_out_of_range(column, _ARROW[target])


def _of_decimals(column: pa.Array, target: SchemaType) -> pa.Array | None:
    if target in FLOAT_BITS:
        # By way of text: Arrow's own cast does not always find the nearest number.
        return column.cast(pa.utf8()).cast(_ARROW[target])
    whole = _unless_out_of_range(pc.trunc(column), pa.int64())
    return None if whole is None else _of_integers(whole, target)


def _unless_out_of_range(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        return None


def _texts(column: pa.Array) -> pa.Array | None:
    kind = column.type
    if pa.types.is_floating(kind):
        return java_floats(column)
    if pa.types.is_binary(kind):
        octets = column.to_pylist()
        return pa.array(
            [None if v is None else base64.b64encode(v).decode() for v in octets], pa.utf8()
        )
    if pa.types.is_temporal(kind):
        return _time_texts(column)
    return None if pa.types.is_nested(kind) else column.cast(pa.utf8())


def _time_texts(column: pa.Array) -> pa.Array:
    """Each value as :func:`~headrace.transforms.casting.time_text` writes it."""
    millis = _milliseconds(column)
    instants = millis.cast(pa.timestamp("ms"))
    clock = pc.strftime(instants, "%H:%M:%SZ")
    days = pc.strftime(instants, "%Y-%m-%d")
    within = pc.equal(pc.multiply(pc.divide(millis, DAY_MS), DAY_MS), millis)
    later = pc.if_else(within, days, pc.binary_join_element_wise(days, clock, "T"))
    return pc.if_else(pc.less(millis, DAY_MS), clock, later)


def _milliseconds(column: pa.Array) -> pa.Array:
    if pa.types.is_timestamp(column.type):
        return column.view(pa.int64())
    numbers = column.view(pa.int32()).cast(pa.int64())
    return pc.multiply(numbers, DAY_MS) if pa.types.is_date(column.type) else numbers
