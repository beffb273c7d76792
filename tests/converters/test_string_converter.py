"""The string converter."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.connect.errors import ConfigError, RecordError
from headrace.connect.schema import JSON_DOCUMENT
from headrace.converters import make_converter


def _encode(values: pa.Array, encoding: str = "UTF-8") -> list[bytes | None]:
    converter = make_converter("string", {"converter.encoding": encoding}, is_key=False)
    return converter.encode("topic", None, values).to_pylist()


@pytest.mark.parametrize(
    ("column", "told"),
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
def test_values_in_their_java_text_form(column: pa.Array, told: list[bytes | None]):
    """Text passes, numbers and booleans are printed as Java does, nulls stay null."""
    assert told == _encode(column)


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


def test_other_values_are_refused():
    """What has no text form yet is an error of the first row that has a value."""
    with pytest.raises(RecordError, match="StringConverter does not support") as caught:
        _encode(pa.array([None, {"a": 1}]))
    assert 1 == caught.value.row
