"""Columns as JSON text."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.json_document import json_quoted
from headrace.converters.json_escaping import escaped
from headrace.converters.json_values import json_floats, json_strings
from headrace.java.numbers import java_double

_TEXTS = st.lists(
    st.none() | st.text() | st.text(alphabet='ab"\\\n\t\x01\x1f/é☃😀𝄞', max_size=12),
    max_size=8,
)


@given(_TEXTS)
def test_every_reader_of_json_gets_the_strings_back(texts: list[str | None]):
    """Escaped rows are JSON, nulls stay null."""
    reported = json_strings(pa.array(texts, pa.utf8())).to_pylist()
    assert texts == [None if row is None else json.loads(row) for row in reported]


@given(_TEXTS, st.integers(0, 3), st.integers(0, 8))
def test_a_column_is_escaped_as_each_row_alone(texts: list[str | None], start: int, length: int):
    """The fast way and the way of one row write the same bytes, slices included."""
    column = pa.array(texts, pa.utf8()).slice(start, length)
    reported = json_strings(column).to_pylist()
    assert [
        None if row is None else json_quoted(row).encode() for row in column.to_pylist()
    ] == reported


def test_text_without_special_characters_is_not_copied():
    """The bytes of the result are the bytes of the argument."""
    column = pa.array(["plain", None, "é☃"])
    assert column.buffers()[2].address == escaped(column).buffers()[2].address


@pytest.mark.parametrize("behind", [b"\xe9", b"\xf0", b"\xf4\xbf\xbf\xbf", b'\xff"'])
@pytest.mark.parametrize("plain", ["a", 'a"', "a\x1f", "a😀"])
def test_the_bytes_of_a_null_need_not_be_text(plain: str, behind: bytes):
    """Rows beside it are escaped, and it stays null."""
    content = plain.encode() + behind + plain.encode()
    ends = [0, len(plain.encode()), len(plain.encode()) + len(behind), len(content)]
    offsets = pa.py_buffer(pa.array(ends, pa.int32()).buffers()[1])
    column = pa.Array.from_buffers(
        pa.utf8(), 3, [pa.py_buffer(b"\x05"), offsets, pa.py_buffer(content)]
    )

    expected = json_quoted(plain).encode()
    assert [expected, None, expected] == json_strings(column).to_pylist()


@pytest.mark.parametrize("count", [255, 256, 65_535, 65_536])
def test_a_row_of_nothing_but_quotes_is_escaped(count: int):
    """However many they are, the row behind it begins behind all of them."""
    reported = json_strings(pa.array(['"' * count, "a"], pa.utf8())).to_pylist()
    assert [b'"' + b'\\"' * count + b'"', b'"a"'] == reported


@pytest.mark.parametrize("code", range(0x20))
def test_every_control_character_is_escaped_as_in_java(code: int):
    """Alone and beside text that looks like its escape."""
    texts = [chr(code), "", f'\\u{code:04x}"{chr(code)}\\', "\t"]
    reported = json_strings(pa.array(texts, pa.utf8())).to_pylist()
    assert [json_quoted(text).encode() for text in texts] == reported


@pytest.mark.parametrize("kind", [pa.large_utf8(), pa.string_view()])
def test_other_layouts_of_text_are_taken(kind: pa.DataType):
    """The width of a column's offsets does not matter."""
    assert [b'"a\\nb"', None] == json_strings(pa.array(["a\nb", None], kind)).to_pylist()


def test_an_empty_column_stays_empty():
    """No rows, no bytes."""
    assert [] == json_strings(pa.array([], pa.utf8())).to_pylist()


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False), max_size=8))
def test_numbers_of_a_column_look_as_in_java(numbers: list[float | None]):
    """The fast way for usual numbers writes what ``Double.toString`` does."""
    reported = json_floats(pa.array(numbers, pa.float64())).to_pylist()
    assert [None if row is None else java_double(row).encode() for row in numbers] == reported


def test_what_is_no_number_is_a_string():
    """JSON has no word for it, so it is quoted as Connect does."""
    odd = pa.array([float("nan"), float("inf"), float("-inf"), None], pa.float32())
    assert [b'"NaN"', b'"Infinity"', b'"-Infinity"', None] == json_floats(odd).to_pylist()
