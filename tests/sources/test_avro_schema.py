"""Connect's schema of Avro types, with names, docs, defaults and annotations."""

from __future__ import annotations

import decimal
import json
from typing import Any

import pyarrow as pa
import pytest

from headrace.connect.errors import RecordError
from headrace.connect.schema import (
    BYTES,
    DATE,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    arrow_type,
)
from headrace.connect.schema import decimal as decimal_schema
from headrace.formats.avro.schema import connect_schema
from headrace.formats.avro.types import parsed


def schema_of(told: object) -> Schema:
    """The schema of what *told* describes."""
    return connect_schema(parsed(json.dumps(told).encode()))


def record(*fields: object, **more: object) -> dict[str, Any]:
    """A record's schema."""
    return {"type": "record", "name": "Row", "fields": list(fields), **more}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("long", INT64),
        ({"type": "string"}, STRING),
        ({"type": {"type": "string"}}, STRING),
        (["null", "string"], OPTIONAL_STRING),
        (["string", "null"], OPTIONAL_STRING),
        (["string"], STRING),
        ({"type": "int", "logicalType": "date"}, DATE),
        ({"type": "int", "logicalType": "time-millis"}, TIME),
        ({"type": "long", "logicalType": "timestamp-millis"}, TIMESTAMP),
        ({"type": "long", "logicalType": "timestamp-micros"}, INT64),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, INT64),
        ({"type": "string", "logicalType": "uuid"}, STRING),
        ({"type": "int", "connect.type": "int8"}, Schema(type=SchemaType.INT8)),
        ({"type": "int", "connect.type": "int16"}, Schema(type=SchemaType.INT16)),
        ({"type": "array", "items": "bytes"}, Schema(type=SchemaType.ARRAY, value_schema=BYTES)),
        (
            {"type": "map", "values": ["null", "string"]},
            Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=OPTIONAL_STRING),
        ),
        (
            {"type": "enum", "name": "E", "namespace": "a.b", "symbols": ["X", "Y"]},
            Schema(
                type=SchemaType.STRING,
                name="a.b.E",
                parameters={
                    "io.confluent.connect.avro.Enum": "a.b.E",
                    "io.confluent.connect.avro.Enum.X": "X",
                    "io.confluent.connect.avro.Enum.Y": "Y",
                },
            ),
        ),
        (
            {"type": "fixed", "name": "F", "size": 4},
            Schema(type=SchemaType.BYTES, name="F", parameters={"connect.fixed.size": "4"}),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            Schema(
                type=SchemaType.BYTES,
                name=decimal_schema(2).name,
                version=1,
                parameters={"scale": "2", "connect.decimal.precision": "9"},
            ),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 64}, decimal_schema(0)),
        (
            {"type": "string", "connect.name": "n", "connect.version": 3, "connect.doc": "d", "connect.default": "x", "connect.parameters": {"p": "q"}},
            Schema(type=SchemaType.STRING, name="n", version=3, doc="d", default="x", parameters={"p": "q"}),
        ),
        ({"type": "string", "avro.java.string": "String"}, Schema(type=SchemaType.STRING, parameters={"avro.java.string": "String"})),
        (record(name="io.confluent.connect.avro.ConnectDefault"), Schema(type=SchemaType.STRUCT)),
    ],
    ids=str,
)  # fmt: skip
def test_each_type(told: object, expected: Schema):
    """As Confluent's converter derives it, with its default settings."""
    assert expected == schema_of(told)


def test_unions_are_structs_of_their_branches():
    """Each field is named by its type, or by the last part of a name, and is optional."""
    inner = record(name="In", namespace="a")

    found = schema_of(["null", "int", inner, {"type": "array", "items": "int"}])

    assert ("io.confluent.connect.avro.Union", True) == (found.name, found.optional)
    assert ["int", "In", "array"] == [each.name for each in found.fields]
    assert all(each.schema.optional for each in found.fields)
    assert Schema(type=SchemaType.STRUCT, optional=True, name="a.In") == found.fields[1].schema
    assert not schema_of(["int", "string"]).optional


def test_names_take_the_namespace_around_them():
    """As Avro's rules say: a dot makes a full name, an empty namespace ends one."""
    found = schema_of(
        record(
            {"name": "a", "type": {"type": "fixed", "name": "F", "size": 1}},
            {"name": "b", "type": "F"},
            {"name": "c", "type": {"type": "fixed", "name": "x.G", "size": 1}},
            {"name": "d", "type": ["null", "x.G"]},
            {"name": "e", "type": record({"name": "f", "type": "x.G"}, name="In", namespace="y")},
            {"name": "f", "type": {"type": "fixed", "name": "H", "namespace": "", "size": 1}},
            {"name": "g", "type": "H"},
            namespace="n.m",
        )
    )

    assert "n.m.Row" == found.name
    names = [each.schema.name for each in found.fields]
    assert ["n.m.F", "n.m.F", "x.G", "x.G", "y.In", "H", "H"] == names


