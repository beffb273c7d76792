"""Python values as a column of Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.schema import JSON_DOCUMENT, Schema, arrow_type


class JsonNull:
    """The type of :data:`JSON_NULL`."""

    def __repr__(self) -> str:
        return "JSON_NULL"


JSON_NULL: Final = JsonNull()
"""The JSON document ``null`` as a value without schema: ``None`` is a record without value."""


def column_of(schema: Schema | None, values: Sequence[Any]) -> pa.Array:
    """*values* as a column of *schema*; without one, lists, maps, decimals and :data:`JSON_NULL` become JSON documents.

    ``None`` is no value, whatever the others are.

    Raises :class:`~headrace.connect.errors.RecordError` for a value that does not fit.
    """
    try:
        if schema is not None:
            return pa.array(values, arrow_type(schema))
        if any(isinstance(value, Mapping | list | tuple | Decimal | JsonNull) for value in values):
            documents = pa.array(
                [None if value is None else document(value) for value in values], pa.utf8()
            )
            return pa.ExtensionArray.from_storage(JSON_DOCUMENT, documents)
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise RecordError(
            f"A value does not fit {schema or 'any type that can be sent'}: {error}"
        ) from error


def document(value: object) -> str:
    """*value* as a JSON document, decimals as numbers with all their digits.

    Raises ``TypeError`` or ``ValueError`` for what JSON has not.
    """
    try:
        return "null" if value is JSON_NULL else _plain(value)
    except TypeError:
        return _with_decimals(value)


def _plain(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _with_decimals(value: object) -> str:
    if isinstance(value, Mapping):
        items = (f"{_name(name)}:{_with_decimals(each)}" for name, each in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_with_decimals, value))}]"
    if not isinstance(value, Decimal):
        return _plain(value)
    if not value.is_finite():
        raise ValueError(f"{value} is no JSON number")
    return str(value)


def _name(name: object) -> str:
    # As in `json`: what is no string is its own text in JSON.
    return _plain(name if isinstance(name, str) else _plain(name))
