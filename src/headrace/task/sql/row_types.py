"""The Arrow types in which Spark carries frames from the reading to the writing process; columns, headers and offsets in them; pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.arrow_types import schema_of
from headrace.connect.columns import opened
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.json_document import document
from headrace.connect.record import Headers
from headrace.connect.schema import TIME, TIMESTAMP, Field, Schema, SchemaType

RECORD: Final = 0
DEAD_LETTER: Final = 1
FILTERED: Final = 2
REFUSED: Final = 3
END_OF_POLL: Final = 4
COMMIT: Final = 5
ABORT: Final = 6
FAILED: Final = 7
BATCH: Final = 8
"""What the following records have in common, and how many they are."""
END: Final = 9
"""Reading has ended; only filler rows follow."""
NOTHING: Final = 10
"""A filler row, which flushes the rows before it through Spark."""
WAITING: Final = 11

MICROSECONDS: Final = pa.timestamp("us", tz="UTC")
HEADER: Final = pa.struct([pa.field("key", pa.utf8()), pa.field("value", pa.utf8())])

_Is = Callable[[pa.DataType], bool]
_PLAIN: tuple[tuple[_Is, pa.DataType], ...] = (
    (pa.types.is_null, pa.utf8()),
    (pa.types.is_large_string, pa.utf8()),
    (pa.types.is_string_view, pa.utf8()),
    (pa.types.is_large_binary, pa.binary()),
    (pa.types.is_binary_view, pa.binary()),
    (pa.types.is_fixed_size_binary, pa.binary()),
    (pa.types.is_float16, pa.float32()),
    (pa.types.is_uint8, pa.int16()),
    (pa.types.is_uint16, pa.int32()),
    (pa.types.is_uint32, pa.int64()),
    (pa.types.is_uint64, pa.decimal128(20, 0)),
    # Spark's type for times of day has to be enabled by a setting.
    (pa.types.is_time32, pa.int32()),
    (pa.types.is_time64, pa.int64()),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameTypes:
    """The types of the keys and values of all records of a connector; fixed before its job begins.

    Both are carried types, as :func:`travelling` returns. *read* is the values' type with required fields kept
    (in *value* all are nullable), *left* the same after the step; each is ``None`` if nothing is required, or if it
    is unknown.
    """

    value: pa.DataType = field(default_factory=pa.utf8)
    key: pa.DataType = field(default_factory=pa.utf8)
    read: pa.DataType | None = None
    left: pa.DataType | None = None

    def schema(self) -> pa.Schema:
        """The columns of frames, in their order."""
        return pa.schema(
            {
                "kind": pa.int8(),
                "topic": pa.utf8(),
                "partition": pa.int32(),
                "key": self.key,
                "value": self.value,
                "headers": pa.list_(HEADER),
                "timestamp": pa.int64(),
                "source_partition": pa.int32(),
                "offset": pa.binary(),
                "keep": pa.bool_(),
                "note": pa.binary(),
            }
        )


def travelling(kind: pa.DataType, *, as_required: bool = False) -> pa.DataType:
    """The type in which Spark carries values of *kind*: every field nullable, instants in microseconds.

    A carried type is mapped to itself, whatever Spark calls its parts. A time of day is a number. *as_required*
    keeps fields that are not nullable; such a type must not be declared to Spark, which would read a null there as
    a value.
    """
    if isinstance(kind, pa.BaseExtensionType):
        return travelling(kind.storage_type, as_required=as_required)
    if pa.types.is_timestamp(kind):
        return MICROSECONDS if kind.tz else pa.timestamp("us")

    def part(name: str, of: pa.Field) -> pa.Field:
        nullable = of.nullable or not as_required
        return pa.field(name, travelling(of.type, as_required=as_required), nullable=nullable)

    if pa.types.is_struct(kind):
        return pa.struct([part(each.name, each) for each in kind])
    if pa.types.is_map(kind):
        key = travelling(kind.key_type, as_required=as_required)
        return pa.map_(key, part("value", kind.item_field))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(part("item", kind.value_field))
    return next((carried for belongs, carried in _PLAIN if belongs(kind)), kind)


def has_times(kind: pa.DataType) -> bool:
    """Whether there are times of day in *kind*; carried types have none."""
    return pa.types.is_time(kind) or any(
        has_times(kind.field(index).type) for index in range(kind.num_fields)
    )


def reshaped(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """*values* converted to the type *wanted*; the two differ as carried types differ from Connect's.

    Equal types are not copied. Raises ``pyarrow.ArrowInvalid`` for a value that *wanted* cannot hold.
    """
    if values.type.equals(wanted, check_metadata=True):
        return values
    if isinstance(values, pa.ExtensionArray):
        return reshaped(values.storage, wanted)
    if isinstance(wanted, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(wanted, reshaped(values, wanted.storage_type))
    for belongs, reshape in _SHAPES:
        if belongs(values.type) and belongs(wanted):
            return reshape(values, wanted)
    return pa.nulls(len(values)) if pa.types.is_null(wanted) else values.cast(wanted)


def schema_of_carried(kind: pa.DataType) -> Schema:
    """Connect's schema for values of type *kind* that Spark returned; instants are its Timestamp, times of day its Time.

    Raises ``TypeError`` for a type that Connect does not have.
    """
    if pa.types.is_timestamp(kind):
        return TIMESTAMP
    if pa.types.is_time(kind):
        return TIME
    if pa.types.is_struct(kind):
        return Schema(type=SchemaType.STRUCT, fields=tuple(_field(each) for each in kind))
    if pa.types.is_map(kind):
        return Schema(
            type=SchemaType.MAP,
            key_schema=schema_of_carried(kind.key_type),
            value_schema=schema_of_carried(kind.item_type).as_optional(),
        )
    if pa.types.is_list(kind):
        return Schema(
            type=SchemaType.ARRAY, value_schema=schema_of_carried(kind.value_type).as_optional()
        )
    return schema_of(kind)


def _field(field: pa.Field) -> Field:
    try:
        return Field(field.name, schema_of_carried(field.type).as_optional())
    except TypeError as error:
        raise TypeError(f"{field.name}: {error}") from error


def _structs(values: Any, wanted: Any) -> pa.StructArray:  # noqa: ANN401 (a struct's array and type)
    fields = list[pa.Field](wanted)
    children = [reshaped(values.field(index), each.type) for index, each in enumerate(fields)]
    if not children:
        return values
    return pa.StructArray.from_arrays(children, fields=fields, mask=_nulls(values))


def _lists(values: pa.Array, wanted: Any) -> pa.ListArray:  # noqa: ANN401 (a list's type)
    borders, items = opened(values)
    items = reshaped(items, wanted.value_type)
    return pa.ListArray.from_arrays(pa.array(borders), items, type=wanted, mask=_nulls(values))


def _maps(values: pa.Array, wanted: Any) -> pa.MapArray:  # noqa: ANN401 (a map's type)
    borders, entries = opened(values)
    keys = reshaped(entries.field(0), wanted.key_type)
    items = reshaped(entries.field(1), wanted.item_type)
    return pa.MapArray.from_arrays(pa.array(borders), keys, items, type=wanted, mask=_nulls(values))


def _instants(values: pa.Array, wanted: Any) -> pa.Array:  # noqa: ANN401 (a timestamp's type)
    # Numbers since 1970, whatever the zone is called: only the unit may change.
    numbers = values.view(pa.int64()).view(pa.timestamp(values.type.unit))
    if (values.type.unit, wanted.unit) == ("us", "ms"):
        numbers = pc.floor_temporal(numbers, unit="millisecond")
    return numbers.cast(pa.timestamp(wanted.unit)).view(pa.int64()).view(wanted)


def _times(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    # Finer ones are rounded down, as instants are.
    return pc.floor_temporal(values, unit="millisecond").cast(wanted)


def _is_list(kind: pa.DataType) -> bool:
    return (
        pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    )


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


_SHAPES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[pa.Array, Any], pa.Array]], ...] = (
    (pa.types.is_struct, _structs),
    (pa.types.is_map, _maps),
    (_is_list, _lists),
    (pa.types.is_timestamp, _instants),
    (pa.types.is_time, _times),
)


_COLUMN = pa.list_(HEADER)


def shown(headers: Sequence[Headers] | None, rows: int) -> pa.Array:
    """*headers* as SQL sees them: each value as text, whatever its type."""
    if headers is None:
        return no_headers(rows)
    if isinstance(headers, HeaderColumns) and all(map(_casts_to_text, headers.columns)):
        return _by_columns(headers)
    texts = [[{"key": one.key, "value": _text(one.value)} for one in each] for each in headers]
    return pa.array(texts, _COLUMN)


def no_headers(rows: int) -> pa.Array:
    """An empty list for each row.

    Not nulls, because for each null Spark scans all rows before it in the batch.
    """
    return pa.ListArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), rows + 1), pa.nulls(0, HEADER)
    )


# Arrow's text of these types is that of :func:`_text`.
_TEXT_BY_CAST = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)


def _casts_to_text(column: HeaderColumn) -> bool:
    values = column.values
    return values is None or any(belongs(values.type) for belongs in _TEXT_BY_CAST)


def _by_columns(headers: HeaderColumns) -> pa.Array:
    rows, width = len(headers), len(headers.columns)
    borders = pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    if not width:
        return pa.ListArray.from_arrays(borders, pa.nulls(0, HEADER))
    keys = pa.array([each.key for each in headers.columns], pa.utf8())
    texts = pa.concat_arrays([_texts(each, rows) for each in headers.columns])
    of_columns = np.repeat(np.arange(width)[None, :], rows, axis=0).ravel()
    order = (np.arange(width)[None, :] * rows + np.arange(rows)[:, None]).ravel()
    entries = [keys.take(pa.array(of_columns)), texts.take(pa.array(order))]
    return pa.ListArray.from_arrays(
        borders, pa.StructArray.from_arrays(entries, fields=list(HEADER)), type=_COLUMN
    )


def _texts(column: HeaderColumn, rows: int) -> pa.Array:
    if column.values is not None:
        return column.values.cast(pa.utf8())
    return pa.repeat(pa.scalar(_text(column.value), pa.utf8()), rows)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    try:
        return document(value)
    except (TypeError, ValueError):
        return str(value)


_BYTES = 8


def packed(columns: Mapping[str, pa.Int64Array], rows: int) -> pa.BinaryArray:
    """One value per row: the row's numbers in *columns*, eight bytes each."""
    width = _BYTES * len(columns)
    numbers = np.empty((rows, len(columns)), "<i8")
    for index, column in enumerate(columns.values()):
        numbers[:, index] = column.to_numpy()
    borders = np.arange(rows + 1, dtype=np.int32) * np.int32(width)
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(numbers)]
    return pa.Array.from_buffers(pa.binary(), rows, buffers)


def unpacked(column: pa.BinaryArray, names: Sequence[str]) -> dict[str, pa.Int64Array]:
    """The columns *names* that :func:`packed` combined into *column*.

    Raises ``ValueError`` when *column* does not have that form.
    """
    width = _BYTES * len(names)
    _, borders, stored = column.buffers()
    starts = np.frombuffer(borders or b"", np.int32)[column.offset :][: len(column) + 1]
    if column.null_count or (np.diff(starts) != width).any():
        raise ValueError(f"The packed source offsets of rows are not {width} bytes each.")
    if not len(column) or not names:
        return {name: pa.array([], pa.int64()) for name in names}
    octets = np.frombuffer(stored or b"", np.uint8)[starts[0] : starts[-1]]
    numbers = octets.view("<i8").reshape(len(column), len(names))
    return {name: pa.array(numbers[:, index]) for index, name in enumerate(names)}
