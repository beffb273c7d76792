"""What texts are taken for that come without a schema."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.schema import Schema, SchemaType
from headrace.transforms.inferred_value import inferred

# The schemas that Kafka Connect found itself.
JAVA: Mapping[str, Any] = json.loads((Path(__file__).parent / "java_literals.json").read_text())


def shown(schema: Schema | None) -> str:
    """A schema as the table has it."""
    if schema is None:
        return "null"
    if schema.type is SchemaType.ARRAY:
        return f"ARRAY<{shown(schema.value_schema)}>"
    if schema.type is SchemaType.MAP:
        return f"MAP<{shown(schema.key_schema)},{shown(schema.value_schema)}>"
    if schema.name:
        return schema.name.rpartition(".")[2] + schema.parameters.get("scale", "")
    return schema.type.name


@pytest.mark.parametrize("text", JAVA["schemas"])
def test_a_text_has_the_schema_that_java_finds(text: str) -> None:
    """A list or map whose elements have nothing in common has none at all here."""
    found = JAVA["schemas"][text]

    assert ("null" if "null" in found else found) == shown(inferred(text)[0])


@pytest.mark.parametrize("text", JAVA["refused"])
def test_what_no_schema_describes_is_refused(text: str) -> None:
    """Kafka Connect gives it a schema that it does not fit."""
    with pytest.raises(ValueError, match=r"\w"):
        inferred(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" null ", None),
        ("", ""),
        (" hello ", " hello "),
        ("true ", True),
        (" 007", 7),
        ("1.5e3", 1500),
        ("1,2", 1),
        ("0.1", 0.10000000149011612),
        ("3.4028236e38", 3.4028236e38),
        ("9223372036854775808", Decimal(2**63)),
        ("1e400", Decimal("1e400")),
        ("1e2147483648", "1e2147483648"),
        ("2020-13-45", dt.date(2021, 2, 14)),
        ("03:04:05.006Z", dt.time(3, 4, 5, 6000)),
        (
            "2020-01-02T03:04:05.006Z",
            dt.datetime(2020, 1, 2, 3, 4, 5, 6000, tzinfo=dt.UTC),
        ),
        ("[1,1.5]", [1.0, 1.5]),
        ('[ "a" , "b,c" ]', ["a", "b,c"]),
        (r'["a\"b"]', [r"a\"b"]),
        ('[1,"a",[null]]', [1, "a", [None]]),
        ("[a]", "[a]"),
        ("[1,null]", "[1,null]"),
        ('{"a":1 "b":2}', {"a": 1, "b": 2}),
        ('{"a":{"b":[300]}}x', {"a": {"b": [300]}}),
        ('{"a":null}', {"a": None}),
        ('"a"', '"a"'),
    ],
)
def test_a_text_stands_for_a_value(text: str, value: object) -> None:
    """What is nothing else is a string, as it is."""
    found = inferred(text)[1]

    assert (value, type(value)) == (found, type(found))


@given(st.text('[]{},:"\\ -0129.eTZnultrasf', max_size=14))
def test_any_text_stands_for_something_or_is_refused(text: str) -> None:
    """Nothing but ``ValueError`` is raised."""
    try:
        schema, value = inferred(text)
    except ValueError:
        return

    assert value == text or schema is None or schema.type is not SchemaType.STRING
