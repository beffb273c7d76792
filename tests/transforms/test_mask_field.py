"""MaskField: what is not to be seen gives way to a value that says nothing, or to a replacement."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import pytest

from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    SchemaType,
    decimal,
)
from transforms.applied import Settings, become, problems, refusal, struct
from transforms.generated import FLOAT32, INT8

NAME = "MaskField$Value"
LIST = Schema(type=SchemaType.ARRAY, value_schema=INT32)
MAP = Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=INT32)
INSTANT = dt.datetime(2023, 11, 14, 22, 13, 20, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("schema", "value", "masked"),
    [
        (INT8, 5, 0),
        (FLOAT64, 1.5, 0.0),
        (BOOLEAN, True, False),
        (STRING, "x", ""),
        (DATE, dt.date(2003, 10, 20), dt.date(1970, 1, 1)),
        (TIME, dt.time(1, 2, 3), dt.time()),
        (TIMESTAMP, INSTANT, dt.datetime(1970, 1, 1, tzinfo=dt.UTC)),
        (decimal(2), Decimal("1.50"), Decimal("0.00")),
        (LIST, [1], []),
        (MAP, {"a": 1}, {}),
    ],
)
def test_a_field_says_nothing_afterwards(schema: Schema, value: object, masked: object) -> None:
    """Every type but bytes and structs has such a value; other fields and the schema stay."""
    row = struct(("f", schema), ("g", STRING), optional=True, name="n", version=2)

    changed = become(NAME, {"fields": "f,none"}, {"f": value, "g": "x"}, row)

    assert ({"f": masked, "g": "x"}, row) == changed


@pytest.mark.parametrize(
    ("schema", "value", "text", "masked"),
    [
        (STRING, "x", "***", "***"),
        (INT8, 5, "7", 7),
        (INT8, 5, "300", 44),
        (INT32, 5, "1.5", 1),
        (INT64, 5, "1e3", 1000),
        (INT64, 5, "1e999999999", 0),
        (FLOAT32, 1.5, "1e3", 1000.0),
        (FLOAT64, 1.5, "-.1", -0.1),
        (decimal(2), Decimal("1.50"), "7.1", Decimal("7.10")),
    ],
)
def test_a_replacement_takes_a_fields_place(
    schema: Schema, value: object, text: str, masked: object
) -> None:
    """As text, or as a number of the field's type, cut to its bits."""
    config = {"fields": "f", "replacement": text}

    assert {"f": masked} == become(NAME, config, {"f": value}, struct(("f", schema)))[0]


@pytest.mark.parametrize(("defaults", "masked"), [("true", 0), ("false", None)])
def test_null_stays_unless_it_stands_for_a_default(defaults: str, masked: int | None) -> None:
    """A null is not masked, but a default in its place is."""
    row = struct(("f", Schema(type=SchemaType.INT32, optional=True, default=5)))
    config = {"fields": "f", "replace.null.with.default": defaults}

    assert {"f": masked} == become(NAME, config, {"f": None}, row)[0]


@pytest.mark.parametrize(
    ("config", "masked"),
    [
        ({"fields": "a,z"}, {"a": 0, "b": [1], "c": "x", "z": None}),
        ({"fields": "b"}, {"a": 1, "b": [], "c": "x"}),
        ({"fields": "a,c", "replacement": "7"}, {"a": 7, "b": [1], "c": "7"}),
    ],
)
def test_entries_of_a_map_are_masked(config: Settings, masked: object) -> None:
    """By what they are; one that is missing is null afterwards."""
    assert (masked, None) == become(NAME, config, {"a": 1, "b": [1], "c": "x"})


ROW = struct(("f", BYTES), ("s", struct(("x", INT32))), ("t", DATE), ("n", INT32))
FULL = {"f": b"x", "s": {"x": 1}, "t": dt.date(2000, 1, 1), "n": 1}


@pytest.mark.parametrize(
    ("config", "value", "schema", "reported"),
    [
        ({"fields": "f"}, FULL, ROW, "Cannot mask value of type: class [B"),
        ({"fields": "s"}, FULL, ROW, "Cannot mask value of type: class org.apache.kafka.connect.data.Struct"),
        ({"fields": "t", "replacement": "7"}, FULL, ROW, "Cannot mask value of type class java.util.Date with custom replacement."),
        ({"fields": "n", "replacement": "x"}, FULL, ROW, "Unable to convert x (class java.lang.String) to a number"),
        ({"fields": "a", "replacement": "7"}, {"a": {}}, None, "Cannot mask value of type class java.util.HashMap with custom replacement."),
        ({"fields": "a"}, None, None, "Only Map objects supported in absence of schema for [mask fields], found: null"),
        ({"fields": "a"}, None, ROW.as_optional(), "Only Struct objects supported for [mask fields], found: null"),
    ],
)  # fmt: skip
def test_what_cannot_be_masked_is_refused(
    config: Settings, value: object, schema: Schema | None, reported: str
) -> None:
    """Types without such a value, texts that are no numbers, and keys and values that are null."""
    assert reported == refusal(NAME, config, value, schema)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"fields": ""}, ("fields", "Configuration 'fields' must not be empty. Valid values include: any non-empty value")),
        ({"fields": "a,a"}, ("fields", "Configuration 'fields' values must not be duplicated.")),
        ({"fields": "a", "replacement": " "}, ("replacement", "Invalid value  for configuration replacement: String must be non-empty")),
    ],
)  # fmt: skip
def test_settings_are_checked(config: Settings, problem: tuple[str, str]) -> None:
    """There are fields, each once, and a replacement is not empty."""
    assert (problem,) == problems(NAME, config)
