"""Which format a file has, and what reads it."""

from __future__ import annotations

import json
from pathlib import PurePath

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetValue, SourceOffset
from headrace.connectors.files.config import FilesConfig
from headrace.sources.extractors.csv import CsvExtractor
from headrace.sources.extractors.csv_dialect import CsvDialect
from headrace.sources.extractors.csv_framing import csv_framing
from headrace.sources.extractors.extractor import Extractor
from headrace.sources.extractors.jsonl import JsonLinesExtractor
from headrace.sources.extractors.line_framing import Framing, LineFraming
from headrace.sources.extractors.lines import LinesExtractor

_BY_EXTENSION = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "lines",
    ".log": "lines",
}
_PACKED = (".gz", ".zst")


def extension(path: str) -> str:
    """The extension that tells the format: of ``a.csv.gz`` it is ``.csv``."""
    name = PurePath(path)
    return PurePath(name.stem if name.suffix in _PACKED else name.name).suffix


def format_of(path: str, config: FilesConfig) -> str:
    """The format of the file at *path*; raises ``TaskFailedError`` when its name does not tell."""
    if config.format != "auto":
        return config.format
    found = _BY_EXTENSION.get(extension(path))
    if found is None:
        known = ", ".join(_BY_EXTENSION)
        raise TaskFailedError(
            f"{path}: The extension does not tell the format (known are {known}). "
            "Set files.format, or name the files with a glob in files.path."
        )
    return found


def signature(path: str, config: FilesConfig) -> str:
    """What an offset's ``format`` says: reading can go on only under the same one."""
    name = format_of(path, config)
    return config.dialect(extension(path)).signature() if name == "csv" else name


def framing_of(path: str, config: FilesConfig) -> Framing:
    """What finds the rows of the file at *path*."""
    if format_of(path, config) == "csv":
        return csv_framing(config.dialect(extension(path)))
    return LineFraming()


def reading(
    path: str, config: FilesConfig, offset: SourceOffset | None
) -> tuple[Framing, Extractor]:
    """A fresh framing and extractor for the file at *path*, going on at *offset*."""
    name = format_of(path, config)
    framing = framing_of(path, config)
    if name == "jsonl":
        return framing, JsonLinesExtractor()
    if name == "lines":
        return framing, LinesExtractor()
    dialect = config.dialect(extension(path))
    return framing, CsvExtractor(dialect, header=_header(path, dialect, offset))


def _header(path: str, dialect: CsvDialect, offset: SourceOffset | None) -> OffsetValue:
    """The names for a reader that begins behind the header, or ``None`` for one that meets it."""
    if offset is None or not offset.get("anchor") or "header" in offset:
        return offset.get("header") if offset and offset.get("anchor") else None
    if dialect.names:
        return json.dumps(dialect.names)
    if dialect.header:
        raise TaskFailedError(
            f"{path}: Its offset points behind the header without saying what that held. "
            "Name the fields with csv.names."
        )
    return None
