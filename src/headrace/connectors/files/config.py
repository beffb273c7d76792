"""The settings of the files connector."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from headrace.connect.config import Config, Problem
from headrace.connect.setting import setting
from headrace.connect.setting_type import SettingType
from headrace.sources.extractors.avro_format import DEFAULT_BLOCK_BYTES
from headrace.sources.extractors.compression import Compression, by_name
from headrace.sources.extractors.csv_dialect import FIELD_TYPES, CsvDialect

_MIB = 1024 * 1024


class FilesConfig(Config):
    """What to read, how to understand it, and where to send it."""

    path: tuple[str, ...] = setting(
        "files.path",
        importance="high",
        non_empty=True,
        valid=lambda paths: None if paths else "Name at least one folder, file or glob.",
        doc="Folders, files or globs on local disk, comma separated. Every machine that runs a slot must "
        "see them under the same path. Names that begin with a dot are left out.",
    )
    topic: str = setting(
        importance="high",
        non_empty=True,
        doc="The topic to send to. ${filename} in it stands for the file's name, with an underscore for "
        "each character that a topic's name cannot hold.",
    )
    format: Literal["auto", "jsonl", "csv", "avro", "parquet", "lines", "bytes"] = setting(
        "files.format",
        default="auto",
        importance="high",
        doc="jsonl: each line is one JSON document. csv: each row becomes a JSON object. avro, parquet: "
        "each record or row is a struct with its schema. lines: each line is one string. bytes: the file in pieces, each of them bytes as they are. auto: by the file's extension (.jsonl, .ndjson, .csv, .tsv, .avro, .parquet, .parq, .txt, .log).",
    )
    compression: Literal["auto", "none", "gzip", "zstd", "bzip2", "xz", "snappy", "lz4"] = setting(
        "files.compression",
        default="auto",
        doc="How files are packed. auto: by the extensions .gz, .zst, .bz2, .xz, .sz, .snappy and .lz4; "
        "with another extension by the first bytes, where they are no text.",
    )
    recursive: bool = setting(
        "files.recursive", default=False, doc="Whether to read the folders inside a folder, too."
    )
    follow: bool = setting(
        "files.follow",
        default=False,
        doc="Whether to go on in a file that grows after it was read to its end. A last line is then read "
        "when its line end arrives.",
    )
    min_age_ms: int = setting(
        "files.min.age.ms",
        kind=SettingType.LONG,
        default=2000,
        at_least=0,
        doc="How long a file must be unchanged before a last line without line end counts as a record, "
        "and before a compressed file is read.",
    )
    bytes_per_record: int = setting(
        "files.bytes.per.record",
        default=512 * 1024,
        at_least=1,
        at_most=256 * _MIB,
        doc="For files.format=bytes: how many bytes a record holds; a file's last one may hold fewer.",
    )
    split_bytes: int = setting(
        "files.split.bytes",
        kind=SettingType.LONG,
        default=0,
        at_least=0,
        doc="Uncompressed JSONL and lines only: read a file in ranges of this many bytes, several at a "
        "time. Order then holds within a range. 0 reads each file in order, in one slot.",
    )
    changed: Literal["fail", "reread", "ignore"] = setting(
        "files.changed",
        default="fail",
        doc="What to do with a file that does not begin any more with what was sent of it, or that was "
        "replaced after it was read to its end: fail, reread it from its beginning, or ignore it from then on.",
    )
    missing: Literal["fail", "ignore"] = setting(
        "files.missing",
        default="fail",
        doc="What to do when a file vanishes before it was read to its end.",
    )
    max_line_bytes: int = setting(
        "files.max.line.bytes",
        default=_MIB,
        at_least=1,
        at_most=1024 * _MIB,
        doc="The longest line or CSV row in bytes; a longer one is an error and is never held in memory.",
    )
    batch_max_rows: int = setting(
        "files.batch.max.rows", default=20_000, at_least=1, doc="The most records in one batch."
    )
    batch_max_bytes: int = setting(
        "files.batch.max.bytes",
        default=_MIB,
        at_least=4096,
        at_most=256 * _MIB,
        doc="How many bytes of a file are read and sent as one batch.",
    )
    csv_delimiter: str = setting(
        "csv.delimiter",
        default="",
        doc="One ASCII character, or tab. Default: a comma, or a tab for .tsv files.",
    )
    csv_quote: str = setting(
        "csv.quote",
        default='"',
        doc="The ASCII character around quoted fields; none for no quoting.",
    )
    csv_escape: str = setting(
        "csv.escape",
        default="none",
        doc="The ASCII character that takes the next one literally, besides doubled quotes; none for none.",
    )
    csv_header: bool = setting(
        "csv.header",
        default=True,
        doc="Whether the first row of each file holds the fields' names.",
    )
    csv_names: tuple[str, ...] = setting(
        "csv.names",
        default=(),
        doc="The fields' names, comma separated: instead of the header's, or for files without one "
        "(default there: field_1, field_2 …).",
    )
    csv_null: str | None = setting(
        "csv.null",
        default=None,
        doc="A field with exactly this text is null. Default: no field is null.",
    )
    csv_types: tuple[str, ...] = setting(
        "csv.types",
        default=(),
        doc="Types of fields that are not strings, as name:type, comma separated; integer, number, "
        "boolean. Numbers keep their text. An empty field of such a type is null.",
    )

    avro_max_block_bytes: int = setting(
        "avro.max.block.bytes",
        default=DEFAULT_BLOCK_BYTES,
        at_least=1024,
        at_most=1024 * _MIB,
        doc="The largest block of an Avro file in bytes, packed and unpacked; a larger one is an error.",
    )
    parquet_columns: tuple[str, ...] = setting(
        "parquet.columns",
        default=(),
        doc="The columns of Parquet files to read, comma separated, in the order that the records' fields "
        "shall have. Default: all columns.",
        valid=lambda names: None if len(set(names)) == len(names) else "Name each column once.",
    )

    def check(self) -> Iterator[Problem]:
        """Rules across settings."""
        if self.format == "parquet" and self.compression not in ("auto", "none"):
            yield (
                "files.compression",
                "A Parquet file compresses its own pages; another compression around it is not read.",
            )
        if self.format == "parquet" and self.split_bytes:
            yield "files.split.bytes", "A Parquet file cannot be split at any byte."
        if self.split_bytes and self.format == "avro":
            yield "files.split.bytes", "An Avro file cannot be split."
        if self.split_bytes and self.format == "csv":
            yield (
                "files.split.bytes",
                "A CSV file cannot be split, because line ends may be quoted.",
            )
        if self.split_bytes and self.compression not in ("auto", "none"):
            yield "files.split.bytes", "A compressed file cannot be split."
        yield from self._check_characters()
        for entry in self.csv_types:
            if entry.rpartition(":")[2] not in FIELD_TYPES:
                known = ", ".join(FIELD_TYPES)
                yield "csv.types", f"{entry!r} must be a field's name, a colon, and one of {known}."

    def _check_characters(self) -> Iterator[Problem]:
        for key, text in (
            ("csv.delimiter", self.csv_delimiter or ","),
            ("csv.quote", self.csv_quote),
            ("csv.escape", self.csv_escape),
        ):
            if text == "none" and key != "csv.delimiter":
                continue
            character = _character(text)
            if len(character) != 1 or not character.isascii() or character in "\r\n\0":
                yield key, f"{text!r} must be one ASCII character that is no line end."
        meanings = (self.csv_delimiter or ",", self.csv_quote, self.csv_escape)
        if len(set(meanings)) < len(meanings):
            yield "csv.quote", "The delimiter, quote and escape characters must differ."

    def dialect(self, extension: str) -> CsvDialect:
        """The CSV dialect of files whose name ends with *extension*."""
        default = "\t" if extension == ".tsv" else ","
        return CsvDialect(
            delimiter=_character(self.csv_delimiter) or default,
            quote=_character(self.csv_quote),
            escape=_character(self.csv_escape),
            header=self.csv_header,
            names=self.csv_names,
            null=self.csv_null,
            types=tuple((name, kind) for name, _, kind in map(_parts, self.csv_types)),
        )

    def packing(self, path: str) -> Compression:
        """How the file at *path* is packed, as far as the settings and its name tell."""
        return by_name(path) if self.compression == "auto" else Compression(self.compression)


def _parts(entry: str) -> tuple[str, str, str]:
    return entry.rpartition(":")


def _character(text: str) -> str:
    return {"none": "", "tab": "\t", "\\t": "\t"}.get(text, text)
