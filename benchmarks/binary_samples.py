"""Makes the files that are no text: Parquet and Avro with typed fields, and bytes that no one looks into."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.avro_encoding import FLAT, LIMITS, datum, flat, without_logical
from benchmarks.samples import CHUNK, Sample, json_line
from benchmarks.values import write_values
from headrace.converters import make_converter
from headrace.formats.parquet.format import ParquetFormat
from headrace.testing.format_suite import reader_of

PIECE_BYTES: Final = 8 * 1024
"""How large the records are into which files of bytes are cut."""

# So many different records there are; larger files hold them again and again.
_DIFFERENT = 100_000
_SYNC = b"headrace" * 2
# As Java's writer cuts blocks.
_BLOCK_BYTES = 64_000
# A zero and the schema's id, which a registry counts from 1.
_PRELUDE = b"\x00\x00\x00\x00\x01"
_ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("time", pa.timestamp("ms", tz="UTC")),
        ("device", pa.utf8()),
        ("reading", pa.float64()),
        ("unit", pa.utf8()),
        ("state", pa.utf8()),
        ("note", pa.utf8()),
    ]
)


def parquet_sample(folder: Path, records: int) -> Sample:
    """A file of about *records* rows, in row groups of ``_DIFFERENT``; its values are JSON objects."""
    path = folder / f"records-{records}.parquet"
    different = min(records, _DIFFERENT)
    table = pa.Table.from_pylist([flat(number) for number in range(different)], _ARROW)
    with pq.ParquetWriter(path, _ARROW) as writer:
        for _ in range(records // different):
            writer.write_table(table)
    return _sample(path, records // different * different, _json_values(table.slice(0, CHUNK)))


def avro_sample(folder: Path, records: int) -> Sample:
    """An object container file of about *records* records, not compressed; its values are Confluent's."""
    path = folder / f"records-{records}.avro"
    different = min(records, _DIFFERENT)
    header = _container([])
    blocks = _container([flat(number) for number in range(different)])[len(header) :]
    with path.open("wb") as file:
        file.write(header)
        for _ in range(records // different):
            file.write(blocks)
    plain: Any = fastavro.parse_schema(without_logical(FLAT))
    values = [_PRELUDE + datum(plain, flat(number)) for number in range(min(CHUNK, different))]
    return _sample(path, records // different * different, values)


def bytes_sample(folder: Path, records: int) -> Sample:
    """A file of *records* pieces of ``PIECE_BYTES``."""
    path = folder / f"records-{records}.bin"
    text = "".join(map(json_line, range(CHUNK))).encode()
    pieces = [text[at : at + PIECE_BYTES] for at in range(0, len(text) - PIECE_BYTES, PIECE_BYTES)]
    with path.open("wb") as file:
        for number in range(records):
            file.write(pieces[number % len(pieces)])
    return _sample(path, records, pieces)


def _sample(path: Path, records: int, values: list[bytes]) -> Sample:
    values_file = path.with_name(f"values-of-{path.name}")
    write_values(values_file, values)
    each = path.stat().st_size / records
    return Sample(path=path, records=records, bytes_each=each, values=values_file)


def _container(records: list[dict[str, Any]]) -> bytes:
    out = io.BytesIO()
    fastavro.writer(out, FLAT, records, sync_interval=_BLOCK_BYTES, sync_marker=_SYNC)
    return out.getvalue()


def _json_values(table: pa.Table) -> list[bytes]:
    """What the connector's own reader and converter make of *table*'s rows."""
    out = io.BytesIO()
    pq.write_table(table, out)
    converter = make_converter("json", {"schemas.enable": "false"}, is_key=False)
    reader = reader_of(ParquetFormat(), out.getvalue(), limits=LIMITS)
    found = list[bytes]()
    while (chunk := reader.next_chunk()) is not None:
        found += converter.encode("t", reader.value_schema, chunk.values).to_pylist()
    reader.close()
    return found
