"""Which files can be read in ranges, and why others are not. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from headrace.formats.by_name import FORMATS
from headrace.formats.compression import Compression
from headrace.formats.format import Format
from headrace.formats.row_format import RowFormat

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

_SETTING: Final = "files.split.bytes"
_BYTES: Final = "A file that is read as bytes is not split."
_CSV: Final = (
    "A CSV file can be split only where every line end ends a row, and each range's reader knows the fields: with "
    "csv.quote=none, csv.header=false and csv.names, and without csv.escape, csv.skip.lines and inferred types."
)
_PACKED: Final = "A compressed file cannot be split."
_UNKNOWN: Final = "Only its first bytes tell whether it is compressed. Set files.compression=none where it is not."
_NOT_SPLIT: Final[Mapping[str, str]] = {"bytes": _BYTES}
"""Why not, by the format."""


def split_problems(config: FilesConfig) -> Iterator[Problem]:
    """Why nothing that *config* reads can be split, where it asks for that."""
    if not config.split_bytes:
        return
    if config.format in _NOT_SPLIT:
        yield _SETTING, _NOT_SPLIT[config.format]
    if config.format == "csv" and not FORMATS["csv"](config.format_options("")).splits:
        yield _SETTING, _CSV
    if config.compression not in ("auto", "none"):
        yield _SETTING, _PACKED


def why_whole(form: Format, packing: Compression | None) -> str | None:
    """Why a file of this form is not split; ``None`` where it can be. *packing* is ``None`` when no one knows it."""
    if packing is not Compression.NONE:
        return _UNKNOWN if packing is None else _PACKED
    if form.splits:
        return None
    return _CSV if isinstance(form, RowFormat) else _BYTES
