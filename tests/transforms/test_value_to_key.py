"""ValueToKey: fields of the value make the key."""

from __future__ import annotations

import pytest

from headrace.connect.schema import INT32, STRING, Schema, SchemaType
from transforms.applied import Settings, made, problems, refusal, struct
from transforms.both_ways import check_both_ways
from transforms.generated import batch_of, record

NAME = "ValueToKey"
FIVE = Schema(type=SchemaType.INT32, optional=True, default=5)
ROW = struct(("a", FIVE), ("b", STRING), optional=True, name="n")


@pytest.mark.parametrize(
    ("config", "key", "schema"),
    [
        ({"fields": "b,a"}, {"b": "x", "a": 5}, struct(("b", STRING), ("a", FIVE))),
        ({"fields": "a", "replace.null.with.default": "false"}, {"a": None}, struct(("a", FIVE))),
    ],
)
def test_a_key_is_made_of_fields(config: Settings, key: object, schema: Schema) -> None:
    """In the order of the setting; the value stays what it is, and the old key is gone."""
    given = record({"a": None, "b": "x"}, ROW, key="old", key_schema=STRING)

    changed = made(NAME, config).apply(given)

    assert changed is not None
    assert (key, schema) == (changed.key, changed.key_schema)
    assert (given.value, ROW) == (changed.value, changed.value_schema)
    check_both_ways(made(NAME, config), batch_of([given.value], ROW))


def test_a_key_is_made_of_entries() -> None:
    """Without schema it is a map, in which an entry that is missing is null."""
    changed = made(NAME, {"fields": "a,z"}).apply(record({"a": {"b": 1}}))

    assert changed is not None
    assert ({"a": {"b": 1}, "z": None}, None) == (changed.key, changed.key_schema)


@pytest.mark.parametrize(
    ("value", "schema", "reported"),
    [
        ({"a": 1, "b": "x"}, ROW, "Field does not exist: z"),
        (None, ROW, "Only Struct objects supported for [copying fields from value to key], found: null"),
        (None, None, "Only Map objects supported in absence of schema for [copying fields from value to key], found: null"),
        (5, INT32, "Only Struct objects supported for [copying fields from value to key], found: java.lang.Integer"),
    ],
)  # fmt: skip
def test_what_has_no_fields_is_refused(value: object, schema: Schema | None, reported: str) -> None:
    """A tombstone, too: no key can be made of it."""
    assert reported == refusal(NAME, {"fields": "z"}, value, schema)


def test_fields_are_needed() -> None:
    """An empty list would make an empty key of everything."""
    reported = "Configuration 'fields' must not be empty. Valid values include: any non-empty value"

    assert (("fields", reported),) == problems(NAME, {"fields": ""})
