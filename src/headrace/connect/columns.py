"""Python values as a column of Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.exact_values import check_exact
from headrace.connect.json_document import JsonNull, document
from headrace.connect.schema import JSON_DOCUMENT, Schema, arrow_type


def column_of(schema: Schema | None, values: Sequence[Any]) -> pa.Array:
    """*values* as a column of *schema*; without one, lists, maps, decimals and :data:`JSON_NULL` become JSON documents.

    ``None`` is no value, whatever the others are.

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
        raise RecordError(f"A value does not fit {_told(schema)}: {error}") from error


def _told(schema: Schema | None) -> str:
    if schema is None:
        return "any type that can be sent"
    return f"its schema, {schema.type}" + (f" {schema.name!r}" if schema.name else "")
