"""SetSchemaMetadata: another name and version for the schema of a struct."""

from __future__ import annotations

import pytest

from headrace.connect.json_document import JSON_NULL
from headrace.connect.schema import INT32, Schema, SchemaType
from headrace.task.batching import batches_of
from transforms.applied import Settings, become, made, problems, refusal, struct
from transforms.generated import record

NAME = "SetSchemaMetadata$Value"
FIVE = Schema(type=SchemaType.INT32, optional=True, default=5)


@pytest.mark.parametrize(
    ("config", "name", "version", "field"),
    [
        ({"schema.name": "q"}, "q", 3, 5),
        ({"schema.version": "9"}, "n", 9, 5),
        ({"schema.name": "", "schema.version": "-1"}, "", -1, 5),
        ({"schema.name": "q", "replace.null.with.default": "false"}, "q", 3, None),
    ],
)
def test_a_schema_gets_another_name(
    config: Settings, name: str, version: int, field: int | None
) -> None:
    """All else of it stays; a null of a field becomes its default."""
    before = struct(("a", FIVE), optional=True, name="n", version=3, doc="d", parameters={"x": "y"})
    after = struct(
        ("a", FIVE), optional=True, name=name, version=version, doc="d", parameters={"x": "y"}
    )

    assert ({"a": field}, after) == become(NAME, config, {"a": None}, before)
    assert (None, after) == become(NAME, config, None, before)


def test_a_batch_stays_one() -> None:
    """Null structs get the new schema as well, so that nothing is cut."""
    rows = [{"a": None}, None, {"a": 2}]
    ((batch, _),) = batches_of([record(row, struct(("a", FIVE), optional=True)) for row in rows])

    changed = made(NAME, {"schema.name": "q"}).apply_batch(batch)

    assert changed is not None
    assert [[{"a": 5}, None, {"a": 2}]] == [each.values.to_pylist() for each in changed]


@pytest.mark.parametrize("value", [None, JSON_NULL])
def test_null_without_schema_stays(value: object) -> None:
    """There is nothing to rename."""
    assert (value, None) == become(NAME, {"schema.name": "q"}, value)


@pytest.mark.parametrize(
    ("value", "schema", "reported"),
    [
        ({"a": 1}, None, "Schema required for [updating schema metadata]"),
        (5, INT32, "Only Struct objects supported for [updating schema metadata], found: java.lang.Integer"),
    ],
)  # fmt: skip
def test_what_has_no_struct_is_refused(value: object, schema: Schema | None, reported: str) -> None:
    """Kafka Connect refuses all but structs, too."""
    assert reported == refusal(NAME, {"schema.name": "q"}, value, schema)


def test_a_name_or_a_version_is_needed() -> None:
    """With neither there is nothing to do."""
    problem = ("schema.name", "Neither schema name nor version configured")

    assert (problem,) == problems(NAME, {})
