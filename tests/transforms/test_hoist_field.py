"""HoistField: a key or value goes into a struct, or a map."""

from __future__ import annotations

import pytest

from headrace.connect.schema import INT32, Schema, SchemaType
from transforms.applied import become, refusal, struct

NAME = "HoistField$Value"
SETTINGS = {"field": "a"}
FIVE = Schema(type=SchemaType.INT32, default=5)


@pytest.mark.parametrize(("value", "schema"), [(1, INT32), (None, INT32.as_optional())])
def test_a_value_gets_a_struct_around_it(value: int | None, schema: Schema) -> None:
    """Null, too, where its schema allows it."""
    expected = ({"a": value}, struct(("a", schema)))

    assert expected == become(NAME, SETTINGS, value, schema)


@pytest.mark.parametrize("value", [1, "x", {"b": 1}, [1], None])
def test_a_value_without_schema_gets_a_map_around_it(value: object) -> None:
    """Whatever it is."""
    assert ({"a": value}, None) == become(NAME, SETTINGS, value)


def test_a_null_is_refused_where_there_has_to_be_a_value() -> None:
    """A default does not stand for it, as in Kafka Connect."""
    reported = refusal(NAME, SETTINGS, None, FIVE)

    assert 'Invalid value: null used for required field: "a", schema type: INT32' == reported
