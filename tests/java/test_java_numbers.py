"""Numbers as Java writes them."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.java.numbers import java_double, java_float


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
