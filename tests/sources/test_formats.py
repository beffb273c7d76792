"""The format bytes: reading goes on behind every record, and what is cut off is an error."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.errors import TaskFailedError
from headrace.formats.bytes_format import BytesFormat
from headrace.formats.streams import Compression
from headrace.testing.format_suite import check_resume, reader_of, records_of


@given(content=some.binary(max_size=60), size=some.integers(1, 9))
def test_bytes_resume_at_every_record(content: bytes, size: int):
    """Pieces of one size, the last one maybe shorter, and never an empty one."""
    form = BytesFormat(record_bytes=size)

    count = check_resume(form, content)

    assert -(-len(content) // size) == count
    values = [each.value for each in records_of(reader_of(form, content))]
    assert content == b"".join(value for value in values if isinstance(value, bytes))


def test_bytes_that_are_cut_off_end_with_an_error():
    """The pieces before the damage come first; what is left of the object is no record."""
    packed = gzip.compress(bytes(range(256)) * 64)[:-20]
    reader = reader_of(BytesFormat(record_bytes=100), packed, compression=Compression.GZIP)

    with pytest.raises(TaskFailedError, match=r"an object, byte [0-9]+: .*cut off"):
        records_of(reader)

    assert 0 == reader.place.anchor % 100
