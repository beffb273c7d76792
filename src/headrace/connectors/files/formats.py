"""Which format a file has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from os.path import splitext
from typing import TYPE_CHECKING, Final

from headrace.connect.errors import TaskFailedError
from headrace.formats.by_name import FORMATS
from headrace.formats.compression import EXTENSIONS, Compression, by_magic
from headrace.formats.format import Format
from headrace.formats.line_framing import Framing
from headrace.formats.row_format import RowFormat

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

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

_PLAIN: Final[Mapping[str, str]] = {
    "jsonl": "JSON lines are passed on byte for byte",
    "lines": "Plain lines are passed on as they are",
    "bytes": "Bytes are passed on as they are",
}
"""The formats whose records have neither fields nor a schema, and why."""

# Such a file may as well be one document of many lines, so that its extension tells nothing.
_ADVICE = {".json": "`.json`: set files.format=jsonl if each line is a document"}


def format_of(path: str, config: FilesConfig) -> Format:
    """What reads the file at *path*; raises ``TaskFailedError`` when its name does not tell that.

    Also where its records cannot get the fields or the schema that are asked for.
    """
    extension = extension_of(path)
    name = config.format if config.format != "auto" else _BY_EXTENSION.get(extension)
    if name is None:
        known = ", ".join(_BY_EXTENSION)
        raise TaskFailedError(
            f"{path}: The extension does not identify the format (known are {known}). "
            f"{_ADVICE.get(extension, 'Set files.format')}, or name the files with a glob in files.path."
        )
    for _, refusal in _refusals(name, config):
        raise TaskFailedError(f"{path}: {refusal}")
    return FORMATS[name](config.format_options(extension))


def form_shown(path: str, config: FilesConfig) -> str:
    """Format and packing of the file at *path* in words for people; of the packing what the name tells."""
    format_of(path, config)
    name = config.format if config.format != "auto" else _BY_EXTENSION[extension_of(path)]
    packing = packing_told(path, config)
    return name if packing in (None, Compression.NONE) else f"{name}, {packing.value}"


def packing_told(path: str, config: FilesConfig) -> Compression | None:
    """How the file at *path* is packed by the settings or its name; ``None`` where its first bytes tell."""
    found = config.packing(path)
    told = found is not Compression.NONE or config.compression != "auto"
    if told or config.format == "bytes" or format_of(path, config).packs_itself:
        return found
    return None


def packing_of(path: str, head: bytes, config: FilesConfig) -> Compression:
    """How the file at *path*, which begins with *head*, is packed.

    The settings say it, or its name; or else the first bytes, where they cannot be what the format reads.
    """
    told = packing_told(path, config)
    return by_magic(head) if told is None else told


def quoted_framing(form: Format) -> Framing | None:
    """What finds the rows of *form* where some line ends are quoted; ``None`` where each line end ends a row."""
    if not isinstance(form, RowFormat) or form.framing.resyncs:
        return None
    return form.framing


def known_by_extension(path: str) -> bool:
    """Whether the extension of the file at *path* tells its format."""
    return extension_of(path) in _BY_EXTENSION


def plain_problems(config: FilesConfig) -> Iterator[Problem]:
    """Why some of what *config* reads has no fields and no schema, where it asks for such and that can be said."""
    found = (_refusals(name, config) for name in sorted(filter(None, named_formats(config))))
    yield from dict(itertools.chain.from_iterable(found)).items()


def schemaless_values(config: FilesConfig) -> str | None:
    """What surely has no schema of what *config* reads, in words; ``None`` where only the files tell."""
    named = named_formats(config)
    if "jsonl" in named:
        return "JSON lines"
    if "csv" in named and not config.csv_schemas_enable:
        return "CSV rows without csv.schemas.enable=true"
    return None


def _refusals(name: str, config: FilesConfig) -> Iterator[Problem]:
    """What *config* asks for that records of the format *name* cannot have."""
    reason = _PLAIN.get(name)
    if config.schema_text is not None and name == "csv" and not config.csv_schemas_enable:
        told = "Rows of CSV have a schema with csv.schemas.enable=true only. Set that, too."
        yield "files.schema", told
    if reason is None:
        return
    if config.field_entries:
        told = (
            f"{reason}, so that no field can be added. Use files.headers instead of files.fields."
        )
        yield "files.fields", told
    if config.schema_text is not None:
        yield "files.schema", f"{reason}, so that they get no schema. Remove it, or leave them out."


def named_formats(config: FilesConfig) -> set[str | None]:
    """The formats that *config* names; ``None`` among them where only the files tell."""
    if config.format != "auto":
        return {config.format}
    return {_BY_EXTENSION.get(extension_of(path)) for path in config.path}


def extension_of(path: str) -> str:
    """The extension that tells the format: of ``a.csv.gz`` it is ``.csv``."""
    # Not by a path object, which takes three times as long: a listing may have a million names.
    stem, extension = splitext(path.rpartition("/")[2])  # noqa: PTH122
    return splitext(stem)[1] if extension in EXTENSIONS else extension  # noqa: PTH122
