"""Columns of Avro values that have no parts: how what is read of them becomes Arrow.

What is read are Python's values by fastavro (``build``), or Arrow's by a scan (``fitted``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Values = list[Any]
UNFIT = (ValueError, OverflowError, IndexError, TypeError)
"""What building a column raises for values that do not fit it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainColumn:
    """Values that Arrow takes as they are (as *read*), and turns into *arrow* with all its checks."""

    layout: Any
    read: pa.DataType
    arrow: pa.DataType

    def build(self, values: Values) -> pa.Array:
        """See :class:`~headrace.formats.avro.columns.Column`."""
        return self.fitted(pa.array(values, self.read))

    def fitted(self, column: pa.Array) -> pa.Array:
        """The column of what was read as Arrow has it, without nulls; raises as :meth:`build` does."""
        for kind in (self.read, self.arrow):
            column = column if column.type == kind else column.cast(kind)
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class EnumColumn:
    """Symbols, read as their indexes."""

    symbols: pa.StringArray
    layout: Any = "int"

    def build(self, values: Values) -> pa.Array:
        """See :class:`~headrace.formats.avro.columns.Column`."""
        return self.fitted(pa.array(values, pa.int32()))

    def fitted(self, column: pa.Array) -> pa.Array:
        """See :class:`PlainColumn`."""
        return self.symbols.take(column.cast(pa.int32()))


@dataclass(frozen=True, slots=True, kw_only=True)
class DecimalColumn:
    """Unscaled integers in bytes, the highest first."""

    layout: Any
    arrow: pa.Decimal128Type

    def build(self, values: Values) -> pa.Array:
        """See :class:`~headrace.formats.avro.columns.Column`."""
        return around_nulls(values, self._build)

    def fitted(self, column: pa.Array) -> pa.Array:
        """See :class:`PlainColumn`."""
        return self._build(column.to_pylist())

    def _build(self, values: Values) -> pa.Array:
        turned = b"".join(
            int.from_bytes(each, "big", signed=True).to_bytes(16, "little", signed=True)
            for each in values
        )
        column = pa.Array.from_buffers(self.arrow, len(values), [None, pa.py_buffer(turned)])
        column.validate(full=True)
        return column


LeafColumn = PlainColumn | EnumColumn | DecimalColumn


def around_nulls(values: Values, build: Callable[[Values], pa.Array]) -> pa.Array:
    """The column that *build* makes of what is not null, with the nulls put back between."""
    present = [each for each in values if each is not None]
    if len(present) == len(values):
        return build(values)
    known = np.fromiter((each is not None for each in values), np.bool_, len(values))
    return spread(build(present), known)


def spread(column: pa.Array, present: NDArray[np.bool_]) -> pa.Array:
    """*column*, which has only the values of rows that are *present*, with nulls in the other rows."""
    return column.take(pa.array(np.cumsum(present) - 1, mask=~present))
