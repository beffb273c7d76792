"""Rows of another encoding, understood as if they were UTF-8."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache

import numpy as np

from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.row_extractor import BadRow, Extracted, RowExtractor
from headrace.formats.rows import Int64Array, RowBlock
from headrace.formats.text import FIRST_NOT_ASCII
from headrace.formats.text_encoding import TextEncoding


class DecodingExtractor:
    """Hands the rows of *encoding* to *inner* as UTF-8, a block at a time.

    Rows are cut before and keep their places, so that positions and the bytes of bad rows are the object's own.
    """

    def __init__(self, inner: RowExtractor, encoding: TextEncoding) -> None:
        self._inner = inner
        self._encoding = encoding

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return self._inner.value_schema

    @property
    def needs_header(self) -> bool:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return self._inner.needs_header

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return self._inner.constants()

    def extract(self, rows: RowBlock) -> Extracted:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        found = self._inner.extract(decoded(rows, self._encoding))
        if found.bad is None:
            return found
        return dataclasses.replace(found, bad=self._explained(found.bad, rows))

    def _explained(self, bad: BadRow, rows: RowBlock) -> BadRow:
        """*bad*, and of a byte that is no character what and where it is in the object."""
        row = rows.row(bad.row)
        at = self._encoding.first_undefined(row)
        if at < 0:
            return bad
        return dataclasses.replace(
            bad,
            reason=f"Byte {rows.position(bad.row) + at} is 0x{row[at]:02x}, which is no character of "
            f"{self._encoding.name}.",
            advice="Correct the file, or set files.encoding to what it is written in.",
        )


def decoded(rows: RowBlock, encoding: TextEncoding) -> RowBlock:
    """*rows* as UTF-8, one by one; their positions are no longer the object's."""
    if not len(rows):
        return rows
    first = int(rows.starts[0])
    text = rows.buffer[first : int(rows.nexts[-1])]
    high = np.flatnonzero(text >= FIRST_NOT_ASCII)
    if not len(high):
        return rows
    grown = np.concatenate(([0], np.cumsum(_more_bytes(encoding)[text[high]])))

    def moved(places: Int64Array) -> Int64Array:
        inside = places - first
        return inside + grown[np.searchsorted(high, inside)]

    return RowBlock(
        buffer=np.frombuffer(encoding.utf8(text.tobytes()), np.uint8),
        base=rows.base,
        starts=moved(rows.starts),
        ends=moved(rows.ends),
        nexts=moved(rows.nexts),
    )


@cache
def _more_bytes(encoding: TextEncoding) -> Int64Array:
    """How many bytes each byte grows by."""
    return np.array([len(encoding.utf8(bytes([code]))) - 1 for code in range(256)], np.int64)
