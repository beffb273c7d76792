"""Which format a file has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.sources.extractors.avro_format import AvroFormat
from headrace.sources.extractors.by_name import JSONL, LINES
from headrace.sources.extractors.bytes_format import BytesFormat
from headrace.sources.extractors.compression import EXTENSIONS, Compression, by_magic
from headrace.sources.extractors.csv_format import csv_format
from headrace.sources.extractors.format import Format
from headrace.sources.extractors.line_framing import Framing
from headrace.sources.extractors.parquet_format import ParquetFormat
from headrace.sources.extractors.row_format import RowFormat

_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".avro": "avro",
    ".parquet": "parquet",
    ".parq": "parquet",
    ".txt": "lines",
    ".log": "lines",
}
_FORMATS: Mapping[str, Callable[[FilesConfig, str], Format]] = {
    "jsonl": lambda _config, _extension: JSONL,
    "lines": lambda _config, _extension: LINES,
    "csv": lambda config, extension: csv_format(config.dialect(extension)),
    "avro": lambda config, _extension: AvroFormat(block_bytes=config.avro_max_block_bytes),
    "parquet": lambda config, _extension: ParquetFormat(columns=config.parquet_columns),
    "bytes": lambda config, _extension: BytesFormat(record_bytes=config.bytes_per_record),
}


def format_of(path: str, config: FilesConfig) -> Format:
    """What reads the file at *path*; raises ``TaskFailedError`` when its name does not tell the format."""
    extension = _extension(path)
    name = config.format if config.format != "auto" else _BY_EXTENSION.get(extension)
    if name is None:
        known = ", ".join(_BY_EXTENSION)
        raise TaskFailedError(
            f"{path}: The extension does not tell the format (known are {known}). "
            "Set files.format, or name the files with a glob in files.path."
        )
    return _FORMATS[name](config, extension)


def packing_of(path: str, head: bytes, config: FilesConfig) -> Compression:
    """How the file at *path*, which begins with *head*, is packed.

    The settings say it, or its name; or else the first bytes, where they cannot be what the format reads.
    """
    found = config.packing(path)
    told = found is not Compression.NONE or config.compression != "auto"
    if told or config.format == "bytes" or format_of(path, config).packs_itself:
        return found
    return by_magic(head)


def quoted_framing(form: Format) -> Framing | None:
    """What finds the rows of *form* where some line ends are quoted; ``None`` where each line end ends a row."""
    if not isinstance(form, RowFormat) or form.framing.resyncs:
        return None
    return form.framing


def _extension(path: str) -> str:
    """The extension that tells the format: of ``a.csv.gz`` it is ``.csv``."""
    name = PurePath(path)
    return PurePath(name.stem if name.suffix in EXTENSIONS else name.name).suffix
