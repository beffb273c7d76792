"""Default values of Connect's schemas, as Avro writes them in its own."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema, SchemaType

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_UNFIT = (TypeError, ValueError, AttributeError, KeyError, ArithmeticError)


def avro_default(schema: Schema, value: object) -> object:
    """The JSON of *value*, a default of *schema*: bytes as text in Latin-1, dates and times as numbers.

    Pure. Raises :class:`~headrace.connect.errors.RecordError` for a value that is not of the schema.
    """
    try:
        return _json(schema, value)
    except _UNFIT as error:
        raise RecordError(
            f"{value!r} cannot be the default of a schema of type {schema.type}: {error}", row=0
        ) from error


def _json(schema: Schema, value: Any) -> object:  # noqa: ANN401
    if value is None:
        return None
    if schema.type is SchemaType.STRUCT:
        return {each.name: _json(each.schema, value.get(each.name)) for each in schema.fields}
    if schema.value_schema is not None:
        return _container(schema, schema.value_schema, value)
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if isinstance(value, Decimal):
        return _unscaled(value, int(schema.parameters["scale"])).decode("latin-1")
    return _plain(value)


def _container(schema: Schema, inner: Schema, value: Any) -> object:  # noqa: ANN401
    if schema.key_schema is None:
        return [_json(inner, each) for each in value]
    entries = value.items() if isinstance(value, dict) else value
    if has_text_keys(schema):
        return {key: _json(inner, each) for key, each in entries}
    return [{"key": _json(schema.key_schema, key), "value": _json(inner, x)} for key, x in entries]


def has_text_keys(schema: Schema) -> bool:
    """Whether a map of *schema* can be one in Avro, too: its keys are strings and never null."""
    keys = schema.key_schema
    return keys is not None and keys.type is SchemaType.STRING and not keys.optional


def _plain(value: Any) -> object:  # noqa: ANN401
    if isinstance(value, dt.datetime):
        known = value if value.tzinfo else value.replace(tzinfo=dt.UTC)
        return (known - _EPOCH) // _MILLISECOND
    if isinstance(value, dt.date):
        return (value - _EPOCH.date()).days
    if isinstance(value, dt.time):
        return (dt.datetime.combine(_EPOCH, value, dt.UTC) - _EPOCH) // _MILLISECOND
    return value


def _unscaled(value: Decimal, scale: int) -> bytes:
    """The bytes of the number without its point, as Java has them."""
    number = int(value.scaleb(scale))
    return number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
