"""Avro schemas of Connect's, as Confluent's AvroData makes them, and back as they were."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings

from converters.avro_examples import (
    FLOAT32,
    INT8,
    INT16,
    SCHEMAS,
    array,
    map_of,
    struct,
    union,
)
from converters.test_avro_values import ENUM, FIXED
from headrace.connect.errors import RecordError
from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    decimal,
)
from headrace.converters.avro_schema import AvroRules, avro_schema, avro_text
from headrace.formats.avro.schema import connect_schema
from headrace.formats.avro.types import parsed
from project.sampling import drawn

LOGICAL = "org.apache.kafka.connect.data"
ANNOTATED = dataclasses.replace(
    STRING,
    name="n",
    version=3,
    doc="d",
    default="x",
    parameters={"p": "q", "avro.java.string": "S"},
)


def reported(schema: Schema, **rules: bool) -> str:
    """The schema's text."""
    return avro_text(avro_schema(schema, AvroRules(**rules)))


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (INT8, '{"type":"int","connect.type":"int8"}'),
        (INT16, '{"type":"int","connect.type":"int16"}'),
        (INT32, '"int"'),
        (INT64, '"long"'),
        (FLOAT32, '"float"'),
        (FLOAT64, '"double"'),
        (BOOLEAN, '"boolean"'),
        (STRING, '"string"'),
        (BYTES, '"bytes"'),
        (OPTIONAL_STRING, '["null","string"]'),
        (
            dataclasses.replace(INT32, optional=True, default=5),
            '[{"type":"int","connect.default":5},"null"]',
        ),
        (
            decimal(2),
            ('{"type":"bytes","scale":2,"precision":64,"connect.version":1,'
            f'"connect.parameters":{{"scale":"2"}},"connect.name":"{LOGICAL}.Decimal",'
            '"logicalType":"decimal"}'),
        ),
        (
            dataclasses.replace(
                decimal(2), parameters={"scale": "2", "connect.decimal.precision": "9"}
            ),
            ('{"type":"bytes","scale":2,"precision":9,"connect.version":1,"connect.parameters":'
            f'{{"scale":"2","connect.decimal.precision":"9"}},"connect.name":"{LOGICAL}.Decimal",'
            '"logicalType":"decimal"}'),
        ),
        (
            DATE,
            f'{{"type":"int","connect.version":1,"connect.name":"{LOGICAL}.Date","logicalType":"date"}}',
        ),
        (
            TIME,
            (f'{{"type":"int","connect.version":1,"connect.name":"{LOGICAL}.Time",'
            '"logicalType":"time-millis"}'),
        ),
        (
            TIMESTAMP,
            (f'{{"type":"long","connect.version":1,"connect.name":"{LOGICAL}.Timestamp",'
            '"logicalType":"timestamp-millis"}'),
        ),
        (
            ANNOTATED,
            ('{"type":"string","connect.doc":"d","connect.version":3,'
            '"connect.parameters":{"p":"q","avro.java.string":"S"},"connect.default":"x",'
            '"connect.name":"n","avro.java.string":"S"}'),
        ),
        (array(OPTIONAL_STRING), '{"type":"array","items":["null","string"]}'),
        (map_of(STRING, INT32), '{"type":"map","values":"int"}'),
        (
            map_of(INT32, STRING),
            ('{"type":"array","items":{"type":"record","name":"MapEntry",'
            '"namespace":"io.confluent.connect.avro","fields":[{"name":"key","type":"int"},'
            '{"name":"value","type":"string"}]}}'),
        ),
        (
            map_of(OPTIONAL_STRING, STRING),
            ('{"type":"array","items":{"type":"record","name":"MapEntry",'
            '"namespace":"io.confluent.connect.avro","fields":'
            '[{"name":"key","type":["null","string"],"default":null},'
            '{"name":"value","type":"string"}]}}'),
        ),
        (
            map_of(INT32, STRING, name="a.M"),
            ('{"type":"array","items":{"type":"record","name":"M","namespace":"a",'
            '"fields":[{"name":"key","type":"int"},{"name":"value","type":"string"}],'
            '"connect.internal.type":"MapEntry"},"connect.name":"a.M"}'),
        ),
        (
            struct(Field("a", INT64), Field("b", OPTIONAL_STRING), name="a.b.C"),
            ('{"type":"record","name":"C","namespace":"a.b","fields":[{"name":"a","type":"long"},'
            '{"name":"b","type":["null","string"],"default":null}],"connect.name":"a.b.C"}'),
        ),
        (
            struct(
                Field("a", dataclasses.replace(decimal(0), default=Decimal(7))),
                Field("s", struct(Field("x", INT32), name=None)),
                name=None,
            ),
            ('{"type":"record","name":"ConnectDefault","namespace":"io.confluent.connect.avro",'
            '"fields":[{"name":"a","type":{"type":"bytes","scale":0,"precision":64,"connect.version":1,'
            '"connect.parameters":{"scale":"0"},"connect.default":"\\u0007",'
            f'"connect.name":"{LOGICAL}.Decimal","logicalType":"decimal"}},"default":"\\u0007"}},'
            '{"name":"s","type":{"type":"record","name":"ConnectDefault2",'
            '"fields":[{"name":"x","type":"int"}]}}]}'),
        ),
        (
            union(Field("int", INT32.as_optional()), Field("string", OPTIONAL_STRING), optional=True),
            '["null","int","string"]',
        ),
        (
            ENUM,
            ('{"type":"string","connect.parameters":{"io.confluent.connect.avro.Enum":"n.E",'
            '"io.confluent.connect.avro.Enum.A":"A","io.confluent.connect.avro.Enum.B":"B"},'
            '"connect.name":"n.E"}'),
        ),
        (
            FIXED,
            ('{"type":"fixed","name":"F","namespace":"n","size":2,'
            '"connect.parameters":{"connect.fixed.size":"2"},"connect.name":"n.F"}'),
        ),
    ],
    ids=str,
)  # fmt: skip
def test_each_type(schema: Schema, expected: str):
    """Byte for byte, its properties in the order of Avro's Java library."""
    assert expected == reported(schema)


