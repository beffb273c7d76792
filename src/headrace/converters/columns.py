"""Columns for converters: their kinds, Java's classes of their values, their bytes, and the rows of errors."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import RecordError
from headrace.connect.schema import JSON_DOCUMENT, Schema, arrow_type

_JAVA_CLASSES = (
    (pa.types.is_boolean, "java.lang.Boolean"),
    (pa.types.is_int8, "java.lang.Byte"),
    (pa.types.is_int16, "java.lang.Short"),
    (pa.types.is_int32, "java.lang.Integer"),
    (pa.types.is_int64, "java.lang.Long"),
    (pa.types.is_float32, "java.lang.Float"),
    (pa.types.is_float64, "java.lang.Double"),
    (pa.types.is_decimal, "java.math.BigDecimal"),
    (pa.types.is_temporal, "java.util.Date"),
    (pa.types.is_struct, "org.apache.kafka.connect.data.Struct"),
    (pa.types.is_map, "java.util.Map"),
    (pa.types.is_list, "java.util.List"),
)


def is_document(kind: pa.DataType) -> bool:
    """Whether each value of a column of *kind* is the text of a JSON document."""
    return kind == JSON_DOCUMENT


def is_text(kind: pa.DataType) -> bool:
    """Whether *kind* is a type of strings, whatever the width of its offsets."""
    return (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def is_bytes(kind: pa.DataType) -> bool:
    """Whether *kind* is a type of byte strings."""
    return (
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def as_binary(values: pa.Array) -> pa.BinaryArray:
    """The bytes of a column of strings, byte strings, JSON documents or nulls; not copied where possible."""
    if isinstance(values, pa.ExtensionArray):
        return as_binary(values.storage)
    if pa.types.is_string(values.type):
        return values.view(pa.binary())
    return values if pa.types.is_binary(values.type) else values.cast(pa.binary())


def java_class(kind: pa.DataType) -> str:
    """The Java class that Connect has for values of *kind*, for its error sentences."""
    for belongs, name in _JAVA_CLASSES:
        if belongs(kind):
            return name
    if is_bytes(kind):
        return "[B"
    return "java.lang.String" if is_text(kind) or is_document(kind) else str(kind)


def refusal(reason: str, values: pa.Array) -> RecordError:
    """An error about the first row of *values* that is not null, or else about the first row."""
    first = pc.index(pc.is_valid(values), True).as_py() if len(values) else 0
    return RecordError(reason, row=max(first, 0))


_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def check_type(schema: Schema, values: pa.Array) -> None:
    """Raise :class:`~headrace.connect.errors.RecordError` when *values* do not have the type of *schema*."""
    kind, wanted = values.type, arrow_type(schema)
    if schema.name == _DECIMAL and pa.types.is_decimal(kind):
        if kind.scale != wanted.scale:
            raise refusal(
                "Decimal value has mismatching scale for given Decimal schema. "
                f"Schema has scale {wanted.scale}, value has scale {kind.scale}.",
                values,
            )
        return
    if kind == wanted or any(same(kind) and same(wanted) for same in _FAMILIES):
        return
    raise refusal(f"Invalid type for {schema.type.name}: class {java_class(kind)}", values)


# Types of one family differ in their layout, or in what is checked when their members are.
_FAMILIES: tuple[Callable[[pa.DataType], bool], ...] = (
    is_text,
    is_bytes,
    pa.types.is_struct,
    pa.types.is_map,
    lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind),
)


_SIGN = 0x80


def unscaled_bytes(values: pa.Array) -> pa.BinaryArray:
    """The unscaled number of each decimal, as Java's ``BigInteger.toByteArray``; nulls stay null.

    That is two's complement, the highest byte first, in as few bytes as keep the sign.
    """
    width = values.type.byte_width
    stored = np.frombuffer(values.buffers()[1] or b"", np.uint8)
    start = values.offset * width
    octets = stored[start : start + len(values) * width].reshape(-1, width)[:, ::-1]
    fill = np.where(octets[:, 0] >= _SIGN, 0xFF, 0).astype(np.uint8)
    needed = octets != fill[:, None]
    needed[:, -1] = True
    leading = needed.argmax(axis=1)
    # The highest bit of the first byte is the sign: a byte is added where the number itself needs that bit.
    leading -= (octets[np.arange(len(octets)), leading] ^ fill) >= _SIGN
    content = octets[np.arange(width) >= leading[:, None]]
    borders = np.concatenate(([0], np.cumsum(width - leading))).astype(np.int32)
    column = pa.Array.from_buffers(
        pa.binary(), len(values), [None, pa.py_buffer(borders), pa.py_buffer(content)]
    )
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column


def widened(values: pa.Array, unscaled: pa.BinaryArray, size: int) -> pa.BinaryArray:
    """*unscaled*, the bytes of *values*, in *size* bytes each; numbers that need more are left as they are."""
    is_negative = pc.less(values, pa.scalar(0, values.type))
    fill = pc.if_else(is_negative, pa.scalar(b"\xff" * size), pa.scalar(b"\x00" * size))
    padded = pc.binary_slice(pc.binary_join_element_wise(fill, unscaled, pa.scalar(b"")), -size)
    return pc.if_else(pc.less_equal(pc.binary_length(unscaled), size), padded, unscaled)


def row_at(borders: np.ndarray) -> Callable[[int], int]:
    """The row of an element, where row *i* has the elements ``borders[i] … borders[i + 1]``."""
    return lambda element: int(np.searchsorted(borders, element, side="right")) - 1


@contextmanager
def in_rows(row_of: Callable[[int], int]) -> Generator[None]:
    """Raise an error about the row of an element again, with the row of values that contains the element."""
    try:
        yield
    except RecordError as error:
        row = None if error.row is None else row_of(error.row)
        raise RecordError(error.reason, row=row, advice=error.advice) from error


@contextmanager
def in_field(name: str) -> Generator[None]:
    """Raise errors again with an advice that names the field, unless they name an inner one already."""
    try:
        yield
    except RecordError as error:
        advice = error.advice or f"The field is {name}."
        raise RecordError(error.reason, row=error.row, advice=advice) from error


def last_of_each(
    borders: npt.NDArray[np.int32], entries: pa.StructArray
) -> tuple[npt.NDArray[np.int32], pa.StructArray]:
    """*entries* of maps with only the last of each key, in the place of the first, as a Java map has them.

    Row *i* has the entries ``borders[i] … borders[i + 1]``; the borders of what is left come with it.
    """
    rows = np.repeat(np.arange(len(borders) - 1), np.diff(borders))
    codes = entries.field(0).dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first, inverse = np.unique(
        rows * (len(entries) + 1) + codes, return_index=True, return_inverse=True
    )
    if len(first) == len(entries):
        return borders, entries
    last = np.zeros(len(first), np.int64)
    # The last of several writes to one place stays.
    last[inverse] = np.arange(len(entries))
    order = np.argsort(first)
    kept = np.bincount(rows[first], minlength=len(borders) - 1)
    fewer = np.concatenate(([0], np.cumsum(kept))).astype(np.int32)
    return fewer, entries.take(pa.array(last[order]))
