"""The files that are no text, and the values that they become in Kafka."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.avro_encoding import LIMITS
from benchmarks.binary_samples import PIECE_BYTES, avro_sample, bytes_sample, parquet_sample
from benchmarks.samples import Sample
from benchmarks.values import read_values, write_values

from headrace.converters import make_converter
from headrace.formats.avro.format import AvroFormat
from headrace.formats.bytes_format import BytesFormat
from headrace.formats.format import Format
from headrace.formats.parquet.format import ParquetFormat
from headrace.testing.format_suite import reader_of
from headrace.testing.schema_registry import SchemaRegistry

COUNT = 250


@pytest.mark.parametrize(
    ("make", "made", "converter"),
    [
        (parquet_sample, ParquetFormat(), "json"),
        (avro_sample, AvroFormat(), "avro"),
        (bytes_sample, BytesFormat(record_bytes=PIECE_BYTES), "bytes"),
    ],
)
def test_values_are_what_the_connector_sends(
    tmp_path: Path, make: Callable[[Path, int], Sample], made: Format, converter: str
):
    """The client's limit is taken with the same bytes."""
    sample = make(tmp_path, COUNT)
    reader = reader_of(made, sample.path.read_bytes(), limits=LIMITS)
    with SchemaRegistry() as registry:
        config = {
            "json": {"schemas.enable": "false"},
            "avro": {"schema.registry.url": registry.url},
        }
        way = make_converter(converter, config.get(converter, {}), is_key=False)
        found = list[bytes]()
        while (chunk := reader.next_chunk()) is not None:
            found += way.encode("t", reader.value_schema, chunk.values).to_pylist()
    reader.close()
    values = read_values(sample.values)

    assert COUNT == sample.records == len(found)
    assert values == found[: len(values)]


def test_values_may_hold_any_bytes(tmp_path: Path):
    """Line ends, too, and nothing at all."""
    values = [b"a\n\x00", b"", b"b"]
    write_values(tmp_path / "v", values)

    assert values == read_values(tmp_path / "v")
