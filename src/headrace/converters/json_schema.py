"""Connect's schemas as JSON, for the envelope around values."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.java_text import json_quoted
from headrace.connect.schema import Schema
from headrace.converters.json_values import JsonRules, default_json


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
        told = ",".join(f"{json_quoted(key)}:{json_quoted(value)}" for key, value in entries)
        yield f'"parameters":{{{told}}}'
    if schema.default is not None:
        yield f'"default":{default_json(schema, rules).decode()}'


def _contents(schema: Schema, rules: JsonRules) -> Iterator[str]:
    """What a nested schema is made of."""
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
