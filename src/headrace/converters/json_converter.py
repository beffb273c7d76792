"""JSON, byte for byte as Kafka Connect's JsonConverter writes it, with or without its schema envelope."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pyarrow as pa

from headrace.connect.config import Config, Problem, setting
from headrace.connect.json_document import json_quoted
from headrace.connect.schema import Schema
from headrace.converters.columns import (
    as_binary,
    is_bytes,
    is_document,
    is_text,
    java_class,
    refusal,
)
from headrace.converters.json_values import (
    JsonRules,
    Pieces,
    default_json,
    joined,
    json_bytes,
    json_floats,
    json_numbers,
    json_pieces,
    json_strings,
)


def schema_json(schema: Schema, rules: JsonRules) -> str:
    """*schema* as Connect writes it, its properties in Connect's order."""
    return f"{{{','.join(_properties(schema, rules))}}}"


def _properties(schema: Schema, rules: JsonRules) -> Iterator[str]:
    yield f'"type":{json_quoted(schema.type)}'
    yield from _contents(schema, rules)
    yield f'"optional":{str(schema.optional).lower()}'
    if schema.name is not None:
        yield f'"name":{json_quoted(schema.name)}'
    if schema.version is not None:
        yield f'"version":{schema.version}'
    if schema.doc is not None:
        yield f'"doc":{json_quoted(schema.doc)}'
    if schema.parameters:
        entries = schema.parameters.items()
        text = ",".join(f"{json_quoted(key)}:{json_quoted(value)}" for key, value in entries)
        yield f'"parameters":{{{text}}}'
    if schema.default is not None:
        yield f'"default":{default_json(schema, rules).decode()}'


def _contents(schema: Schema, rules: JsonRules) -> Iterator[str]:
    """The properties of a schema with nested ones."""
    if schema.fields or schema.type == "struct":
        members = ",".join(
            f'{schema_json(each.schema, rules)[:-1]},"field":{json_quoted(each.name)}}}'
            for each in schema.fields
        )
        yield f'"fields":[{members}]'
    elif schema.key_schema is not None and schema.value_schema is not None:
        yield f'"keys":{schema_json(schema.key_schema, rules)}'
        yield f'"values":{schema_json(schema.value_schema, rules)}'
    elif schema.value_schema is not None:
        yield f'"items":{schema_json(schema.value_schema, rules)}'


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
        doc="Accepted for compatibility, without effect: there is one schema per batch, so there is no cache.",
        group="Schemas",
        order=1,
        width="MEDIUM",
        display_name="Schema Cache Size",
    )
    schema_content: str | None = setting(
        default=None,
        importance="high",
        doc="Accepted for compatibility, without effect: a schema for reading, which a source's converter does not do.",
        group="Schemas",
        order=2,
        width="MEDIUM",
        display_name="Schema Content",
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

    def check(self) -> Iterator[Problem]:
        """Report a schema that is not JSON, although it is not used."""
        try:
            json.loads(self.schema_content or "{}")
        except ValueError as error:
            yield "schema.content", f"It must be a schema in JSON: {error}."


class JsonConverter:
    """Writes values as JSON, structs, arrays and maps included; JSON documents are passed on as they are."""

    config_class = JsonConverterConfig

    def __init__(self) -> None:
        self._config = JsonConverterConfig()
        self._rules = JsonRules()

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Take Connect's keys: ``schemas.enable`` and its companions."""
        self._config = JsonConverterConfig.parse(config)
        self._rules = JsonRules(
            numeric_decimals=self._config.decimal_format.upper() == "NUMERIC",
            defaults=self._config.replace_null_with_default,
        )

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The JSON of each of *values*. A null without schema stays null, with one it is a JSON null."""
        if schema is None:
            pieces: Pieces = (_without_schema(values),)
        else:
            pieces = json_pieces(schema, values, self._rules)
        if self._config.schemas_enable:
            text = "null" if schema is None else schema_json(schema, self._rules)
            pieces = (f'{{"schema":{text},"payload":'.encode(), *pieces, b"}")
        return joined(pieces, len(values))


def _without_schema(values: pa.Array) -> pa.BinaryArray:
    """The JSON of a column of plain values, according to its Arrow type, nulls still null."""
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
    raise refusal(_no_type(kind), values)


def _no_type(kind: pa.DataType) -> str:
    """Why a value of *kind* needs a schema, in Connect's words where it refuses the value as well."""
    if pa.types.is_temporal(kind) or pa.types.is_decimal(kind):
        return f"Java class class {java_class(kind)} does not have corresponding schema type."
    return f"JsonConverter does not support values of type {kind} without a schema."
