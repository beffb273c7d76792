"""Types of CSV fields, told by the first rows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.partition import OffsetValue
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.framing import csv_framing
from headrace.formats.csv.rows import CsvRows
from headrace.formats.csv.types import inferred_type
from headrace.formats.decoding import decoded
from headrace.formats.line_framing import first_lines
from headrace.formats.looking_ahead import Look, Sample
from headrace.formats.rows import RowBlock
from headrace.formats.text_encoding import TextEncoding

TYPES = "types"
"""What an offset calls the types of the fields, as a list in JSON."""

_UTF8_MARK = b"\xef\xbb\xbf"


def look_at_types(dialect: CsvDialect, encoding: TextEncoding | None = None) -> Look | None:
    """What infers the types of files in *dialect*; ``None`` where they are declared."""
    if not dialect.infer:
        return None
    # A row that lacks fields says something about those that it has, whatever becomes of it later; one that has
    # too many may have them in the wrong places.
    lenient = dataclasses.replace(dialect, ragged="fit" if dialect.cuts else "fill")

    def learn(sample: Sample) -> Mapping[str, OffsetValue]:
        types = inferred_types(lenient, sample, encoding)
        return {} if types is None else {TYPES: json.dumps(types, separators=(",", ":"))}

    return Look(key=TYPES, most_bytes=dialect.sample_bytes, learn=learn)


def inferred_types(
    dialect: CsvDialect, sample: Sample, encoding: TextEncoding | None = None
) -> list[str] | None:
    """The names of the fields' types, in their order; ``None`` where nothing can be told yet.

    That is where the names cannot be told, and where the object ends before its first record, as far as there is
    any of it by now.
    Rows that cannot be read tell nothing. A field of which no value is seen is a string.
    """
    header = None if sample.at_start else sample.constants.get("header", json.dumps(dialect.names))
    names = json.loads(header) if isinstance(header, str) and header else None
    reader = CsvRows(dialect, names or None)
    rows = _rows(dialect, sample)
    if encoding is not None:
        rows = decoded(rows, encoding)
    found = list(_columns(reader, rows))
    if reader.names is None or (not found and sample.ended):
        return None
    if not found:
        return ["string"] * len(reader.names)
    return [
        inferred_type(_without_nulls(pa.chunked_array(parts).combine_chunks(), dialect)).name
        for parts in zip(*found, strict=True)
    ]


def _rows(dialect: CsvDialect, sample: Sample) -> RowBlock:
    """The whole rows of *sample*."""
    content = sample.content.removeprefix(_UTF8_MARK) if sample.at_start else sample.content
    buffer = np.frombuffer(content, np.uint8)
    framing = csv_framing(dialect)
    if sample.at_start:
        found = first_lines(buffer, framing.preamble, final=sample.whole)
        buffer = buffer[len(buffer) if found is None else found[1] :]
    return framing.cut(buffer, base=0, final=sample.whole)


def _columns(reader: CsvRows, rows: RowBlock) -> Iterator[Sequence[pa.StringArray]]:
    """The columns of the rows that can be read."""
    while len(rows):
        found = reader.columns(rows)
        if len(found.rows):
            yield found.columns
        if found.bad is None or found.bad.fatal:
            return
        rows = rows.slice(found.bad.row + 1)


def _without_nulls(texts: pa.StringArray, dialect: CsvDialect) -> pa.StringArray:
    told = pc.not_equal(texts, "")
    if dialect.null is not None:
        told = pc.and_(told, pc.not_equal(texts, dialect.null))
    return texts.filter(told)
