"""The headers that say where a record comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.record import Headers
from headrace.connect.schema import BOOLEAN, INT64, STRING, Schema
from headrace.connectors.files.details import SplitDetails
from headrace.sources.extractors.chunk import Chunk

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

NAME, SIZE, MODIFIED = "name", "size", "modified"
RECORD, POSITION, LAST = "record", "position", "last"
HEADERS: Final = (NAME, SIZE, MODIFIED, RECORD, POSITION, LAST)
"""What may be asked for."""

_PREFIX = "file."


def header_problems(config: FilesConfig) -> Iterator[Problem]:
    """Headers that cannot be had with the other settings."""
    wanted = config.headers
    if len(set(wanted)) < len(wanted):
        yield "files.headers", "Name each header once."
    if config.split_bytes and LAST in wanted:
        yield (
            "files.headers",
            "Ranges of a file end when they do: with files.split.bytes no record is the last.",
        )
    if config.split_bytes and RECORD in wanted:
        told = "The reader of a range does not know how many records precede it."
        yield "files.headers", f"{told} With files.split.bytes ask for position instead of record."
    if config.follow and LAST in wanted:
        yield "files.headers", "With files.follow a file may grow again: no record is the last."


class RecordHeaders:
    """Makes the headers of one split's records; *has_bytes* says that the anchors of its format are bytes."""

    def __init__(
        self, wanted: tuple[str, ...], path: str, details: SplitDetails, *, has_bytes: bool
    ) -> None:
        self._constants = [
            column
            for name, column in (
                (NAME, _constant(NAME, path, STRING)),
                (SIZE, _constant(SIZE, details.size, INT64)),
                (MODIFIED, _constant(MODIFIED, details.modified_ms, INT64)),
            )
            if name in wanted
        ]
        self._has_record = RECORD in wanted
        self._has_position = POSITION in wanted and has_bytes
        self._has_last = LAST in wanted

    def of(self, chunk: Chunk, rows: slice) -> HeaderColumns | None:
        """The headers of *rows* of *chunk*, none of which says that it is the last one."""
        count = len(range(len(chunk))[rows])
        columns = list(self._constants)
        if self._has_record:
            counts = pa.array(chunk.counts[rows])
            columns.append(HeaderColumn(key=f"{_PREFIX}{RECORD}", values=counts, schema=INT64))
        if self._has_position:
            anchors = pa.array(chunk.anchors[rows])
            columns.append(HeaderColumn(key=f"{_PREFIX}{POSITION}", values=anchors, schema=INT64))
        if self._has_last:
            columns.append(_last(is_it=False))
        return HeaderColumns(columns, rows=count) if columns else None


def says_last(headers: Sequence[Headers] | None) -> HeaderColumns:
    """*headers* of one record, which is the last one of its file."""
    assert isinstance(headers, HeaderColumns)
    *others, _ = headers.columns
    return HeaderColumns([*others, _last(is_it=True)], rows=len(headers))


def _last(*, is_it: bool) -> HeaderColumn:
    return _constant(LAST, is_it, BOOLEAN)


def _constant(name: str, value: object, schema: Schema) -> HeaderColumn:
    return HeaderColumn(key=f"{_PREFIX}{name}", value=value, schema=schema)
