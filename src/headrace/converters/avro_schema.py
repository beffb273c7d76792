"""Avro's schema for a schema of Connect's, with its names and defaults, as Confluent's ``AvroData`` makes it."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import quote_plus

from headrace.connect.errors import RecordError
from headrace.connect.schema import DATE, TIME, TIMESTAMP, Schema, SchemaType
from headrace.connect.schema import decimal as decimal_schema

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNFIT = re.compile(r"[^A-Za-z0-9_]")


def fit_name(name: str, *, scrub: bool) -> str:
    """*name*, or what ``scrub.invalid.names`` makes of it. Pure.

    Raises :class:`~headrace.connect.errors.RecordError` for a name that Avro does not allow.
    """
    if _NAME.fullmatch(name):
        return name
    if scrub and name:
        return _scrubbed(name)
    raise RecordError(
        f"{name!r} cannot be a name in an Avro schema.",
        row=0,
        advice="Set scrub.invalid.names=true to change such names, or rename it in the source.",
    )


def split_name(full_name: str, *, scrub: bool) -> tuple[str, str]:
    """Namespace, empty if there is none, and name of *full_name*; both as :func:`fit_name` has them."""
    space, _, name = full_name.rpartition(".")
    parts = [fit_name(part, scrub=scrub) for part in space.split(".")] if space else []
    return ".".join(parts), fit_name(name, scrub=scrub)


def _scrubbed(name: str) -> str:
    """*name* as Java encodes it for a URL, with underscores for characters that are still not allowed."""
    encoded = quote_plus(name, safe="*", errors="replace").replace("~", "%7E")
    prefix = "x" if encoded[0].isdecimal() else ""
    return _UNFIT.sub("_", prefix + encoded)


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MILLISECOND = dt.timedelta(milliseconds=1)
_UNFIT_DEFAULT = (TypeError, ValueError, AttributeError, KeyError, ArithmeticError)


def avro_default(schema: Schema, value: object) -> object:
    """The JSON of *value*, a default of *schema*: bytes as text in Latin-1, dates and times as numbers.

    Pure. Raises :class:`~headrace.connect.errors.RecordError` for a value that is not of the schema.
    """
    try:
        return _json(schema, value)
    except _UNFIT_DEFAULT as error:
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


CONFLUENT: Final = "io.confluent.connect.avro"
_ENUM = f"{CONFLUENT}.Enum"
_UNION = f"{CONFLUENT}.Union"
_FIXED_SIZE = "connect.fixed.size"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroRules:
    """*enums*: strings that were enums are written as enums. *defaults*: defaults are written in place of nulls."""

    meta_data: bool = True
    enums: bool = False
    scrub: bool = False
    defaults: bool = True


def is_union(schema: Schema) -> bool:
    """Whether structs of *schema* are unions: each holds a value in one of its fields."""
    return schema.type is SchemaType.STRUCT and schema.name == _UNION


def is_null_first(schema: Schema) -> bool:
    """Whether null is the first branch of an optional *schema*; a default is always of the first."""
    return schema.default is None


def fixed_size(schema: Schema) -> int | None:
    """The size of each value of *schema* in bytes, if it was one of Avro's fixed types."""
    if schema.type is not SchemaType.BYTES:
        return None
    size = schema.parameters.get(_FIXED_SIZE)
    return None if size is None else int(size)


def enum_name(schema: Schema, rules: AvroRules) -> str | None:
    """The name of the enum that values of *schema* are symbols of, if they are written as such."""
    if not rules.enums or schema.type is not SchemaType.STRING:
        return None
    return schema.parameters.get(_ENUM)


def enum_symbols(schema: Schema) -> list[str]:
    """The symbols of an enum, in order."""
    prefix = f"{_ENUM}."
    return [value for key, value in schema.parameters.items() if key.startswith(prefix)]


AvroJson = str | list[Any] | dict[str, Any]

