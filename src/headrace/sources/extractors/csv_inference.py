"""Types of CSV fields, told by the first rows."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.partition import OffsetValue
from headrace.sources.extractors.csv_dialect import CsvDialect
from headrace.sources.extractors.csv_framing import csv_framing
from headrace.sources.extractors.csv_rows import CsvRows
from headrace.sources.extractors.csv_types import inferred_type
from headrace.sources.extractors.looking_ahead import Look, Sample

TYPES = "types"
"""What an offset calls the types of the fields, as a list in JSON."""

_UTF8_MARK = b"\xef\xbb\xbf"


def look_at_types(dialect: CsvDialect) -> Look | None:
    """What infers the types of files in *dialect*; ``None`` where they are declared."""
    if not dialect.infer:
        return None
    # A row that lacks fields says something about those that it has, whatever becomes of it later.
    lenient = dataclasses.replace(dialect, ragged="fill")

    def learn(sample: Sample) -> Mapping[str, OffsetValue]:
        types = inferred_types(lenient, sample)
        return {} if types is None else {TYPES: json.dumps(types, separators=(",", ":"))}

    return Look(key=TYPES, most_bytes=dialect.sample_bytes, learn=learn)


def inferred_types(dialect: CsvDialect, sample: Sample) -> list[str] | None:
    """The names of the fields' types, in their order; ``None`` where nothing can be told yet.

    That is where the names cannot be told, and where the sample ends with the object before its first record.
    Rows that cannot be read tell nothing. A field of which no value is seen is a string.
    """
    header = sample.constants.get("header")
    names = json.loads(header) if isinstance(header, str) and not sample.at_start else None
    if names is None and not sample.at_start:
        names = dialect.names or None
    reader = CsvRows(dialect, names)
    found = list(_columns(reader, dialect, sample))
    if reader.names is None or (not found and sample.whole):
        return None
    if not found:
        return ["string"] * len(reader.names)
    return [
        inferred_type(_without_nulls(pa.chunked_array(parts).combine_chunks(), dialect)).name
        for parts in zip(*found, strict=True)
    ]


def _columns(
    reader: CsvRows, dialect: CsvDialect, sample: Sample
) -> Iterator[Sequence[pa.StringArray]]:
    """The columns of the rows that can be read."""
    content = sample.content.removeprefix(_UTF8_MARK) if sample.at_start else sample.content
    buffer = np.frombuffer(content, np.uint8)
    rows = csv_framing(dialect).cut(buffer, base=0, final=sample.whole)
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
