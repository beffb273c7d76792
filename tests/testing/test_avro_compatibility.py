"""Which versions the fixture of a schema registry calls compatible."""

from __future__ import annotations

import pytest

from headrace.testing.schema_registry import reads


def record(*fields: object) -> object:
    """A record's schema."""
    return {"type": "record", "name": "n.R", "fields": list(fields)}


A = {"name": "a", "type": "int"}
B = {"name": "b", "type": ["null", "int"], "default": None}


@pytest.mark.parametrize(
    ("reader", "writer", "expected"),
    [
        ("int", "int", True),
        ("long", "int", True),
        ("int", "long", False),
        ("bytes", "string", True),
        (["null", "int"], "int", True),
        ("int", ["null", "int"], False),
        (["null", "long"], ["int", "null"], True),
        (record(A, B), record(A), True),
        (record(A), record(A, B), True),
        (record(B, A), record(B), False),
        (record({"name": "a", "type": "string"}), record(A), False),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}, True),
        ({"type": "map", "values": "int"}, {"type": "array", "items": "int"}, False),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            False,
        ),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "F", "size": 3},
            False,
        ),
        (
            {"type": "fixed", "name": "F", "size": 2},
            {"type": "fixed", "name": "G", "size": 2},
            False,
        ),
    ],
    ids=str,
)
def test_a_reader_and_what_it_reads(reader: object, writer: object, expected: bool):  # noqa: FBT001
    """By the specification's rules of schema resolution."""
    assert expected == reads(reader, writer)
