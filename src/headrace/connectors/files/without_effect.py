"""Settings that nothing of what is read can ever use, by the formats that have a use for them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from headrace.connectors.files.formats import named_formats
from headrace.connectors.files.records.facts import POSITION
from headrace.formats.compression import Compression

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

_TEXT: Final = ("jsonl", "csv", "lines")
_OF_FORMATS: Final[Mapping[str, tuple[str, ...]]] = {
    "avro.": ("avro",),
    "csv.": ("csv",),
    "json.": ("jsonl",),
    "parquet.": ("parquet",),
    "files.bytes.per.record": ("bytes",),
}
"""The formats that a setting is for, by its name or by how that begins."""


def format_problems(config: FilesConfig) -> Iterator[Problem]:
    """Settings that a user gave and that are for no format that *config* reads, as far as it tells."""
    named = named_formats(config)
    if None in named:
        return
    for key in sorted(config.given):
        for beginning, formats in _OF_FORMATS.items():
            if _is_about(key, beginning) and named.isdisjoint(formats):
                told = f"It is for the format {formats[0]}, and {_why(config)}"
                yield key, f"{told}, so that it has no effect. Remove {key}."
    for key, wanted in (("files.headers", config.headers), ("files.fields", config.fields)):
        if POSITION in wanted and named.isdisjoint(_TEXT):
            told = "Only records of JSON lines, CSV and lines have a position"
            yield key, f"{told}, and {_why(config)}. Ask for record instead, or remove position."


def growth_problems(config: FilesConfig) -> Iterator[Problem]:
    """Ways to go on in files that surely are none that one can go on in."""
    named = named_formats(config)
    if config.follow and config.root is None and named == {"parquet"}:
        told = f"A Parquet file does not grow, and {_why(config)}. Remove files.follow."
        yield "files.follow", told
    if config.changed == "tail" and config.format == "auto" and config.compression == "auto":
        if None not in named and named.isdisjoint(_TEXT):
            told = f"tail needs lines or rows, and {_why(config)}"
            yield "files.changed", f"{told}. Remove it, or name other files."
        elif _all_packed(config):
            told = "tail needs files as they are, and all that is named is packed"
            yield "files.changed", f"{told}. Remove it, or name other files."


def _is_about(key: str, beginning: str) -> bool:
    return key.startswith(beginning) if beginning.endswith(".") else key == beginning


def _all_packed(config: FilesConfig) -> bool:
    return all(config.packing(path) is not Compression.NONE for path in config.path)


def _why(config: FilesConfig) -> str:
    """What tells which formats are read."""
    if config.format != "auto":
        return f"files.format is {config.format}"
    names = " and ".join(sorted(filter(None, named_formats(config))))
    return f"files.path names files of {names} only"
