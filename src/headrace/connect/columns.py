"""Python values as columns of Arrow, refused where Arrow would change them; the elements of columns of lists and maps."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Number
from operator import itemgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import RecordError
from headrace.connect.json_document import JsonNull, document
from headrace.connect.schema import JSON_DOCUMENT, Field, Schema, SchemaType, arrow_type

_Values = Sequence[Any]
_Check = Callable[[Schema, _Values], None]

# Numbers from here on, halfway beyond the largest float of 32 bits, are rounded to infinity.
_FLOAT32_END: Final = float.fromhex("0x1.ffffffp+127")
_MIDNIGHT: Final = dt.time()
_ALWAYS_EXACT: Final = frozenset((int, str, bytes, type(None)))
"""Classes whose values Arrow stores exactly or refuses, in a column of any type."""


def check_exact(schema: Schema, values: _Values) -> None:
    """Raise ``ValueError`` or ``TypeError`` where a column of *schema* would silently change *values*.

    ``None`` means no value. Values that Arrow itself refuses pass; instants and times lose what is finer than a
    millisecond, because Kafka Connect cannot represent that.
    """
    check = _CHECKS.get(schema.type)
    if check is not None and set(map(type, values)) - _ALWAYS_EXACT:
        check(schema, [value for value in values if value is not None])


def _check_integers(schema: Schema, values: _Values) -> None:
    for value in values:
        if isinstance(value, Number) and value % 1:  # type: ignore[operator]
            raise ValueError(f"{value!r} is not a whole number")
        if isinstance(value, dt.datetime) and _has_time_of_day(schema, value):
            raise ValueError(f"{value.isoformat()} is not a date, but has a time")


def _has_time_of_day(schema: Schema, value: dt.datetime) -> bool:
    return schema.type is SchemaType.INT32 and value.time() != _MIDNIGHT


def _check_floats(schema: Schema, values: _Values) -> None:
    for value in values:
        if isinstance(value, float) and _FLOAT32_END <= abs(value) < math.inf:
            raise ValueError(f"{value!r} is too large for {schema.type}")


def _check_items(schema: Schema, values: _Values) -> None:
    assert schema.value_schema is not None, "an array has items"
    check_exact(schema.value_schema, [item for value in values for item in value])


def _check_entries(schema: Schema, values: _Values) -> None:
    assert schema.key_schema is not None, "a map has keys"
    assert schema.value_schema is not None, "a map has values"
    entries = [entry for value in values for entry in _entries(value)]
    check_exact(schema.key_schema, [key for key, _ in entries])
    check_exact(schema.value_schema, [value for _, value in entries])


def _entries(value: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401 (whatever a connector returns)
    return value.items() if isinstance(value, Mapping) else value


def _check_structs(schema: Schema, values: _Values) -> None:
    for kind in set(map(type, values)):
        if not issubclass(kind, Mapping):
            raise TypeError(f"a struct is a mapping of its fields, not {kind.__name__!r}")
    shapes = set(map(tuple, values))
    names = {field.name for field in schema.fields}
    unknown = [name for shape in shapes for name in shape if name not in names]
    if unknown:
        raise ValueError(f"the schema has no field {unknown[0]!r}")
    for field in schema.fields:
        if field.schema.type in _CHECKS:
            _check_field(field, _members(field.name, values, shapes))


def _check_field(field: Field, values: _Values) -> None:
    try:
        check_exact(field.schema, values)
    except (TypeError, ValueError) as error:
        raise type(error)(f"field {field.name!r}: {error}") from error


def _members(name: str, values: _Values, shapes: Iterable[tuple[str, ...]]) -> _Values:
    if all(name in shape for shape in shapes):
        return list(map(itemgetter(name), values))
    return [value.get(name) for value in values]


_CHECKS: Final[Mapping[SchemaType, _Check]] = {
    SchemaType.INT8: _check_integers,
    SchemaType.INT16: _check_integers,
    SchemaType.INT32: _check_integers,
    SchemaType.INT64: _check_integers,
    SchemaType.FLOAT32: _check_floats,
    SchemaType.ARRAY: _check_items,
    SchemaType.MAP: _check_entries,
    SchemaType.STRUCT: _check_structs,
}


def column_of(schema: Schema | None, values: Sequence[Any]) -> pa.Array:
    """*values* as a column of *schema*; without one, lists, maps, decimals and :data:`JSON_NULL` become JSON documents.

    ``None`` means no value.

    Raises :class:`~headrace.connect.errors.RecordError` for a value that does not fit.
    """
    try:
        if schema is not None:
            check_exact(schema, values)
            return pa.array(values, arrow_type(schema))
        if any(isinstance(value, Mapping | list | tuple | Decimal | JsonNull) for value in values):
            documents = pa.array(
                [None if value is None else document(value) for value in values], pa.utf8()
            )
            return pa.ExtensionArray.from_storage(JSON_DOCUMENT, documents)
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, ArithmeticError) as error:
        raise RecordError(f"A value does not fit {_type_name(schema)}: {error}") from error


def _type_name(schema: Schema | None) -> str:
    if schema is None:
        return "any type that can be sent"
    return f"its schema, {schema.type}" + (f" {schema.name!r}" if schema.name else "")


def opened(values: pa.Array) -> tuple[npt.NDArray[np.int32], pa.Array]:
    """The elements of all rows of a column of lists or maps, and the borders between the rows.

    Row *i* has the elements ``borders[i] … borders[i + 1]``; a null row has none. An element of a map is a
    struct of its key and its value. Pure, and not copied where the layout allows.
    """
    if pa.types.is_map(values.type):
        values = _as_lists(values)
    lengths = pc.list_value_length(values).fill_null(0).to_numpy(zero_copy_only=False)
    borders = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=borders[1:])
    return borders, values.flatten()


def _as_lists(maps: pa.MapArray) -> pa.ListArray:
    """*maps* as lists of their entries; a cast would refuse entries with nulls in fields that are not nullable."""
    fields = [maps.type.key_field, maps.type.item_field]
    entries = pa.StructArray.from_arrays([maps.keys, maps.items], fields=fields)
    return pa.ListArray.from_buffers(
        pa.list_(entries.type),
        len(maps),
        maps.buffers()[:2],
        null_count=maps.null_count,
        offset=maps.offset,
        children=[entries],
    )
