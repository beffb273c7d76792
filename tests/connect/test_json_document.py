"""Text and values without schema as JSON, by Kafka Connect's rules."""

from __future__ import annotations

import datetime as dt
import enum
import json
import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.json_document import JSON_NULL, document, json_quoted


class Colour(enum.StrEnum):
    """A text with a name."""

    RED = "r\u00e9d"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"b": 1, "a": [True, None, "x"]}, '{"b":1,"a":[true,null,"x"]}'),
        ([1e-5, 1e7, 0.5, -0.0], "[1.0E-5,1.0E7,0.5,-0.0]"),
        ([math.nan, -math.inf], '["NaN","-Infinity"]'),
        ({"a": b"\xfb\xff\x00"}, '{"a":"+/8A"}'),
        ({1: "a", "b": None}, '[[1,"a"],["b",null]]'),
        ({None: {}}, "[[null,{}]]"),
        ({"\x1f": "\U0001f600"}, '{"\\u001F":"\\uD83D\\uDE00"}'),
        ((Colour.RED, Decimal("1.50")), '["r\u00e9d",1.50]'),
        (JSON_NULL, "null"),
    ],
)
def test_values_are_written_as_java_writes_them(value: object, expected: str):
    """Numbers, bytes, escapes, and maps with keys of any kind."""
    assert expected == document(value)


@pytest.mark.parametrize("value", [dt.date(2026, 1, 2), dt.time(), object()])
def test_what_needs_a_schema_is_refused(value: object):
    """By the name of its type, wherever it is."""
    with pytest.raises(TypeError, match=f"{type(value).__name__} needs a schema"):
        document({"a": [value]})


def test_a_list_in_itself_is_refused():
    """And does not end the process."""
    endless = list[object]()
    endless.append(endless)

    with pytest.raises(ValueError, match="nested too deeply"):
        document(endless)


def test_escapes_are_jacksons():
    """Few characters are escaped, in upper case, and those of two UTF-16 units as two."""
    text = "a\"b\\c/d\x01\x1f\b\t\n\f\r\x7f\x80é☃😀<>&'"
    reported = '"a\\"b\\\\c/d\\u0001\\u001F\\b\\t\\n\\f\\r\x7f\x80é☃\\uD83D\\uDE00<>&\'"'
    assert reported == json_quoted(text)


@given(st.text())
def test_quoted_text_is_json(text: str):
    """Any reader of JSON gets the text back."""
    assert text == json.loads(json_quoted(text))
