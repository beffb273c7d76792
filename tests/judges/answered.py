"""What the Java judge answers about records, and what our transformations give, in one form to be compared."""

from __future__ import annotations

import base64
import dataclasses
import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from headrace.connect.columns import column_of
from headrace.connect.json_document import JsonNull
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
# The years from 1 to 9999, which Python has dates for.
_FIRST_MS, _END_MS = -62_135_596_800_000, 253_402_300_800_000


def java_record(told: Mapping[str, Any]) -> dict[str, Any]:
    """A record as the judge tells it: schemas as they are, numbers by what they are worth."""
    headers = [(each["name"], *_java_part(each)) for each in told["headers"]]
    parts = {side: _java_part(told[side]) for side in ("key", "value")}
    place = {name: told[name] for name in ("topic", "partition", "timestamp")}
    return {**place, **parts, "headers": headers}


def has_strange_time(told: Any) -> bool:  # noqa: ANN401
    """Whether there is a time outside the years 1 to 9999 in a record as :func:`java_record` gives it."""
    match told:
        case ("Date", int(millis)):
            return not _FIRST_MS <= millis < _END_MS
        case dict():
            return any(map(has_strange_time, told.values()))
        case list() | tuple():
            return any(map(has_strange_time, told))
        case _:
            return False


def our_record(record: SourceRecord) -> dict[str, Any]:
    """The same of ours; raises :class:`~headrace.connect.errors.RecordError` for what does not fit its schema."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "timestamp": record.timestamp,
        "key": _our_part(record.key_schema, record.key),
        "value": _our_part(record.value_schema, record.value),
        "headers": [(each.key, *_our_part(each.schema, each.value)) for each in record.headers],
    }


def with_plain_defaults(schema: Schema) -> Schema:
    """*schema* with defaults as single records hold them, and not as columns do."""
    return dataclasses.replace(
        schema,
        default=_plain(schema, schema.default),
        fields=tuple(Field(each.name, with_plain_defaults(each.schema)) for each in schema.fields),
        key_schema=schema.key_schema and with_plain_defaults(schema.key_schema),
        value_schema=schema.value_schema and with_plain_defaults(schema.value_schema),
    )


def _plain(schema: Schema, value: object) -> Any:  # noqa: ANN401 (whatever the schema says)
    return column_of(schema, [value])[0].as_py(maps_as_pydicts="strict")


def _java_part(told: Mapping[str, Any]) -> tuple[Any, Any]:
    return _java_schema(told["schema"]), _java_value(told["value"])


def _our_part(schema: Schema | None, value: object) -> tuple[Any, Any]:
    if schema is None:
        return None, _our_value(None, value)
    return _our_schema(schema), _our_value(schema, _plain(schema, value))


def _java_schema(told: Mapping[str, Any] | None) -> Any:  # noqa: ANN401
    if told is None:
        return None
    made = dict(told)
    made["default"] = _java_value(told.get("default"))
    for inner in ("keys", "values"):
        made[inner] = _java_schema(told.get(inner))
    made["fields"] = [(name, _java_schema(each)) for name, each in told.get("fields", ())]
    return made


def _our_schema(schema: Schema | None) -> Any:  # noqa: ANN401
    if schema is None:
        return None
    made = {"type": schema.type.name, "optional": schema.optional}
    for name in ("name", "version", "doc"):
        if getattr(schema, name) is not None:
            made[name] = getattr(schema, name)
    return {
        **made,
        "parameters": dict(schema.parameters),
        "default": _our_value(schema, _plain(schema, schema.default)),
        "keys": _our_schema(schema.key_schema),
        "values": _our_schema(schema.value_schema),
        "fields": [(each.name, _our_schema(each.schema)) for each in schema.fields],
    }


def _java_value(told: Sequence[Any] | None) -> Any:  # noqa: ANN401
    if told is None:
        return None
    kind, held = told
    if kind == "Struct":
        return "Struct", [(name, _java_value(each)) for name, each in held]
    if kind == "Map":
        return "Map", sorted(((_java_value(k), _java_value(v)) for k, v in held), key=repr)
    if kind == "List":
        return "List", [_java_value(each) for each in held]
    return _READING.get(kind, lambda text: (kind, text))(held)


def _our_value(schema: Schema | None, value: Any) -> Any:  # noqa: ANN401
    match value:
        case Mapping() if schema is not None and schema.type is SchemaType.STRUCT:
            return "Struct", [(f.name, _our_value(f.schema, value[f.name])) for f in schema.fields]
        case Mapping():
            keys, values = (schema.key_schema, schema.value_schema) if schema else (None, None)
            pairs = ((_our_value(keys, k), _our_value(values, v)) for k, v in value.items())
            return "Map", sorted(pairs, key=repr)
        case list() | tuple():
            items = schema.value_schema if schema else None
            return "List", [_our_value(items, each) for each in value]
        case None | JsonNull():
            return None
        case _:
            return next(tell(value) for kind, tell in _TELLING if isinstance(value, kind))


def _millis(value: dt.date | dt.time) -> int:
    if isinstance(value, dt.time):
        value = dt.datetime.combine(_EPOCH.date(), value)
    if not isinstance(value, dt.datetime):
        value = dt.datetime.combine(value, dt.time())
    return (value.replace(tzinfo=dt.UTC) - _EPOCH) // dt.timedelta(milliseconds=1)


_TELLING: Sequence[tuple[type, Callable[[Any], tuple[str, Any]]]] = (
    (bool, lambda value: ("Boolean", str(value).lower())),
    (int, lambda value: ("whole", value)),
    (float, lambda value: ("floating", repr(value))),
    (str, lambda value: ("String", value)),
    (bytes, lambda value: ("Bytes", base64.b64encode(value).decode())),
    (Decimal, lambda value: ("BigDecimal", str(value))),
    (dt.date, lambda value: ("Date", _millis(value))),
    (dt.time, lambda value: ("Date", _millis(value))),
)

_READING: Mapping[str, Callable[[str], tuple[str, Any]]] = {
    **dict.fromkeys(("Byte", "Short", "Integer", "Long"), lambda text: ("whole", int(text))),
    "Float": lambda text: ("floating", repr(float(np.float32(text)))),
    "Double": lambda text: ("floating", repr(float(text))),
    "BigDecimal": lambda text: ("BigDecimal", str(Decimal(text))),
    "Date": lambda text: ("Date", int(text)),
}
