"""JSONL: each line is one JSON document, checked and passed on byte for byte.

The decoder that checks refuses halves of surrogate pairs, which JSON's grammar allows.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.partition import OffsetValue
from headrace.connect.schema import JSON_DOCUMENT, Schema
from headrace.formats.row_extractor import BadRow, Extracted
from headrace.formats.rows import Int64Array, RowBlock
from headrace.formats.surrogates import without_halves
from headrace.formats.text import EMPTY, not_utf8, text_column

_SPACES = " \t\r"
_DECODER = msgspec.json.Decoder(type=msgspec.Raw)
_OPENING, _CLOSING = b"{}"


class _Object(msgspec.Struct, gc=False):
    """A JSON object, whatever is in it."""


_OBJECTS = msgspec.json.Decoder(type=_Object)


class JsonLinesExtractor:
    """A line that is not blank is a record; its value is the line's own bytes, spaces included.

    With *tombstones* the line ``null`` is a record without value, which deletes in a compacted topic.
    """

    def __init__(self, *, tombstones: bool = False) -> None:
        self._tombstones = tombstones

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return None

    @property
    def needs_header(self) -> bool:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return False

    def extract(self, rows: RowBlock) -> Extracted:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        found = _extracted(rows)
        if not self._tombstones:
            return found
        return dataclasses.replace(found, values=_without_nulls(found.values))

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return {}


def _extracted(rows: RowBlock) -> Extracted:
    filled = _not_empty(rows)
    checked = rows if filled is None else rows.pick(filled)
    if not _all_documents(checked):
        return _one_by_one(rows)
    values, bad = text_column(checked)
    if bad is not None:
        return _one_by_one(rows)
    return Extracted(values=_documents(values), rows=filled)


def _not_empty(rows: RowBlock) -> Int64Array | None:
    filled = rows.ends > rows.starts
    return None if filled.all() else np.flatnonzero(filled)


def _all_documents(rows: RowBlock) -> bool:
    """Whether each row is exactly one JSON document without spaces around it; not whether it is UTF-8."""
    if not len(rows):
        return True
    block = rows.buffer[rows.starts[0] : rows.ends[-1]].data
    if _has_braces(rows):
        # In a document, no `}` is followed by `{` outside of texts, and no text has a line end: none goes on in the next row. So if there are as
        # many as rows, each row is one. The lengths of documents cost as much as a third of reading them.
        try:
            return len(_OBJECTS.decode_lines(block)) == len(rows)
        except (msgspec.DecodeError, RecursionError):
            # Maybe for halves of surrogate pairs.
            pass
    lengths = _lengths(block)
    if lengths is None:
        text = block.tobytes()
        whole = without_halves(text)
        lengths = None if whole is text else _lengths(whole)
    # The decoder takes several documents on a line and documents over several lines. The first one begins
    # where the first row does; so if all lengths agree, each document is the whole of its row.
    return lengths is not None and np.array_equal(lengths, rows.ends - rows.starts)


def _has_braces(rows: RowBlock) -> bool:
    """Whether each of *rows*, which are not empty, begins and ends as an object does."""
    first, last = rows.buffer[rows.starts], rows.buffer[rows.ends - 1]
    return bool((first == _OPENING).all() and (last == _CLOSING).all())


def _lengths(block: memoryview | bytes) -> Int64Array | None:
    """The lengths of the documents in *block*; ``None`` where something is no document."""
    try:
        documents = _DECODER.decode_lines(block)
    except (msgspec.DecodeError, RecursionError):
        return None
    return np.fromiter(map(len, documents), np.int64, len(documents))


def _one_by_one(rows: RowBlock) -> Extracted:
    """The same for rows of which some are blank, have spaces around them, or are wrong."""
    kept = list[int]()
    bad = None
    for index in range(len(rows)):
        row = rows.row(index)
        if not row.strip(_SPACES.encode()):
            continue
        bad = _complaint(index, row, rows.position(index))
        if bad is not None:
            break
        kept.append(index)
    picked = np.array(kept, np.int64)
    values = rows.pick(picked).column().cast(pa.utf8()) if kept else EMPTY
    return Extracted(values=_documents(values), rows=picked, bad=bad)


def _complaint(index: int, row: bytes, position: int) -> BadRow | None:
    try:
        row.decode()
        _DECODER.decode(without_halves(row))
    except UnicodeDecodeError as error:
        return not_utf8(index, position, error)
    except RecursionError:
        return BadRow(row=index, reason="This JSON document is nested too deeply to be checked.")
    except msgspec.DecodeError as error:
        return BadRow(
            row=index,
            reason=f"This line is not one JSON document ({error}).",
            advice="Correct the line, or read the file with files.format=lines.",
        )
    return None


def _documents(values: pa.StringArray) -> pa.ExtensionArray:
    return pa.ExtensionArray.from_storage(JSON_DOCUMENT, values)


def _without_nulls(documents: pa.ExtensionArray) -> pa.ExtensionArray:
    """*documents*, null where they are the document ``null``."""
    texts = documents.storage
    is_null = pc.equal(pc.utf8_trim(texts, _SPACES), "null")
    return _documents(pc.if_else(is_null, None, texts))
