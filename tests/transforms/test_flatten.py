"""Flatten: what is nested comes to the top."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest

from headrace.connect.errors import RecordError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.schema import INT32, STRING, Schema, SchemaType
from headrace.transforms.catalogue import make_transform
from transforms.applied import become, refusal, struct

NAME = "Flatten$Value"
FIVE = Schema(type=SchemaType.INT32, optional=True, default=5)
LIST = Schema(type=SchemaType.ARRAY, value_schema=INT32)
ABOUT: dict[str, Any] = {"name": "n", "version": 3, "doc": "d", "parameters": {"x": "y"}}


def test_fields_of_structs_get_joined_names() -> None:
    """They may be null where one of their structs may be; the struct keeps its name and is not optional."""
    inner = struct(("x", INT32), ("deep", struct(("y", FIVE))), optional=True, doc="gone")
    row = struct(("a", STRING), ("in", inner), ("l", LIST), **ABOUT)

    changed = become(NAME, {}, {"a": "x", "in": {"x": 1, "deep": {"y": None}}, "l": [2]}, row)

    flat = struct(
        ("a", STRING), ("in.x", INT32.as_optional()), ("in.deep.y", FIVE), ("l", LIST), **ABOUT
    )
    assert ({"a": "x", "in.x": 1, "in.deep.y": 5, "l": [2]}, flat) == changed


def test_what_is_in_a_null_struct_is_null() -> None:
    """Its fields are, whatever their defaults; fields of an optional struct may all be null."""
    row = struct(("in", struct(("y", FIVE), optional=True)), ("b", INT32), optional=True)

    changed = become(NAME, {"delimiter": "_"}, {"in": None, "b": 1}, row)

    assert ({"in_y": None, "b": 1}, struct(("in_y", FIVE), ("b", INT32.as_optional()))) == changed


def test_a_null_struct_leaves_its_fields_to_their_defaults() -> None:
    """They are null, and refused nowhere: what it has by default, they have."""
    inner = struct(("x", INT32), default={"x": 9})

    changed = become(NAME, {}, {"in": None}, struct(("in", inner)))

    nine = Schema(type=SchemaType.INT32, default=9)
    assert ({"in.x": None}, struct(("in.x", nine))) == changed


def test_a_structs_default_becomes_that_of_its_fields() -> None:
    """Where these have none of their own."""
    inner = struct(("x", INT32), ("y", FIVE), default={"x": 9, "y": 8})

    changed = become(NAME, {}, {"in": {"x": 1, "y": 2}}, struct(("in", inner)))

    nine = Schema(type=SchemaType.INT32, default=9)
    assert ({"in.x": 1, "in.y": 2}, struct(("in.x", nine), ("in.y", FIVE))) == changed


@pytest.mark.parametrize(
    ("value", "flat"),
    [
        ({"a": {"b": {"c": 1}, "d": {}}, "e": [{"f": 1}], "g": None}, {"a.b.c": 1, "e": [{"f": 1}], "g": None}),
        ({"a": {"b": 1}, "a.b": 2}, {"a.b": 2}),
        ({"": {"b": 1}}, {"b": 1}),
        ({"a": {"b": Decimal("0.12345678901234567890")}}, {"a.b": Decimal("0.12345678901234567890")}),
        (None, None),
    ],
)  # fmt: skip
def test_maps_are_flattened(value: object, flat: object) -> None:
    """Empty ones leave nothing, arrays and numbers stay, and of two with one name the later stays."""
    assert (flat, None) == become(NAME, {}, value)


def test_null_keeps_its_schema() -> None:
    """Flat or not, there is nothing in it."""
    row = struct(("in", struct(("x", INT32))), optional=True)

    assert (None, row) == become(NAME, {}, None, row)


@pytest.mark.parametrize(
    ("value", "schema", "reported"),
    [
        (5, INT32, "Only Struct objects supported for [flattening], found: java.lang.Integer"),
        ([], None, "Only Map objects supported in absence of schema for [flattening], found: java.util.ArrayList"),
        ({"m": {}}, struct(("m", Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=STRING))), "Flatten transformation does not support MAP for record with schemas (for field m)."),
        ({"a.b": 1, "a": {"b": 2}}, struct(("a.b", INT32), ("a", struct(("b", INT32)))), "Cannot create field because of field name duplication a.b"),
    ],
)  # fmt: skip
def test_what_cannot_be_flattened_is_refused(
    value: object, schema: Schema | None, reported: str
) -> None:
    """Maps within structs and fields that would have one name."""
    assert reported == refusal(NAME, {}, value, schema)


@pytest.mark.parametrize("value", [{1: "x"}, {"a": {1: None}}])
def test_keys_have_to_be_strings(value: object) -> None:
    """They make a name; those of maps within arrays do not."""
    reported = refusal(NAME, {}, value)

    assert "A key of a map has to be a string, found: java.lang.Long" == reported


def test_what_has_no_type_without_a_schema_is_refused() -> None:
    """A date is a day, a moment or a number of days: only a schema says which."""
    flatten = make_transform(NAME, {})
    record = SourceRecord(
        topic="t",
        source_partition=SourcePartition(),
        source_offset=None,
        value={"a": {"b": dt.date(2020, 1, 2)}},
    )

    with pytest.raises(RecordError, match=r"type class java\.util\.Date which is not supported"):
        flatten.apply(record)
