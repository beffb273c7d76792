"""ExtractField: a field takes the place of what it was in."""

from __future__ import annotations

import pytest

from headrace.connect.schema import INT32, OPTIONAL_STRING, STRING, Schema, SchemaType
from transforms.applied import Settings, become, problems, refusal, struct

NAME = "ExtractField$Value"
FIVE = Schema(type=SchemaType.INT32, optional=True, default=5)
WORD = Schema(type=SchemaType.STRING, optional=True, default="w")
INNER = struct(("x", INT32), ("y", WORD), optional=True, doc="i")
ROW = struct(("a", FIVE), ("n", INNER), ("n.x", STRING), optional=True)
V2 = {"field.syntax.version": "v2"}


@pytest.mark.parametrize(
    ("config", "value", "schema"),
    [
        ({"field": "a"}, 5, FIVE),
        ({"field": "a", "replace.null.with.default": "false"}, None, FIVE),
        ({"field": "n.x"}, "dotted", STRING),
        ({"field": "n"}, {"x": 1, "y": None}, INNER),
        ({"field": "n.x", **V2}, 1, INT32),
        ({"field": "n.y", **V2}, "w", WORD),
        ({"field": "`n`.y", **V2, "replace.null.with.default": "false"}, None, WORD),
        ({"field": "`n.x`", **V2}, "dotted", STRING),
    ],
)
def test_a_field_of_a_struct_is_extracted(config: Settings, value: object, schema: Schema) -> None:
    """With its own schema; its null becomes its default, and in the second syntax it may lie deeper."""
    row = {"a": None, "n": {"x": 1, "y": None}, "n.x": "dotted"}

    assert (value, schema) == become(NAME, config, row, ROW)


@pytest.mark.parametrize("field", ["n.y", "n.x"])
def test_what_is_in_null_is_null(field: str) -> None:
    """A null struct on the way gives null, whatever the default of the field is."""
    row = {"a": 1, "n": None, "n.x": "dotted"}

    assert become(NAME, {"field": field, **V2}, row, ROW)[0] is None


def test_of_a_null_struct_comes_null_with_the_fields_schema() -> None:
    """The schema changes where there is no value, too."""
    assert (None, STRING) == become(NAME, {"field": "n.x"}, None, ROW)


@pytest.mark.parametrize(
    ("config", "value"),
    [
        ({"field": "a"}, 1),
        ({"field": "n"}, {"x": [2]}),
        ({"field": "n.x"}, None),
        ({"field": "n.x", **V2}, [2]),
        ({"field": "q.x", **V2}, None),
    ],
)
def test_an_entry_of_a_map_is_extracted(config: Settings, value: object) -> None:
    """One that is missing is null."""
    assert (value, None) == become(NAME, config, {"a": 1, "n": {"x": [2]}})


@pytest.mark.parametrize(
    ("config", "value", "schema", "reported"),
    [
        ({"field": "z"}, {"a": 1}, struct(("a", INT32)), "Unknown field: z"),
        ({"field": "n.z", **V2}, None, ROW, "Unknown field: n.z"),
        ({"field": "a"}, 5, INT32, "Only Struct objects supported for [field extraction], found: java.lang.Integer"),
        ({"field": "a"}, 5, None, "Only Map objects supported in absence of schema for [field extraction], found: java.lang.Long"),
        ({"field": "a.x", **V2}, {"a": 1}, None, "Only Map objects supported in absence of schema for [nested field access], found: java.lang.Long"),
        ({"field": "a.x", **V2}, {"a": 1}, struct(("a", INT32)), "Cannot look up fields on non-struct type: a.x has a part that is in no struct."),
        ({"field": "a"}, None, OPTIONAL_STRING, "Cannot look up fields on non-struct type: a has a part that is in no struct."),
    ],
)  # fmt: skip
def test_what_has_no_such_field_is_refused(
    config: Settings, value: object, schema: Schema | None, reported: str
) -> None:
    """Structs must have the field; what the way leads through must be a struct or a map."""
    assert reported == refusal(NAME, config, value, schema)


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        ({"field": "a", "field.syntax.version": "V3"}, ("field.syntax.version", "Invalid value V3 for configuration field.syntax.version: String must be one of (case insensitive): V1, V2")),
        ({"field": "", **V2}, ("field", "Invalid value  for configuration field: String must be non-empty")),
        ({"field": "`a.b", **V2}, ("field", "Incomplete backtick pair in path: [`a.b], consider adding a backslash before backtick at position 0 to escape it")),
    ],
)  # fmt: skip
def test_settings_are_checked(config: Settings, problem: tuple[str, str]) -> None:
    """The syntax is one of two, and the field is written in it."""
    assert (problem,) == problems(NAME, config)
