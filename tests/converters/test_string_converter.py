"""The string converter."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from headrace.connect.errors import ConfigError, RecordError
from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    JSON_DOCUMENT,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    arrow_type,
    decimal,
)
from headrace.converters import make_converter


def _encode(values: pa.Array, encoding: str = "UTF-8") -> list[bytes | None]:
    converter = make_converter("string", {"converter.encoding": encoding}, is_key=False)
    return converter.encode("topic", None, values).to_pylist()


@pytest.mark.parametrize(
    ("column", "reported"),
    [
        (pa.array(["aé☃", None]), ["aé☃".encode(), None]),
        (pa.array([b"\xff", None]), [b"\xff", None]),
        (pa.array([1, None, -(2**63)]), [b"1", None, b"-9223372036854775808"]),
        (pa.array([True, None]), [b"true", None]),
        (pa.array([1.0, 1e10, float("nan"), None]), [b"1.0", b"1.0E10", b"NaN", None]),
        (pa.array([0.1], pa.float32()), [b"0.1"]),
        (pa.array([None]), [None]),
        (pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array(["{}"])), [b"{}"]),
    ],
)
def test_values_in_their_java_text_form(column: pa.Array, reported: list[bytes | None]):
    """Text passes, numbers and booleans are printed as Java does, nulls stay null."""
    assert reported == _encode(column)


def test_text_in_utf_8_is_not_copied():
    """The column of strings is seen as bytes."""
    column = pa.array(["a", "b"])
    encoded = make_converter("string", {}, is_key=True).encode("topic", None, column)
    assert column.buffers()[2].address == encoded.buffers()[2].address


def test_other_encodings_write_what_java_writes():
    """UTF-16 is big-endian behind its mark, and what an encoding lacks is a question mark."""
    assert [b"\xfe\xff\x00a\x00\xe9"] == _encode(pa.array(["aé"]), "UTF-16")
    assert [b"a\xe9?", None] == _encode(pa.array(["aé☃", None]), "ISO-8859-1")


def test_an_unknown_encoding_is_refused():
    """The sentence names the encoding."""
    with pytest.raises(ConfigError, match="Unsupported encoding nope"):
        _encode(pa.array(["a"]), "nope")


ROW = Schema(
    type=SchemaType.STRUCT,
    fields=(
        Field("a", INT32.as_optional()),
        Field("l", Schema(type=SchemaType.ARRAY, value_schema=FLOAT64.as_optional())),
        Field("m", Schema(type=SchemaType.MAP, key_schema=STRING, value_schema=BOOLEAN)),
    ),
)


@pytest.mark.parametrize(
    ("schema", "value", "reported"),
    [
        (ROW, {"a": 1, "l": [1e10, None], "m": []}, b"Struct{a=1,l=[1.0E10, null],m={}}"),
        (
            ROW,
            {"a": None, "l": [], "m": [("x", True), ("", False)]},
            b"Struct{l=[],m={x=true, =false}}",
        ),
        (
            Schema(type=SchemaType.MAP, key_schema=TIME, value_schema=INT32),
            [(0, 1), (1, 2), (0, 3)],
            b"{Thu Jan 01 00:00:00 UTC 1970=3, Thu Jan 01 00:00:00 UTC 1970=2}",
        ),
        (decimal(8), Decimal("0.00000128"), b"0.00000128"),
        (decimal(8), Decimal("0.00000012"), b"1.2E-7"),
        (DATE, 1, b"Fri Jan 02 00:00:00 UTC 1970"),
        (DATE, -141_428, b"Thu Oct 04 00:00:00 UTC 1582"),
        (DATE, -141_427, b"Fri Oct 15 00:00:00 UTC 1582"),
        (DATE, -719_162, b"Mon Jan 03 00:00:00 UTC 1"),
        (TIME, 1000, b"Thu Jan 01 00:00:01 UTC 1970"),
        (TIMESTAMP, -1, b"Wed Dec 31 23:59:59 UTC 1969"),
    ],
)
def test_values_with_a_schema_are_what_java_prints(schema: Schema, value: object, reported: bytes):
    """Each line was written by Kafka Connect 4.3.1."""
    converter = make_converter("string", {}, is_key=False)

    column = pa.array([None, value], arrow_type(schema))

    assert [None, reported] == converter.encode("topic", schema, column).to_pylist()


def test_bytes_inside_are_refused():
    """Java prints where they are in its memory; the error says what to do."""
    schema = Schema(type=SchemaType.ARRAY, value_schema=BYTES)
    with pytest.raises(RecordError, match="cannot write bytes that are inside") as caught:
        make_converter("string", {}, is_key=False).encode("t", schema, pa.array([[], [b"x"]]))
    assert 1 == caught.value.row


def test_dates_that_python_has_not_are_refused():
    """With the row, as any other value."""
    column = pa.array([0, 3_000_000], pa.date32())
    with pytest.raises(RecordError, match="of the years 1 to 9999 only") as caught:
        make_converter("string", {}, is_key=False).encode("t", DATE, column)
    assert 1 == caught.value.row


def test_other_values_are_refused():
    """A value of many without a schema is an error of the first row that has one."""
    with pytest.raises(RecordError, match="StringConverter does not support") as caught:
        _encode(pa.array([None, {"a": 1}]))
    assert 1 == caught.value.row
