"""The formats that a configuration can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from headrace.formats.avro.format import DEFAULT_BLOCK_BYTES, AvroFormat
from headrace.formats.bytes_format import BytesFormat
from headrace.formats.csv.cut_rows import CutRows
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.formats.format import Format
from headrace.formats.jsonl import JsonLinesExtractor
from headrace.formats.line_framing import LineFraming
from headrace.formats.lines import LinesExtractor
from headrace.formats.parquet.format import ParquetFormat
from headrace.formats.row_format import RowFormat
from headrace.formats.text_encoding import TextEncoding

JSONL: Final = RowFormat(
    name="jsonl", framing=LineFraming(), extractor=lambda *_: JsonLinesExtractor()
)
JSONL_TOMBSTONES: Final = RowFormat(
    name="jsonl",
    framing=LineFraming(),
    extractor=lambda *_: JsonLinesExtractor(tombstones=True),
)
LINES: Final = RowFormat(name="lines", framing=LineFraming(), extractor=lambda *_: LinesExtractor())

_RECORD_BYTES = 4096
_PLAIN_CSV = CsvDialect()


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """What a configuration says about formats; each of them takes what is its own.

    *record_bytes* is for bytes, *dialect* for CSV, *tombstones* (whether ``null`` is a record without value)
    for JSONL, *block_bytes* (the most of a block) for Avro, *columns* for Parquet, all of them when empty.
    *encoding* is that of JSONL, CSV and lines, ``None`` for UTF-8. *cut* tells of the rows of CSV that are cut, once
    for all files that are read with these options.
    """

    record_bytes: int = _RECORD_BYTES
    dialect: CsvDialect = _PLAIN_CSV
    tombstones: bool = False
    block_bytes: int = DEFAULT_BLOCK_BYTES
    columns: tuple[str, ...] = ()
    encoding: TextEncoding | None = None
    cut: CutRows = field(default_factory=CutRows, compare=False, repr=False)


FORMATS: Final[Mapping[str, Callable[[FormatOptions], Format]]] = {
    "avro": lambda options: AvroFormat(block_bytes=options.block_bytes),
    "bytes": lambda options: BytesFormat(record_bytes=options.record_bytes),
    "csv": lambda options: csv_format(options.dialect, options.encoding, cut=options.cut),
    "jsonl": lambda options: _encoded(JSONL_TOMBSTONES if options.tombstones else JSONL, options),
    "lines": lambda options: _encoded(LINES, options),
    "parquet": lambda options: ParquetFormat(columns=options.columns),
}
"""Every format by its name."""


def _encoded(form: RowFormat, options: FormatOptions) -> RowFormat:
    return form if options.encoding is None else replace(form, encoding=options.encoding)
