"""The extractors that a configuration can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headrace.sources.extractors.avro_format import AvroFormat
from headrace.sources.extractors.bytes_format import BytesFormat
from headrace.sources.extractors.csv_dialect import CsvDialect
from headrace.sources.extractors.csv_format import csv_format
from headrace.sources.extractors.extractor import StreamExtractor
from headrace.sources.extractors.format import Format
from headrace.sources.extractors.jsonl import JsonLinesExtractor
from headrace.sources.extractors.line_framing import LineFraming
from headrace.sources.extractors.lines import LinesExtractor
from headrace.sources.extractors.parquet_format import ParquetFormat
from headrace.sources.extractors.row_format import RowFormat

JSONL: Final = RowFormat(
    name="jsonl", framing=LineFraming(), extractor=lambda *_: JsonLinesExtractor()
)
LINES: Final = RowFormat(name="lines", framing=LineFraming(), extractor=lambda *_: LinesExtractor())

EXTRACTORS: Final[Mapping[str, Callable[[int], Format]]] = {
    "avro": lambda _: AvroFormat(),
    "bytes": lambda record_bytes: BytesFormat(record_bytes=record_bytes),
    "csv": lambda _: csv_format(CsvDialect()),
    "jsonl": lambda _: JSONL,
    "lines": lambda _: LINES,
    "parquet": lambda _: ParquetFormat(),
}


def extractor_named(name: str, *, record_bytes: int) -> StreamExtractor:
    """The extractor that ``extractor.class`` names; *record_bytes* is ``extractor.buffer``."""
    return StreamExtractor(format=EXTRACTORS[name.lower()](record_bytes))
