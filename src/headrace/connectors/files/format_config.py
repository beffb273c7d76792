"""The settings that say how each format is to be understood."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from headrace.connect.config import Config, Problem
from headrace.connect.setting import setting
from headrace.formats.avro.format import DEFAULT_BLOCK_BYTES
from headrace.formats.by_name import FormatOptions
from headrace.formats.csv.dialect import DEFAULT_SAMPLE_BYTES, CsvDialect, Ragged
from headrace.formats.csv.types import KNOWN_TYPES, field_type
from headrace.formats.text_encoding import encoding_named

_KIB = 1024
_MIB = 1024 * 1024
_INFER = "infer"
_TABS = ".tsv"


def _encoding_problem(name: str) -> str | None:
    try:
        encoding_named(name)
    except ValueError as error:
        return str(error)
    return None


class FormatConfig(Config):
    """What belongs to one format each."""

    bytes_per_record: int = setting(
        "files.bytes.per.record",
        default=512 * 1024,
        at_least=1,
        at_most=256 * _MIB,
        doc="For files.format=bytes: how many bytes a record holds; a file's last one may hold fewer.",
    )
    encoding: str = setting(
        "files.encoding",
        default="utf-8",
        valid=_encoding_problem,
        doc="What JSON lines, CSV and lines are written in: utf-8, or an encoding of one byte per character whose "
        "first 128 are ASCII, such as iso-8859-1, windows-1252 or koi8-r.",
    )
    json_null: Literal["value", "tombstone"] = setting(
        "json.null",
        default="value",
        doc="What a line null of a JSONL file is: a value as any other one, or a tombstone, which is a record "
        "without value.",
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
        "boolean, date, time, timestamp, or decimal(n) with n digits behind the point. infer among them finds the types of the other "
        "fields. Numbers keep their text in JSON. An empty field of such a type is null.",
    )
    csv_infer_bytes: int = setting(
        "csv.infer.bytes",
        default=DEFAULT_SAMPLE_BYTES,
        at_least=_KIB,
        at_most=64 * _MIB,
        doc="With infer in csv.types: how many bytes at the beginning of each file tell its fields' types.",
    )
    csv_ragged: Ragged = setting(
        "csv.ragged",
        default="error",
        doc="What a row with fewer or more fields than there are names is: an error; or missing fields are null "
        "(fill), fields behind the last name are left out, with one warning for each file (cut), or both (fit).",
    )
    csv_comment: str = setting(
        "csv.comment",
        default="none",
        doc="The ASCII character that makes a line that begins with it, outside quotes, a comment, which is no row; "
        "none for none.",
    )
    csv_skip_lines: int = setting(
        "csv.skip.lines",
        default=0,
        at_least=0,
        at_most=1_000_000,
        doc="How many lines at the beginning of each file, before the header, are left out, whatever is in them.",
    )
    csv_trim: bool = setting(
        "csv.trim",
        default=False,
        doc="Whether spaces and tabs around fields, names and their quotes are dropped. What is inside quotes is kept.",
    )
    csv_schemas_enable: bool = setting(
        "csv.schemas.enable",
        default=False,
        doc="Whether rows become structs with a schema, as the converter avro needs them, and not JSON "
        "objects. The fields have the types of csv.types, and may all be null.",
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
        """Rules across these settings."""
        yield from super().check()
        yield from self._check_characters()
        for entry in self.csv_types:
            name, _, kind = entry.rpartition(":")
            if entry != _INFER and (not name or field_type(kind) is None):
                told = f"{entry!r} must be a field's name, a colon, and one of {KNOWN_TYPES}"
                yield "csv.types", f"{told}; or infer alone, for all other fields."
        if "csv.infer.bytes" in self.originals and _INFER not in self.csv_types:
            yield (
                "csv.infer.bytes",
                "Without infer among csv.types it has no effect. Add that, or remove this.",
            )

    def _check_characters(self) -> Iterator[Problem]:
        for key, text in (
            ("csv.delimiter", self.csv_delimiter or ","),
            ("csv.quote", self.csv_quote),
            ("csv.escape", self.csv_escape),
            ("csv.comment", self.csv_comment),
        ):
            if text == "none" and key != "csv.delimiter":
                continue
            character = _character(text)
            if len(character) != 1 or not character.isascii() or character in "\r\n\0":
                yield key, f"{text!r} must be one ASCII character that is no line end."
            elif key == "csv.comment" and character.isspace():
                yield key, f"{text!r} must not be a blank."
        texts = (self.csv_delimiter or ",", self.csv_quote, self.csv_escape, self.csv_comment)
        meanings = [character for character in map(_character, texts) if character]
        if len(set(meanings)) < len(meanings):
            yield "csv.quote", "The delimiter, quote, escape and comment characters must differ."

    def dialect(self, extension: str) -> CsvDialect:
        """The CSV dialect of files whose name ends with *extension*."""
        default = "\t" if extension == _TABS else ","
        declared = (each.rpartition(":") for each in self.csv_types if each != _INFER)
        return CsvDialect(
            delimiter=_character(self.csv_delimiter) or default,
            quote=_character(self.csv_quote),
            escape=_character(self.csv_escape),
            header=self.csv_header,
            names=self.csv_names,
            null=self.csv_null,
            types=tuple((name, kind) for name, _, kind in declared),
            infer=_INFER in self.csv_types,
            sample_bytes=self.csv_infer_bytes,
            structs=self.csv_schemas_enable,
            ragged=self.csv_ragged,
            comment=_character(self.csv_comment),
            skip_lines=self.csv_skip_lines,
            trim=self.csv_trim,
        )

    def format_options(self, extension: str) -> FormatOptions:
        """What is said about the formats of files whose name ends with *extension*. Asked for every file."""
        tabs = extension == _TABS
        found = self._known_options.get(tabs)
        if found is None:
            found = self._known_options[tabs] = FormatOptions(
                record_bytes=self.bytes_per_record,
                dialect=self.dialect(extension),
                tombstones=self.json_null == "tombstone",
                block_bytes=self.avro_max_block_bytes,
                columns=self.parquet_columns,
                encoding=encoding_named(self.encoding),
            )
        return found

    @cached_property
    def _known_options(self) -> dict[bool, FormatOptions]:
        """Those made so far, by whether the extension tells that fields are separated by tabs."""
        return {}

    @property
    def looks_ahead_bytes(self) -> int:
        """How many bytes may be read of a file before its first record is."""
        return self.csv_infer_bytes if _INFER in self.csv_types else 0


def _character(text: str) -> str:
    return {"none": "", "tab": "\t", "\\t": "\t"}.get(text, text)
