"""Values of one schema as those of another: the same as Avro's own resolution, where no value is changed."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema, arrow_type
from headrace.formats.avro.schema import connect_schema
from headrace.formats.avro.types import parsed
from headrace.formats.schema_resolution import resolved


def schema(kind: object) -> Schema:
    """Of an Avro type."""
    return connect_schema(parsed(json.dumps(kind).encode()))


def record(
    *fields: tuple[str, object] | tuple[str, object, object], name: str = "R"
) -> dict[str, Any]:
    """A record type with these names, types and defaults."""
    keys = ("name", "type", "default")
    return {
        "type": "record",
        "name": name,
        "fields": [dict(zip(keys, each, strict=False)) for each in fields],
    }


def by_avro(own: object, wanted: object, values: list[Any]) -> list[Any]:
    """What Avro makes of *values*."""
    found = list[Any]()
    for value in values:
        out = io.BytesIO()
        schemaless_writer(out, parse_schema(own), value)  # type: ignore[arg-type]
        out.seek(0)
        found.append(schemaless_reader(out, parse_schema(own), parse_schema(wanted)))  # type: ignore[arg-type]
    return found


INNER = record(("a", "int"), ("b", "string"), name="I")
WIDER = record(("b", "string"), ("a", "long"), ("c", "string", "?"), name="I")
CASES = {
    "order": (record(("x", "int"), ("y", "string")), record(("y", "string"), ("x", "int"))),
    "left out": (record(("x", "int"), ("y", "string")), record(("y", "string"))),
    "null": (record(("x", "int")), record(("x", "int"), ("z", ["null", "string"], None))),
    "default": (
        record(("x", "int")),
        record(("x", "int"), ("z", "string", "none"), ("w", "long", 7)),
    ),
    "list default": (
        record(("x", "int")),
        record(("x", "int"), ("z", {"type": "array", "items": "int"}, [1, 2])),
    ),
    "optional": (record(("x", "int")), record(("x", ["null", "long"]))),
    "wider": (
        record(("x", "int"), ("f", "float")),
        record(("x", "double"), ("f", "double")),
    ),
    "inside": (record(("i", INNER)), record(("i", WIDER))),
    "in a list": (
        record(("i", {"type": "array", "items": INNER})),
        record(("i", {"type": "array", "items": WIDER})),
    ),
    "in a map": (
        record(("i", {"type": "map", "values": INNER})),
        record(("i", {"type": "map", "values": WIDER})),
    ),
    "plain": ("int", "long"),
}
INNERS = [{"a": 1, "b": "one"}, {"a": 2, "b": "two"}]


def values_of(name: str) -> list[Any]:
    """Some for the case of that *name*."""
    match name:
        case "inside":
            return [{"i": each} for each in INNERS]
        case "in a list":
            return [{"i": INNERS}, {"i": []}, {"i": INNERS[1:]}]
        case "in a map":
            return [{"i": {"p": INNERS[0], "q": INNERS[1]}}, {"i": {}}]
        case "plain":
            return [1, 2, -3]
        case _:
            return [{"x": 1, "y": "one", "f": 0.5}, {"x": -2, "y": "two", "f": 1.5}]


@pytest.mark.parametrize("name", CASES)
def test_it_is_as_avro_resolves_it(name: str):
    """Fields by their names, defaults for those that are missing, wider numbers; also of a part of a column."""
    own, wanted = CASES[name]
    kept = {each["name"] for each in own["fields"]} if isinstance(own, dict) else set[str]()
    values = [
        {key: each for key, each in value.items() if key in kept} if kept else value
        for value in values_of(name)
    ]
    column = column_of(schema(own), [values[0], *values])

    made = resolved(schema(own), schema(wanted))(column.slice(1))

    made.validate(full=True)
    assert arrow_type(schema(wanted)) == made.type
    assert by_avro(own, wanted, values) == made.to_pylist(maps_as_pydicts="strict")


def test_null_structs_stay_null():
    """With everything in them."""
    own, wanted = ["null", INNER], ["null", WIDER]
    column = column_of(schema(own), [None, INNERS[0], None])

    made = resolved(schema(own), schema(wanted))(column)

    assert [None, {"b": "one", "a": 1, "c": "?"}, None] == made.to_pylist()


def test_what_is_alike_is_not_copied():
    """A column of the same type is the same one."""
    text = column_of(schema("string"), ["a"])

    assert resolved(schema("string"), schema("string"))(text) is text


ENUM = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
FEWER = {"type": "enum", "name": "E", "symbols": ["A"]}
FIXED = {"type": "fixed", "name": "F", "size": 4}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


@pytest.mark.parametrize(
    ("own", "wanted", "told"),
    [
        (["null", "int"], "int", "The record may be null"),
        (record(("x", ["null", "int"])), record(("x", "int")), "The field 'x' may be null"),
        (record(("x", "int")), record(("y", "int")), "The field 'y' is missing"),
        (record(("x", "long")), record(("x", "int")), "'x' is int64, and .* says int32"),
        (record(("x", "long")), record(("x", "double")), "'x' is int64, and .* says double"),
        (record(("x", "string")), record(("x", "bytes")), "'x' is string"),
        (
            record(("i", INNER)),
            record(("i", record(("n", "int"), name="I"))),
            "'i', field 'n' is missing",
        ),
        (
            {"type": "array", "items": "string"},
            {"type": "array", "items": "int"},
            "element is string",
        ),
        ({"type": "map", "values": "string"}, {"type": "map", "values": "int"}, "value is string"),
        ("long", {"type": "long", "logicalType": "timestamp-millis"}, r"says Timestamp"),
        (DECIMAL, {**DECIMAL, "scale": 3}, r"Decimal\(2\), .* says Decimal\(3\)"),
        (ENUM, FEWER, "may be 'B'"),
        ("string", ENUM, "may be any string"),
        ("bytes", FIXED, "the 4 bytes"),
        (["int", "string"], ["int", "long"], "may be string"),
        ("int", ["int", "string"], "says a union"),
        (INNER, ["int", "string"], "is struct, .* says a union"),
        (["int", "string"], INNER, "is a union, .* says struct"),
    ],
)
def test_what_would_change_a_value_is_refused(own: object, wanted: object, told: str):
    """With the field that it is about."""
    with pytest.raises(RecordError, match=told):
        resolved(schema(own), schema(wanted))
