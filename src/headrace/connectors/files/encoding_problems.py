"""What cannot be read in another encoding than UTF-8. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from headrace.connectors.files.formats import named_formats
from headrace.formats.text_encoding import encoding_named

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

_NO_TEXT: Final = frozenset(("avro", "bytes", "parquet"))
# As UTF-8 a character has three bytes at most, and a block of rows with 32-bit places 2 GiB.
_MOST_LINE_BYTES: Final = 256 * 1024 * 1024


def encoding_problems(config: FilesConfig) -> Iterator[Problem]:
    """What of *config* does not go with its encoding."""
    if encoding_named(config.encoding) is None:
        return
    named = named_formats(config)
    if named <= _NO_TEXT:
        names = " and ".join(sorted(filter(None, named)))
        told = f"It is for JSON lines, CSV and lines, and not for the format {names}. Remove it."
        yield "files.encoding", told
    if config.max_line_bytes > _MOST_LINE_BYTES:
        told = f"With files.encoding={config.encoding} it may be {_MOST_LINE_BYTES} at most."
        yield "files.max.line.bytes", f"{told} Lower it, or convert the files to UTF-8."
