"""The converter of bytes."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.connect.errors import RecordError
from headrace.connect.schema import BYTES, JSON_DOCUMENT, OPTIONAL_BYTES, STRING, Schema
from headrace.converters import make_converter


def _encode(schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
    return make_converter("bytes", {}, is_key=False).encode("topic", schema, values)


@pytest.mark.parametrize("schema", [None, BYTES, OPTIONAL_BYTES])
def test_bytes_are_passed_on(schema: Schema | None):
    """The very column that came is returned."""
    column = pa.array([b"a", None])
    assert column.buffers()[2].address == _encode(schema, column).buffers()[2].address
    assert [b"a", None] == _encode(schema, column).to_pylist()


def test_documents_are_passed_on():
    """A JSON document leaves as its bytes."""
    documents = pa.ExtensionArray.from_storage(JSON_DOCUMENT, pa.array(["{}"]))
    assert [b"{}"] == _encode(None, documents).to_pylist()


def test_other_schemas_are_refused():
    """The sentence is Connect's."""
    with pytest.raises(RecordError, match="Invalid schema type for ByteArrayConverter: STRING"):
        _encode(STRING, pa.array(["a"]))


@pytest.mark.parametrize(
    ("value", "name"), [("a", "String"), (5, "Long"), (1.5, "Double"), (True, "Boolean")]
)
def test_other_values_are_refused(value: object, name: str):
    """The sentence is Connect's, the row the first with a value."""
    reported = (
        rf"ByteArrayConverter is not compatible with objects of type class java\.lang\.{name}"
    )
    with pytest.raises(RecordError, match=reported) as caught:
        _encode(None, pa.array([None, value]))
    assert 1 == caught.value.row
