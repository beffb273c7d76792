"""Headers as columns: the same bytes as headers row by row."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connect import (
    BOOLEAN,
    INT64,
    OPTIONAL_STRING,
    STRING,
    BatchOffsets,
    Header,
    HeaderColumn,
    HeaderColumns,
    SourceBatch,
    SourcePartition,
)
from headrace.connect.converting import ColumnarHeaderConverter, HeaderConverter
from headrace.connect.errors import RecordError
from headrace.converters import make_converter, make_header_converter
from headrace.task.encoding import Encoder

COLUMNS = [
    HeaderColumn(key="name", value="a", schema=STRING),
    HeaderColumn(key="size", value=5, schema=INT64),
    HeaderColumn(key="none"),
    HeaderColumn(key="count", values=pa.array([1, 2, 3], pa.int64()), schema=INT64),
    HeaderColumn(key="text", values=pa.array(["x", "", None]), schema=OPTIONAL_STRING),
    HeaderColumn(key="flag", values=pa.array([True, False, True]), schema=BOOLEAN),
]


class RowByRow:
    """A converter that knows no columns."""

    def configure(self, config: object) -> None:
        """Nothing to configure."""

    def encode_header(self, topic: str, header: Header) -> bytes | None:
        """Refuses 3."""
        if header.value == 3:
            raise RecordError("three")
        return repr(header.value).encode()


def encoder(headers: HeaderConverter) -> Encoder:
    """An encoder that converts headers with *headers*."""
    text = make_converter("string", {}, is_key=False)
    return Encoder(text, text, headers)


def batch(columns: list[HeaderColumn]) -> SourceBatch:
    """A batch of three records."""
    return SourceBatch(
        topic="t",
        values=pa.array(["v"] * 3),
        source_partition=SourcePartition({"p": 1}),
        offsets=BatchOffsets(),
        headers=HeaderColumns(columns, rows=3),
    )


@pytest.mark.parametrize("name", ["simple", "json", "string"])
def test_columns_become_what_rows_become(name: str):
    """With every converter, and in a piece of a batch as well."""
    converter = make_header_converter(name, {})
    assert isinstance(converter, ColumnarHeaderConverter)
    columns = batch(COLUMNS)
    assert columns.headers is not None
    rows = replace(columns, headers=list(columns.headers))

    made = encoder(converter).encoded(columns).headers
    piece = encoder(converter).encoded(columns.slice(1, 2)).headers

    assert made
    assert [list(row) for row in made] == encoder(converter).encoded(rows).headers
    assert made[1:] == piece


def test_a_converter_without_columns_is_asked_for_each_value():
    """And its error names the row."""
    good = encoder(RowByRow()).encoded(batch([COLUMNS[4]])).headers

    assert [(("text", b"'x'"),), (("text", b"''"),), (("text", b"None"),)] == good
    with pytest.raises(RecordError) as raised:
        encoder(RowByRow()).encoded(batch([COLUMNS[3]]))
    assert 2 == raised.value.row


def test_one_value_for_all_rows_is_converted_once():
    """However many rows there are."""

    class Counting(RowByRow):
        asked = 0

        def encode_header(self, topic: str, header: Header) -> bytes | None:
            self.asked += 1
            return super().encode_header(topic, header)

    converter = Counting()

    encoder(converter).encoded(batch(COLUMNS[:3]))

    assert 3 == converter.asked


def test_columns_can_be_had_row_by_row():
    """As headers that were made so; there are as many as rows, and pieces of them follow each other."""
    headers = HeaderColumns(COLUMNS[3:4], rows=3)

    assert [(Header("count", number, INT64),) for number in (1, 2, 3)] == list(headers)
    assert headers[-1] == (Header("count", 3, INT64),)
    assert [(), ()] == list(HeaderColumns([], rows=2))
    with pytest.raises(IndexError):
        headers[3]
    with pytest.raises(ValueError, match="consecutive rows"):
        headers[::2]
    with pytest.raises(ValueError, match="has 3 of 2 rows"):
        HeaderColumns(COLUMNS, rows=2)
