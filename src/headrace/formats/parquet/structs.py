"""Rows of a Parquet file as a column of structs, and the first row that cannot be one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.connect.arrow_types import conformed
from headrace.connect.errors import RecordError
from headrace.connect.schema import Schema, arrow_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The rows before the first one that is refused, and what is wrong with that."""

    values: pa.StructArray
    refused: RecordError | None


class ParquetStructs:
    """Makes structs of *schema* of the columns called *names*."""

    def __init__(self, names: Sequence[str], schema: Schema) -> None:
        self._names = names
        self._schema = schema
        self._kind = arrow_type(schema)

    def structs(self, rows: pa.RecordBatch) -> Found:
        """The structs of *rows*, which are not copied where their types are alike.

        Arrow takes over a file's strings unseen, so that every value is checked here.
        """
        try:
            return Found(values=self._made(rows), refused=None)
        except _RefusedError:
            # What is checked of a slice may be all that its buffers hold; a copy holds nothing else.
            copied = _copied(rows, 0, len(rows))
        if self._is_sound(copied):
            return Found(values=self._made(copied), refused=None)
        return self._up_to_bad(copied)

    def _made(self, rows: pa.RecordBatch) -> pa.StructArray:
        columns = list[pa.Array]()
        for name, each in zip(self._names, self._schema.fields, strict=True):
            try:
                column = rows.column(name)
                column.validate(full=True)
                columns.append(conformed(column, each.schema))
            except pa.ArrowException as error:
                raise _RefusedError(name, error) from error
        if not columns:
            return rows.select([]).to_struct_array()
        return pa.StructArray.from_arrays(columns, fields=list(self._kind))

    def _up_to_bad(self, rows: pa.RecordBatch) -> Found:
        start, stop = 0, len(rows)
        while stop - start > 1:
            middle = (start + stop) // 2
            if self._is_sound(_copied(rows, start, middle)):
                start = middle
            else:
                stop = middle
        values = self._made(_copied(rows, 0, start))
        try:
            self._made(_copied(rows, start, stop))
        except _RefusedError as error:
            return Found(values=values, refused=error.told())
        raise AssertionError("none of the rows is refused alone")

    def _is_sound(self, rows: pa.RecordBatch) -> bool:
        try:
            self._made(rows)
        except _RefusedError:
            return False
        return True


def _copied(rows: pa.RecordBatch, start: int, stop: int) -> pa.RecordBatch:
    return rows.take(pa.array(np.arange(start, stop)))


class _RefusedError(Exception):
    """A column of a batch holds something that cannot be taken over."""

    def __init__(self, column: str, error: Exception) -> None:
        super().__init__(column, error)
        self._column = column
        self._error = error

    def told(self) -> RecordError:
        reason = str(self._error).strip().split("\n")[0].rstrip(".")
        return RecordError(
            f"The value of column {self._column!r} is refused: {reason}.",
            advice="Correct the file, or leave the column out with parquet.columns.",
        )
