"""The headers that say where a record comes from. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from headrace.connect.header_columns import HeaderColumns
from headrace.connect.record import Headers
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.records.facts import LAST, RECORD, RecordFacts
from headrace.formats.chunk import Chunk

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig


def header_problems(config: FilesConfig) -> Iterator[Problem]:
    """Headers, and fields of the same meaning, that cannot be had with the other settings."""
    if len(set(config.headers)) < len(config.headers):
        yield "files.headers", "Name each header once."
    for key, wanted in (("files.headers", config.headers), ("files.fields", config.fields)):
        if config.split_bytes and LAST in wanted:
            yield (
                key,
                "Ranges of a file end when they do: with files.split.bytes no record is the last.",
            )
        if config.split_bytes and RECORD in wanted:
            told = "The reader of a range does not know how many records precede it."
            yield key, f"{told} With files.split.bytes ask for position instead of record."
        if config.follow and LAST in wanted:
            yield key, "With files.follow a file may grow again: no record is the last."


class RecordHeaders:
    """Makes the headers of one split's records; *has_bytes* says that the anchors of its format are bytes."""

    def __init__(
        self, wanted: Sequence[str], path: str, details: SplitDetails, *, has_bytes: bool
    ) -> None:
        names = {fact: f"file.{fact}" for fact in wanted}
        self._facts = RecordFacts(names, path, details, has_bytes=has_bytes)

    def of(self, chunk: Chunk, rows: slice) -> HeaderColumns | None:
        """The headers of *rows* of *chunk*, none of which says that it is the last one."""
        columns = self._facts.of(chunk, rows)
        count = len(range(len(chunk))[rows])
        return HeaderColumns(columns, rows=count) if columns else None


def says_last(headers: Sequence[Headers] | None) -> HeaderColumns:
    """*headers* of one record, which is the last one of its file."""
    assert isinstance(headers, HeaderColumns)
    *others, last = headers.columns
    return HeaderColumns([*others, dataclasses.replace(last, value=True)], rows=len(headers))
