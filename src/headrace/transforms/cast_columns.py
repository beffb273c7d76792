"""Columns as columns of another type: what Cast makes of each of their values, all at once; pure."""

from __future__ import annotations

import base64

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.java_floats import java_floats
from headrace.connect.schema import SchemaType
from headrace.transforms.casting import FLOAT_BITS, INT_BITS
from headrace.transforms.times import DAY_MS

_ARROW = {
    SchemaType.INT8: pa.int8(),
    SchemaType.INT16: pa.int16(),
    SchemaType.INT32: pa.int32(),
    SchemaType.INT64: pa.int64(),
    SchemaType.FLOAT32: pa.float32(),
    SchemaType.FLOAT64: pa.float64(),
    SchemaType.BOOLEAN: pa.bool_(),
}
# Text that Arrow reads as Java does: Arrow knows hexadecimal integers, too, and Java more forms than these.
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
    """Java's way: the nearest number that fits, and 0 for what is none."""
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
        # By their text: Arrow's own way does not always find the nearest number.
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
    """What :func:`~headrace.transforms.times.time_text` makes of each."""
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