def test_an_enum_is_one_when_asked_for():
    """It then has its symbols, and what Connect had to remember of it."""
    found = json.loads(reported(ENUM, enums=True))

    assert ("enum", "E", "n", ["A", "B"]) == tuple(
        found[key] for key in ("type", "name", "namespace", "symbols")
    )


def test_meta_data_can_be_left_out():
    """Logical types and what Avro itself knows stay."""
    assert '{"type":"string","avro.java.string":"S"}' == reported(ANNOTATED, meta_data=False)
    assert '{"type":"long","logicalType":"timestamp-millis"}' == reported(
        TIMESTAMP, meta_data=False
    )


def test_a_type_that_is_used_twice_is_defined_once():
    """Whatever is said of it where it is used; in another namespace it is called by its full name."""
    inner = struct(Field("x", INT32), name="n.In")
    far = struct(Field("in", inner), name="far.Out")
    again = dataclasses.replace(inner, optional=True, doc="again")
    kind = struct(Field("a", inner), Field("b", again), Field("c", far), name="n.Row")

    found: Any = avro_schema(kind, AvroRules())

    assert ["null", "In"] == found["fields"][1]["type"]
    assert "n.In" == found["fields"][2]["type"]["fields"][0]["type"]


def test_maps_of_several_types_have_entries_of_their_own():
    """Each can be told by a mark from any other record."""
    kind = struct(
        Field("a", map_of(INT32, STRING)),
        Field("b", map_of(INT64, STRING)),
        Field("c", map_of(INT32, STRING)),
    )

    found: Any = avro_schema(kind, AvroRules())

    entries = [each["type"]["items"] for each in found["fields"]]
    assert ("MapEntry", "MapEntry2") == (entries[0]["name"], entries[1]["name"])
    assert "MapEntry" == entries[1]["connect.internal.type"]
    assert "io.confluent.connect.avro.MapEntry" == entries[2]


def test_two_types_of_one_name_are_refused():
    """Avro would take one for the other."""
    kind = struct(
        Field("a", struct(Field("x", INT32), name="n.In")),
        Field("b", struct(Field("y", INT32), name="n.In")),
    )

    with pytest.raises(RecordError, match=r"Two different types have the name 'n.In'"):
        avro_schema(kind, AvroRules())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("abc_DEF_123", "abc_DEF_123"),
        ("abc+-.*_", "abc_2B____"),
        ("abc-def", "abc_def"),
        ("abc  def", "abc__def"),
        ("0abc.def", "x0abc_def"),
        ("a~é", "a_7E_C3_A9"),
    ],
)
def test_names_are_scrubbed_as_confluents_converter_does(name: str, expected: str):
    """Through Java's encoding of URLs."""
    found: Any = avro_schema(struct(Field(name, INT32)), AvroRules(scrub=True))

    assert expected == found["fields"][0]["name"]


def test_namespaces_are_scrubbed_part_by_part():
    """The dots between them stay."""
    found: Any = avro_schema(
        struct(name="org.acme-corp.invalid record-name"), AvroRules(scrub=True)
    )

    assert ("org.acme_corp", "invalid_record_name") == (found["namespace"], found["name"])


@pytest.mark.parametrize("name", ["a-b", "0", "", "é"])
def test_names_that_avro_does_not_allow_are_refused(name: str):
    """The sentence says which setting changes them."""
    with pytest.raises(RecordError, match=r"scrub\.invalid\.names=true"):
        avro_schema(struct(Field(name, INT32)), AvroRules())


def test_names_that_become_the_same_are_refused():
    """Else two fields would be one."""
    with pytest.raises(RecordError, match="Several fields of a struct would have the name 'a_b'"):
        avro_schema(struct(Field("a-b", INT32), Field("a.b", INT32)), AvroRules(scrub=True))


@settings(max_examples=drawn(60))
@given(SCHEMAS)
def test_schemas_come_back_as_they_were(schema: Schema):
    """What reads Avro files understands what this writes."""
    assert schema == connect_schema(parsed(reported(schema).encode()))


@pytest.mark.parametrize(
    "schema",
    [
        struct(Field("a", dataclasses.replace(INT32, default=5)), Field("e", FIXED), version=2),
        struct(Field("a", ANNOTATED), Field("t", dataclasses.replace(TIME, doc="d"))),
        struct(Field("u", union(Field("int", INT32.as_optional()), Field("n", OPTIONAL_STRING)))),
        struct(Field("m", map_of(INT32, STRING)), Field("n", map_of(INT64, STRING)), doc="d"),
    ],
    ids=str,
)
def test_annotations_come_back_as_they_were(schema: Schema):
    """Names, versions, docs, parameters and defaults of types that are not null."""
    found = connect_schema(parsed(reported(schema).encode()))

    assert [each.schema for each in schema.fields if each.name != "u"] == [
        each.schema for each in found.fields if each.name != "u"
    ]
    assert (schema.name, schema.version, schema.doc) == (found.name, found.version, found.doc)


def test_enums_come_back_as_they_were():
    """When they are written as enums."""
    assert ENUM == connect_schema(parsed(reported(ENUM, enums=True).encode()))