def test_docs_are_those_of_the_field_or_else_of_the_type():
    """Connect has one place for both."""
    enum = {"type": "enum", "name": "E", "symbols": [], "doc": "of the type"}
    found = schema_of(
        record(
            {"name": "a", "type": enum},
            {"name": "b", "type": ["null", "E"], "doc": "of the field"},
            doc="of the record",
        )
    )

    assert ("of the record", "of the type", "of the field") == (
        found.doc,
        found.fields[0].schema.doc,
        found.fields[1].schema.doc,
    )


@pytest.mark.parametrize(
    ("type_", "default", "expected"),
    [
        ("int", 5, 5),
        ("double", 1, 1.0),
        ("boolean", False, False),
        ("string", "x", "x"),
        ("bytes", "\u00ff\u0000", b"\xff\0"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}, "\u00ff", decimal.Decimal("-0.01")),
        ({"type": "int", "logicalType": "date"}, 17, 17),
        ({"type": "array", "items": "int"}, [1, 2], [1, 2]),
        ({"type": "map", "values": "int"}, {"a": 1}, {"a": 1}),
        (record({"name": "x", "type": "int", "default": 3}, {"name": "y", "type": "int"}, name="In"), {"y": 4}, {"x": 3, "y": 4}),
        (["int", "string"], 7, {"int": 7}),
        (["null", "string"], None, None),
        (["string", "null"], "x", None),
        ("int", "no number", None),
        ("int", True, None),
        ({"type": "array", "items": "int"}, 5, None),
        (record({"name": "x", "type": "int"}, name="In"), "no struct", None),
    ],
    ids=str,
)  # fmt: skip
def test_defaults(type_: object, default: object, expected: object):
    """They are values that a column of the schema takes; one that does not fit is none, as in Connect."""
    found = schema_of(record({"name": "f", "type": type_, "default": default})).fields[0].schema

    assert expected == found.default
    if expected is not None:
        pa.array([found.default], arrow_type(found)).validate(full=True)


def test_a_default_stays_behind_where_null_is_allowed():
    """Or the JSON converter would write it in the place of every null."""
    found = schema_of(record({"name": "f", "type": ["int", "null"], "default": 1}))

    assert Field("f", INT32.as_optional()) == found.fields[0]


BOMB = record(
    {"name": "f0", "type": record({"name": "x", "type": "int"}, name="T0")},
    *(
        {"name": f"f{n}", "type": record(*({"name": c, "type": f"T{n - 1}"} for c in "abcd"), name=f"T{n}")}
        for n in range(1, 40)
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (b"", "It is not JSON"),
        (b"\xff", "It is not JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b"5", "5 is no type"),
        (b"null", "None is no type"),
        (b'"null"', "null alone"),
        (b'"Unknown"', "'Unknown' is not defined"),
        (b"[]", "A union is empty"),
        (b'["int",["int"]]', "or holds another one"),
        (b'["null"]', "null alone"),
        (b'{"type":"record","name":"R"}', "None as its fields"),
        (b'{"type":"record","name":"R","fields":[5]}', "5 is no field"),
        (b'{"type":"record","fields":[]}', "None as its name"),
        (b'{"type":"enum","name":"E","symbols":[5]}', "no strings"),
        (b'{"type":"fixed","name":"F","size":-1}', "size of 'F' is -1"),
        (b'{"type":"array","items":"null"}', "take no bytes"),
        (b'{"type":"array","items":{"type":"fixed","name":"F","size":0}}', "take no bytes"),
        (json.dumps(record({"name": "r", "type": ["null", "Row"]})).encode(), "'Row' holds itself, so that its values have no fixed shape. As JSON text in a string they can be sent, and the file as it is in the format bytes. Write the file again"),
        (json.dumps(record({"name": "a", "type": "int"}, {"name": "a", "type": "int"})).encode(), "two fields of one name"),
        (json.dumps(record({"name": "a", "type": record()})).encode(), "defined twice"),
        (json.dumps(BOMB).encode(), "more than 20000 types"),
        (json.dumps({"type": "string", "connect.name": DATE.name}).encode(), "A type of string has the name"),
        (json.dumps({"type": "bytes", "logicalType": "decimal", "scale": 10**20}).encode(), "cannot be used"),
    ],
    ids=lambda each: str(each)[:40],
)  # fmt: skip
def test_schemas_that_cannot_be_used_say_why(told: bytes, words: str):
    """In one sentence, and in no other kind of error."""
    from headrace.formats.avro.container import Header
    from headrace.formats.avro.reader_schema import reader_schema_of

    with pytest.raises(RecordError, match=words):
        reader_schema_of(Header(schema=told, codec="null", sync=b"", size=0))
