"""Python values as a column of Arrow."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.schema import JSON_DOCUMENT, Schema, arrow_type


def column_of(schema: Schema | None, values: Sequence[Any]) -> pa.Array:
    """*values* as a column of *schema*; without one, lists and maps become JSON documents.

    Raises :class:`~headrace.connect.errors.RecordError` for a value that does not fit.
    """
    try:
        if schema is not None:
            return pa.array(values, arrow_type(schema))
        if any(isinstance(value, Mapping | list | tuple) for value in values):
            documents = pa.array([_document(value) for value in values])
            return pa.ExtensionArray.from_storage(JSON_DOCUMENT, documents)
        return pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise RecordError(
            f"A value does not fit {schema or 'any type that can be sent'}: {error}"
        ) from error


def _document(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
