"""Whether a column has the type that its schema says, in Connect's words."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headrace.connect.schema import Schema, arrow_type
from headrace.converters.columns import is_bytes, is_text, java_class, refusal

_DECIMAL = "org.apache.kafka.connect.data.Decimal"


def check_type(schema: Schema, values: pa.Array) -> None:
    """Raise :class:`~headrace.connect.errors.RecordError` when *values* are not what *schema* says."""
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
