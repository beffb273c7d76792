"""Headers of many records as columns, for batches whose records all have headers with the same keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.record import Header, Headers
from headrace.connect.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderColumn:
    """One header of every row: the same *value* for all, or one of *values* for each.

    *values* has the Arrow type of *schema*, as the values of a batch have.
    """

    key: str
    value: object = None
    values: pa.Array | None = None
    schema: Schema | None = None

    def at(self, row: int) -> Header:
        """The header of *row*.

        Raises :class:`~headrace.connect.errors.RecordError` for a value that Python cannot represent.
        """
        if self.values is None:
            return Header(self.key, self.value, self.schema)
        try:
            value = self.values[row].as_py(maps_as_pydicts="strict")
        except (ValueError, OverflowError) as error:
            raise RecordError(
                f"The header {self.key} has no Python value: {error}", row=row
            ) from error
        return Header(self.key, value, self.schema)

    def slice(self, start: int, length: int) -> HeaderColumn:
        """The headers of *length* rows from *start*, without copying."""
        if self.values is None:
            return self
        cut = self.values.slice(start, length)
        return HeaderColumn(key=self.key, values=cut, schema=self.schema)

    def take(self, rows: pa.Int64Array) -> HeaderColumn:
        """The headers of *rows*, in their order."""
        if self.values is None:
            return self
        return HeaderColumn(key=self.key, values=self.values.take(rows), schema=self.schema)


class HeaderColumns(Sequence[Headers]):
    """The headers of *rows* rows, all with the same keys; also a sequence of the headers of each row.

    Raises ``ValueError`` for a column of another length.
    """

    __slots__ = ("_rows", "columns")

    def __init__(self, columns: Sequence[HeaderColumn], *, rows: int) -> None:
        for each in columns:
            if each.values is not None and len(each.values) != rows:
                raise ValueError(f"The header {each.key!r} has {len(each.values)} of {rows} rows.")
        self.columns = tuple(columns)
        self._rows = rows

    def __len__(self) -> int:
        return self._rows

    @overload
    def __getitem__(self, index: int) -> Headers: ...
    @overload
    def __getitem__(self, index: slice) -> HeaderColumns: ...
    def __getitem__(self, index: int | slice) -> Headers | HeaderColumns:
        """The headers of one row, or of consecutive rows, without copying."""
        if isinstance(index, slice):
            start, stop, step = index.indices(self._rows)
            if step != 1:
                raise ValueError("Headers can only be sliced into consecutive rows.")
            length = max(0, stop - start)
            return HeaderColumns([one.slice(start, length) for one in self.columns], rows=length)
        row = range(self._rows)[index]
        return tuple(one.at(row) for one in self.columns)

    def take(self, rows: pa.Int64Array) -> HeaderColumns:
        """The headers of *rows*, in their order."""
        return HeaderColumns([one.take(rows) for one in self.columns], rows=len(rows))


def taken_headers(headers: Sequence[Headers], rows: pa.Int64Array) -> Sequence[Headers]:
    """The *headers* of *rows*, in their order; columns stay columns."""
    if isinstance(headers, HeaderColumns):
        return headers.take(rows)
    return [headers[row] for row in rows.to_pylist()]
