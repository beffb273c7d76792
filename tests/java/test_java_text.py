"""Numbers and JSON strings as Java writes them."""

from __future__ import annotations

import json
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.java.text import java_double, java_float, json_quoted


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e-5, "1.0E-5"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (123456.7891, "123456.7891"),
        (5e-324, "4.9E-324"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_look_as_in_java(value: float, reported: str):
    """The form is that of ``Double.toString``."""
    assert reported == java_double(value)


@pytest.mark.parametrize(
    ("value", "reported"),
    [(0.1, "0.1"), (1e10, "1.0E10"), (12345678.9, "1.2345679E7"), (1e-45, "1.4E-45")],
)
def test_floats_are_as_short_as_32_bits_allow(value: float, reported: str):
    """The form is that of ``Float.toString``."""
    assert reported == java_float(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_read_back(value: float):
    """No digit is lost."""
    assert value == float(java_double(value))


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_read_back(value: float):
    """No digit is lost that 32 bits can hold."""
    assert value == pa.scalar(float(java_float(value)), pa.float32()).as_py()


def test_escapes_are_jacksons():
    """Few characters are escaped, in upper case, and those of two UTF-16 units as two."""
    text = "a\"b\\c/d\x01\x1f\b\t\n\f\r\x7f\x80é☃😀<>&'"
    reported = '"a\\"b\\\\c/d\\u0001\\u001F\\b\\t\\n\\f\\r\x7f\x80é☃\\uD83D\\uDE00<>&\'"'
    assert reported == json_quoted(text)


@given(st.text())
def test_quoted_text_is_json(text: str):
    """Any reader of JSON gets the text back."""
    assert text == json.loads(json_quoted(text))
