"""What the header of an Avro file says about all its records."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.schema import Schema
from headrace.formats.avro.codecs import Unpack, codec_named
from headrace.formats.avro.columns import Column, column_of
from headrace.formats.avro.container import Header
from headrace.formats.avro.scan import Scan, scan_of
from headrace.formats.avro.schema import connect_schema
from headrace.formats.avro.types import parsed


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSchema:
    """What an object's header says about all its records.

    *scan* is ``None`` where there is none for the schema. *least_bytes* is what a record takes at least.
    """

    schema: Schema
    column: Column
    scan: Scan | None
    least_bytes: int
    unpack: Unpack

    def may_be(self, count: int, most_bytes: int) -> bool:
        """Whether a block of *most_bytes* unpacked can have *count* records; of one without any nothing is lost."""
        return 0 < count <= most_bytes // max(1, self.least_bytes)


def reader_schema_of(header: Header) -> ReaderSchema:
    """What *header* says about the records; raises ``RecordError``, without a place, when it makes no sense."""
    kind = parsed(header.schema)
    schema = connect_schema(kind)
    column = column_of(kind, schema)
    return ReaderSchema(
        schema=schema,
        column=column,
        scan=scan_of(column),
        least_bytes=kind.least_bytes,
        unpack=codec_named(header.codec),
    )
