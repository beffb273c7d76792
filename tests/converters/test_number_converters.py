"""The converters of numbers and booleans."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from headrace.connect.errors import RecordError
from headrace.connect.record import Header
from headrace.connect.schema import BOOLEAN, INT32, INT64, STRING, Schema, SchemaType
from headrace.converters import make_converter, make_header_converter


def _encode(name: str, values: pa.Array, schema: Schema | None = None) -> list[bytes | None]:
    return make_converter(name, {}, is_key=False).encode("topic", schema, values).to_pylist()


@pytest.mark.parametrize(
    ("name", "values", "reported"),
    [
        ("short", pa.array([1, None, -(2**15)], pa.int16()), ["0001", None, "8000"]),
        ("integer", pa.array([1, None, -2], pa.int32()), ["00000001", None, "fffffffe"]),
        ("long", pa.array([2**40, None]), ["0000010000000000", None]),
        ("float", pa.array([1.0, None, math.nan], pa.float32()), ["3f800000", None, "7fc00000"]),
        ("double", pa.array([-0.0, None, math.inf]), ["80" + "0" * 14, None, "7ff0" + "0" * 12]),
        ("boolean", pa.array([True, None, False]), ["01", None, "00"]),
        ("double", pa.array([None, None]), [None, None]),
        ("boolean", pa.array([], pa.bool_()), []),
    ],
)
def test_bytes_are_javas(name: str, values: pa.Array, reported: list[str | None]):
    """Each line was written by Kafka Connect 4.3.1; the highest byte comes first."""
    expected = [each if each is None else bytes.fromhex(each) for each in reported]
    assert expected == _encode(name, values)
    assert expected[1:] == _encode(name, values[1:])


@pytest.mark.parametrize(
    ("name", "values", "sentence"),
    [
        ("short", pa.array([None, 1], pa.int32()), r"to short \(was class java\.lang\.Integer\)"),
        ("integer", pa.array([None, 1]), r"to integer \(was class java\.lang\.Long\)"),
        ("long", pa.array([None, "1"]), r"to long \(was class java\.lang\.String\)"),
        ("float", pa.array([None, 1.5]), r"to float \(was class java\.lang\.Double\)"),
        ("double", pa.array([None, b"x"]), r"to double \(was class \[B\)"),
        ("boolean", pa.array([None, 1]), r"of type class java\.lang\.Long"),
    ],
)
def test_other_values_are_refused(name: str, values: pa.Array, sentence: str):
    """Nothing is widened or narrowed; the row is the first with a value."""
    with pytest.raises(RecordError, match=sentence) as caught:
        _encode(name, values)
    assert 1 == caught.value.row


def test_only_booleans_look_at_the_schema():
    """As in Connect: a number is written whatever its schema says, a boolean is not."""
    assert [b"\0\0\0\7"] == _encode("integer", pa.array([7], pa.int32()), INT64)
    with pytest.raises(RecordError, match="Invalid schema type for BooleanConverter: STRING"):
        _encode("boolean", pa.array([True]), STRING)


@pytest.mark.parametrize(
    ("name", "header", "reported"),
    [
        ("integer", Header("h", 7, INT32), b"\0\0\0\7"),
        ("float", Header("h", 1.0, Schema(type=SchemaType.FLOAT32)), b"\x3f\x80\0\0"),
        ("boolean", Header("h", True, BOOLEAN), b"\1"),
        ("long", Header("h", None, None), None),
    ],
)
def test_headers_are_written_alike(name: str, header: Header, reported: bytes | None):
    """Each of them is a converter of headers as well."""
    assert reported == make_header_converter(name, {}).encode_header("topic", header)
