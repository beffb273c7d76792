"""JSON, byte for byte as Kafka Connect's JsonConverter writes it, with or without its schema envelope."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.java_text import json_quoted
from headrace.connect.schema import Schema, SchemaType, arrow_type
from headrace.converters.columns import (
    as_binary,
    is_bytes,
    is_document,
    is_text,
    java_class,
    refusal,
)
from headrace.converters.json_text import json_bytes, json_floats, json_numbers, json_strings

_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_NESTED = frozenset({SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT})


class JsonConverterConfig(Config):
    """Settings of :class:`JsonConverter`, named as Connect's."""

    schemas_enable: bool = setting(
        default=True,
        importance="high",
        doc="Write each value as an object of its schema and its payload.",
        group="Schemas",
        order=0,
        width="MEDIUM",
        display_name="Enable Schemas",
    )
    schemas_cache_size: int = setting(
        default=1000,
        importance="high",
        doc="Accepted as Kafka Connect's; there is one schema per batch, so there is nothing to bound.",
        group="Schemas",
        order=1,
        width="MEDIUM",
        display_name="Schema Cache Size",
    )
    decimal_format: str = setting(
        default="BASE64",
        importance="low",
        one_of=("BASE64", "NUMERIC"),
        ignore_case=True,
        doc="How decimals are written: base64 of their unscaled bytes, or a number.",
        group="Serialization",
        order=0,
        width="MEDIUM",
        display_name="Decimal Format",
    )
    replace_null_with_default: bool = setting(
        default=True,
        importance="low",
        doc="Write the default of a schema that has one in place of a null.",
        group="Serialization",
        order=1,
        width="MEDIUM",
        display_name="Replace null with default",
    )
    schema_content: str = setting(
        "schema.content",
        default="",
        importance="high",
        doc="A schema for values that come without one. Not supported yet.",
        group="Schemas",
        order=2,
        width="MEDIUM",
        display_name="Schema Content",
    )

    def check(self) -> Iterator[Problem]:
        """An external schema is refused, because it would be ignored."""
        if self.schema_content:
            yield (
                "schema.content",
                "An external schema is not supported yet: remove schema.content.",
            )


class JsonConverter:
    """Writes plain values as JSON; JSON documents are passed on as they are."""

    config_class = JsonConverterConfig

    def __init__(self) -> None:
        self._config = JsonConverterConfig()

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take Connect's keys: ``schemas.enable`` and its companions."""
        self._config = JsonConverterConfig.parse(config)

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The JSON of each of *values*. A null without schema stays null, with one it is a JSON null."""
        if schema is None:
            payload = _payload(values)
        else:
            payload = self._nulls_filled(schema, _payload_of(schema, values))
        return self._wrapped(schema, payload) if self._config.schemas_enable else payload

    def _nulls_filled(self, schema: Schema, payload: pa.BinaryArray) -> pa.BinaryArray:
        if not payload.null_count:
            return payload
        return payload.fill_null(self._in_place_of_null(schema, payload))

    def _in_place_of_null(self, schema: Schema, payload: pa.BinaryArray) -> bytes:
        if schema.default is not None and self._config.replace_null_with_default:
            return _default(schema)
        if schema.optional:
            return b"null"
        row = pc.index(pc.is_null(payload), True).as_py()
        raise RecordError(
            "Conversion error: null value for field that is required and has no default value",
            row=row,
        )

    def _wrapped(self, schema: Schema | None, payload: pa.BinaryArray) -> pa.BinaryArray:
        told = b"null" if schema is None else schema_json(schema)
        before = pa.scalar(b'{"schema":' + told + b',"payload":')
        return pc.binary_join_element_wise(before, payload, pa.scalar(b"}"), pa.scalar(b""))


def schema_json(schema: Schema) -> bytes:
    """A plain schema as Connect writes it, its properties in Connect's order."""
    told = [f'"type":{json_quoted(schema.type)}', f'"optional":{str(schema.optional).lower()}']
    if schema.name is not None:
        told.append(f'"name":{json_quoted(schema.name)}')
    if schema.version is not None:
        told.append(f'"version":{schema.version}')
    if schema.doc is not None:
        told.append(f'"doc":{json_quoted(schema.doc)}')
    if schema.parameters:
        told.append(f'"parameters":{{{_parameters(schema)}}}')
    if schema.default is not None:
        told.append(f'"default":{_default(schema).decode()}')
    return f"{{{','.join(told)}}}".encode()


def _parameters(schema: Schema) -> str:
    entries = schema.parameters.items()
    return ",".join(f"{json_quoted(key)}:{json_quoted(value)}" for key, value in entries)


def _default(schema: Schema) -> bytes:
    return _payload_of(schema, pa.array([schema.default], arrow_type(schema)))[0].as_py()


def _payload_of(schema: Schema, values: pa.Array) -> pa.BinaryArray:
    """The JSON of *values* of *schema*, nulls still null."""
    if schema.type in _NESTED or schema.name == _DECIMAL:
        what = schema.name or schema.type
        raise refusal(f"JsonConverter does not support values of schema {what} yet.", values)
    wanted = arrow_type(schema)
    alike = values.type == wanted or pa.types.is_null(values.type)
    if not (alike or _same_family(values.type, wanted)):
        name = java_class(values.type)
        raise refusal(f"Invalid type for {schema.type.name}: class {name}", values)
    return _payload(values)


def _same_family(kind: pa.DataType, wanted: pa.DataType) -> bool:
    return any(family(kind) and family(wanted) for family in (is_text, is_bytes))


def _payload(values: pa.Array) -> pa.BinaryArray:
    """The JSON of a column of plain values, told by its Arrow type, nulls still null."""
    kind = values.type
    if is_document(kind) or pa.types.is_null(kind):
        return as_binary(values)
    if is_text(kind):
        return json_strings(values)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return json_floats(values)
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return json_numbers(values)
    if is_bytes(kind):
        return json_bytes(values)
    return _logical_payload(values)


def _logical_payload(values: pa.Array) -> pa.BinaryArray:
    """Dates, times and timestamps as the numbers that they are in Connect."""
    kind = values.type
    if pa.types.is_date32(kind) or kind == pa.time32("ms"):
        return json_numbers(values.cast(pa.int32()))
    if pa.types.is_timestamp(kind) and kind.unit == "ms":
        return json_numbers(values.cast(pa.int64()))
    raise refusal(f"JsonConverter does not support values of type {kind} yet.", values)