_DECIMAL = decimal_schema(0).name
_PRECISION, _USUAL_PRECISION = "connect.decimal.precision", 64
_FROM_AVRO = f"{CONFLUENT}.field.default"
_PLAIN = {
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_SMALL = (SchemaType.INT8, SchemaType.INT16)
_LOGICAL: Mapping[str | None, str] = {
    _DECIMAL: "decimal",
    TIME.name: "time-millis",
    TIMESTAMP.name: "timestamp-millis",
    DATE.name: "date",
}


def avro_schema(schema: Schema, rules: AvroRules) -> AvroJson:
    """The Avro schema of values of *schema*. Pure; called once per schema.

    Raises :class:`~headrace.connect.errors.RecordError` for names that Avro does not allow, and for two
    types of one name.
    """
    return _Maker(rules).type_of(schema, "")


def avro_text(avro: AvroJson) -> str:
    """*avro* as text, compact, its properties in the order of Avro's own Java library."""
    return json.dumps(avro, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class _Maker:
    """Makes one schema; knows which types are defined in it so far."""

    def __init__(self, rules: AvroRules) -> None:
        self._rules = rules
        self._defined: list[tuple[Schema, str]] = []
        self._nameless = 0

    def type_of(self, schema: Schema, space: str) -> AvroJson:
        """The type of *schema* within the namespace *space*."""
        if is_union(schema):
            branches = [self._bare(each.schema, space) for each in schema.fields]
            return ["null", *branches] if schema.optional else branches
        bare = self._bare(schema, space)
        if not schema.optional:
            return bare
        return ["null", bare] if is_null_first(schema) else [bare, "null"]

    def _bare(self, schema: Schema, space: str) -> AvroJson:
        """The type of *schema* without null."""
        if schema.type is SchemaType.STRUCT:
            return self._record(schema, space)
        if schema.type is SchemaType.ARRAY:
            assert schema.value_schema is not None
            items = self.type_of(schema.value_schema, space)
            return {"type": "array", "items": items, **self._annotations(schema)}
        if schema.type is SchemaType.MAP:
            return self._map(schema, space)
        if enum_name(schema, self._rules) or fixed_size(schema) is not None:
            return self._leaf(schema, space)
        notes = {**_decimal_size(schema), **self._annotations(schema)}
        plain = _PLAIN[schema.type]
        return {"type": plain, **notes} if notes else plain

    def _record(self, schema: Schema, space: str) -> AvroJson:
        names, known = self._named(schema, schema.name, space)
        if known is not None:
            return known
        inner = names.get("namespace", space)
        doc = schema.parameters.get(f"{CONFLUENT}.record.doc")
        fields = [
            self._field(
                each.name,
                each.schema,
                inner,
                schema.parameters.get(f"{CONFLUENT}.field.doc.{each.name}"),
            )
            for each in schema.fields
        ]
        _check_distinct([each["name"] for each in fields])
        avro = {"type": "record", **names, **({} if doc is None else {"doc": doc})}
        return {**avro, "fields": fields, **self._annotations(schema)}

    def _leaf(self, schema: Schema, space: str) -> AvroJson:
        """An enum or a fixed type."""
        enum, size = enum_name(schema, self._rules), fixed_size(schema)
        names, known = self._named(schema, enum or schema.name, space)
        if known is not None:
            return known
        avro: dict[str, Any]
        if enum:
            avro = {"type": "enum", **names, "symbols": enum_symbols(schema)}
        else:
            avro = {"type": "fixed", **names, "size": size, **_decimal_size(schema)}
        return {**avro, **self._annotations(schema)}

    def _map(self, schema: Schema, space: str) -> AvroJson:
        keys, values = schema.key_schema, schema.value_schema
        assert keys is not None
        assert values is not None
        if has_text_keys(schema):
            avro = {"type": "map", "values": self.type_of(values, space)}
            return {**avro, **self._annotations(schema)}
        entry = Schema(type=SchemaType.MAP, name=schema.name, key_schema=keys, value_schema=values)
        names, known = self._named(entry, schema.name or self._entry_name(entry), space)
        items = known or self._entry(entry, names, space)
        return {"type": "array", "items": items, **self._annotations(schema)}

    def _entry(self, schema: Schema, names: dict[str, str], space: str) -> AvroJson:
        assert schema.key_schema is not None
        assert schema.value_schema is not None
        inner = names.get("namespace", space)
        fields = [
            self._field("key", schema.key_schema, inner, None),
            self._field("value", schema.value_schema, inner, None),
        ]
        avro = {"type": "record", **names, "fields": fields}
        usual = names["name"] == "MapEntry" and inner == CONFLUENT
        return avro if usual else {**avro, "connect.internal.type": "MapEntry"}

    def _entry_name(self, entry: Schema) -> str:
        others = [each for each, _ in self._defined if each.type is SchemaType.MAP]
        place = others.index(entry) if entry in others else len(others)
        return f"{CONFLUENT}.MapEntry{place + 1 if place else ''}"

    def _field(self, name: str, schema: Schema, space: str, doc: str | None) -> dict[str, Any]:
        avro: dict[str, Any] = {
            "name": fit_name(name, scrub=self._rules.scrub),
            "type": self.type_of(schema, space),
        }
        if doc is not None:
            avro["doc"] = doc
        # The default of a union is left out: its struct does not say which branch it belongs to.
        if schema.default is not None and not is_union(schema):
            avro["default"] = avro_default(schema, schema.default)
        elif schema.optional:
            avro["default"] = None
        return avro

    def _named(
        self, schema: Schema, name: str | None, space: str
    ) -> tuple[dict[str, str], str | None]:
        """Name and namespace of a type to define, or the name of one that is defined already."""
        same = dataclasses.replace(schema, optional=False, default=None, doc=None)
        for other, full in self._defined:
            if other == same:
                return {}, _short(full, space)
        if not name:
            self._nameless += 1
            name = f"{CONFLUENT}.ConnectDefault{self._nameless if self._nameless > 1 else ''}"
        its_space, short = split_name(name, scrub=self._rules.scrub)
        full = f"{its_space}.{short}" if its_space else short
        if any(full == other for _, other in self._defined):
            raise RecordError(
                f"Two different types have the name {full!r}.",
                row=0,
                advice="Avro does not allow that; give one of them another name.",
            )
        self._defined.append((same, full))
        return {"name": short, **({} if its_space == space else {"namespace": its_space})}, None

    def _annotations(self, schema: Schema) -> dict[str, Any]:
        """Properties for readers with Connect's own types, for which Avro's schemas have no place."""
        avro = self._meta_data(schema) if self._rules.meta_data else {}
        if schema.name in _LOGICAL:
            avro["logicalType"] = _LOGICAL[schema.name]
        avro.update({key: x for key, x in schema.parameters.items() if key.startswith("avro")})
        return avro

    def _meta_data(self, schema: Schema) -> dict[str, Any]:
        parameters = {key: x for key, x in schema.parameters.items() if key != _FROM_AVRO}
        default = None
        if schema.default is not None and _FROM_AVRO not in schema.parameters:
            default = avro_default(schema, schema.default)
        avro = {
            "connect.doc": schema.doc,
            "connect.version": schema.version,
            "connect.parameters": parameters or None,
            "connect.default": default,
            "connect.name": schema.name,
            "connect.type": str(schema.type) if schema.type in _SMALL else None,
        }
        return {key: value for key, value in avro.items() if value is not None}


def _decimal_size(schema: Schema) -> dict[str, int]:
    if schema.name != _DECIMAL:
        return {}
    precision = int(schema.parameters.get(_PRECISION, _USUAL_PRECISION))
    return {"scale": int(schema.parameters["scale"]), "precision": precision}


def _short(full: str, space: str) -> str:
    """*full* as it is referred to within *space*."""
    its_space, _, name = full.rpartition(".")
    return name if its_space == space else full


def _check_distinct(names: list[str]) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise RecordError(
            f"Several fields of a struct would have the name {min(twice)!r} in Avro.",
            row=0,
            advice="Rename one of them in the source.",
        )
