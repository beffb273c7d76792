"""What converters ask of a column: which kind it is, what Java would call its values, its bytes."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import RecordError
from headrace.connect.schema import JSON_DOCUMENT

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
    """An error of the first row of *values* that is not null, or else of the first."""
    first = pc.index(pc.is_valid(values), True).as_py() if len(values) else 0
    return RecordError(reason, row=max(first, 0))
