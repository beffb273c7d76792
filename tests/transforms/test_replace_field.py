"""ReplaceField: which fields stay, what they are called, and what becomes of their schema."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from headrace.connect.json_document import JSON_NULL
from headrace.connect.schema import INT32, STRING, Schema, SchemaType
from headrace.task.batching import batches_of
from transforms.applied import Settings, become, made, problems, refusal, struct
from transforms.generated import record

NAME = "ReplaceField$Value"
FIVE = Schema(type=SchemaType.INT32, optional=True, default=5)
ABOUT: dict[str, Any] = {"name": "n", "version": 3, "doc": "d", "parameters": {"x": "y"}}
ROW = struct(("a", FIVE), ("b", STRING), optional=True, **ABOUT)


@pytest.mark.parametrize(
    ("config", "value", "schema"),
    [
        ({"exclude": "b"}, {"a": 5}, struct(("a", FIVE), **ABOUT)),
        ({"include": "b"}, {"b": "x"}, struct(("b", STRING), **ABOUT)),
        ({"include": "b", "exclude": "b"}, {}, struct(**ABOUT)),
        ({"include": "none"}, {}, struct(**ABOUT)),
        ({"renames": "a:c"}, {"c": 5, "b": "x"}, struct(("c", FIVE), ("b", STRING), **ABOUT)),
        ({"renames": "a:b,b:a"}, {"b": 5, "a": "x"}, struct(("b", FIVE), ("a", STRING), **ABOUT)),
        (
            {"exclude": "b", "replace.null.with.default": "false"},
            {"a": None},
            struct(("a", FIVE), **ABOUT),
        ),
        # A new name that nothing gets any more: Kafka Connect would look for the old one.
        ({"exclude": "a", "renames": "a:b"}, {"b": "x"}, struct(("b", STRING), **ABOUT)),
    ],
)
def test_a_struct_keeps_what_it_is_to_keep(config: Settings, value: object, schema: Schema) -> None:
    """Fields go and get new names; a null becomes its default; the schema stays, but is not optional."""
    assert become(NAME, config, {"a": None, "b": "x"}, ROW) == (value, schema)


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"exclude": "a"}, {"b": None}),
        ({"include": "a,q"}, {"a": 1}),
        ({"renames": "a:b,b:c"}, {"b": 1, "c": None}),
        ({"renames": "a:b"}, {"b": None}),
        ({}, {"a": 1, "b": None}),
    ],
)
def test_a_map_keeps_what_it_is_to_keep(config: Settings, value: object) -> None:
    """Entries go and get new names; of two with one name the later stays."""
    assert become(NAME, config, {"a": 1, "b": None}) == (value, None)


@pytest.mark.parametrize("value", [None, JSON_NULL])
def test_null_without_schema_stays(value: object) -> None:
    """A tombstone and the JSON document null are passed on."""
    assert become(NAME, {"exclude": "a"}, value) == (value, None)


@pytest.mark.parametrize(
    ("value", "schema", "reported"),
    [
        (
            5,
            INT32,
            "Only Struct objects supported for [field replacement], found: java.lang.Integer",
        ),
        (
            5,
            None,
            "Only Map objects supported in absence of schema for [field replacement], found: java.lang.Long",
        ),
        (
            [1],
            None,
            "Only Map objects supported in absence of schema for [field replacement], found: java.util.ArrayList",
        ),
        ({"a": 1, "b": "x"}, ROW, "Cannot create field because of field name duplication b"),
    ],
)
def test_what_has_no_fields_is_refused(value: object, schema: Schema | None, reported: str) -> None:
    """The errors are Kafka Connect's, of fields that would have one name, too."""
    assert reported == refusal(NAME, {"renames": "a:b"}, value, schema)


def test_nulls_keep_their_schema_among_structs() -> None:
    """A batch with nulls is cut, because these keep their old schema, in their order."""
    rows = [{"a": 1, "b": "x"}, None, None, {"a": 2, "b": "y"}]
    ((batch, _),) = batches_of([record(row, ROW) for row in rows])

    changed = made(NAME, {"exclude": "b"}).apply_batch(batch)

    assert changed is not None
    kept = struct(("a", FIVE), **ABOUT)
    assert [
        (kept, [{"a": 1}]),
        (ROW, [None, None]),
        (kept, [{"a": 2}]),
    ] == [(each.value_schema, each.values.to_pylist()) for each in changed]


def test_a_null_is_refused_where_there_has_to_be_a_value() -> None:
    """Its default would be one, but is not to be put."""
    row = struct(("a", dataclasses.replace(FIVE, optional=False)))
    config = {"replace.null.with.default": "false"}

    reported = refusal(NAME, config, {"a": None}, row)

    assert 'Invalid value: null used for required field: "a", schema type: INT32' == reported


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"exclude": "a,,b"}, ("exclude", "Configuration 'exclude' values must not be empty.")),
        ({"include": "a,a"}, ("include", "Configuration 'include' values must not be duplicated.")),
        (
            {"renames": "a:b,c"},
            (
                "renames",
                "Invalid value [a:b, c] for configuration renames: Invalid rename mapping: c",
            ),
        ),
        (
            {"renames": "a:"},
            ("renames", "Invalid value [a:] for configuration renames: Invalid rename mapping: a:"),
        ),
        (
            {"renames": "a:b:c"},
            (
                "renames",
                "Invalid value [a:b:c] for configuration renames: Invalid rename mapping: a:b:c",
            ),
        ),
    ],
)
def test_settings_are_checked(config: Settings, problem: tuple[str, str]) -> None:
    """Wrong lists are refused in Kafka Connect's words."""
    assert (problem,) == problems(NAME, config)
