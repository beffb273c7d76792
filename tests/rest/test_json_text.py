"""JSON as Java writes it."""

from __future__ import annotations

import pytest

from headrace.rest.answers import json_bytes


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, "{}"),
        ([], "[]"),
        ({"b": 1, "a": [True, None, -1]}, '{"b":1,"a":[true,null,-1]}'),
        (2**70, "1180591620717411303424"),
        (1e10, "1.0E10"),
        (float("inf"), '"Infinity"'),
        (b"\xff\x00", '"/wA="'),
        ('\x1f"\\\u2028é', '"\\u001F\\"\\\\\u2028é"'),
        ("a\udcff", '"a\\udcff"'),
    ],
)
def test_values(value: object, expected: str):
    """Compact, in order, escapes in capitals; a name that is no text keeps its bytes as escapes."""
    assert expected.encode() == json_bytes(value)


def test_what_json_has_no_form_for():
    """Nothing is written as something else."""
    with pytest.raises(TypeError, match="object"):
        json_bytes({"a": object()})
