"""The headers of batches that are put together; pure."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.record import Headers


def joined_headers(batches: Sequence[SourceBatch]) -> Sequence[Headers] | None:
    """The headers of all rows of *batches*; in columns where all rows have the same headers.

    Raises :class:`~headrace.connect.errors.RecordError` for a header that Python has no form of.
    """
    if all(batch.headers is None for batch in batches):
        return None
    columns = _joined_columns([batch.headers for batch in batches])
    if columns is not None:
        return HeaderColumns(columns, rows=sum(map(len, batches)))
    return [headers for batch in batches for headers in batch.headers or [()] * len(batch)]


def _joined_columns(parts: Sequence[Sequence[Headers] | None]) -> list[HeaderColumn] | None:
    sides = [each.columns for each in parts if isinstance(each, HeaderColumns)]
    if len(sides) < len(parts) or len(set(map(len, sides))) > 1:
        return None
    joined = [_joined(same) for same in zip(*sides, strict=True)]
    known = [each for each in joined if each is not None]
    return known if len(known) == len(joined) else None


def _joined(columns: Sequence[HeaderColumn]) -> HeaderColumn | None:
    """One header out of the same one of several batches; ``None`` where it is another one in some of them."""
    first = columns[0]
    if len({repr(_kind(each)) for each in columns}) > 1:
        return None
    arrays = [each.values for each in columns if each.values is not None]
    if not arrays:
        return first
    return HeaderColumn(key=first.key, values=pa.concat_arrays(arrays), schema=first.schema)


def _kind(column: HeaderColumn) -> tuple[object, ...]:
    held = None if column.values is None else column.values.type
    return column.key, column.schema, held, column.value
