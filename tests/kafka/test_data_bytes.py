"""How many bytes of records are sent."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace.kafka.sender import EncodedRecords


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_the_bytes_of_records_are_those_of_their_keys_and_values(kind: pa.DataType) -> None:
    """Of these rows alone, when they are a part of a column; a null has none."""
    values = pa.array([b"before", b"nine byte", b"", b"12345678", b"after"], kind).slice(1, 3)
    keys = pa.array([b"k", None, b"kk"], kind)

    assert 17 == EncodedRecords(topic="t", values=values).data_bytes
    assert 20 == EncodedRecords(topic="t", values=values, keys=keys).data_bytes
    assert 0 == EncodedRecords(topic="t", values=values.slice(0, 0)).data_bytes


def test_what_lies_under_a_null_is_not_sent() -> None:
    """Arrow allows a null to have data."""
    column = pa.array([b"seen", b"hidden"], pa.binary())
    _, offsets, data = column.buffers()
    masked = pa.Array.from_buffers(pa.binary(), 2, [pa.py_buffer(b"\x01"), offsets, data])

    assert [b"seen", None] == masked.to_pylist()
    assert 4 == EncodedRecords(topic="t", values=masked).data_bytes
