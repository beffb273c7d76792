"""Headers of records as rows that SQL can look into, and back as they were; pure."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa

from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.json_document import document
from headrace.connect.record import Headers
from headrace.connect.schema import Schema
from headrace.slot.split.types import HEADER

# Of these every value comes back from its text as it was.
_EXACT = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
_COLUMN = pa.list_(HEADER)


@dataclass(frozen=True, slots=True)
class HeaderPlan:
    """One header of every row: the same *value* for all, or texts of values of the type *kind*."""

    key: str
    value: object
    kind: pa.DataType | None
    schema: Schema | None


HeadersPlan = tuple[HeaderPlan, ...] | str | None
"""How the headers of a batch travel: by columns, row by row in notes (``"rows"``), or there are none."""


def plan_of(headers: Sequence[Headers] | None) -> HeadersPlan:
    """How *headers* travel."""
    if headers is None:
        return None
    if not isinstance(headers, HeaderColumns):
        return "rows"
    kinds = [each.values.type for each in headers.columns if each.values is not None]
    if not all(any(is_one(kind) for is_one in _EXACT) for kind in kinds):
        return "rows"
    return tuple(
        HeaderPlan(
            each.key, each.value, None if each.values is None else each.values.type, each.schema
        )
        for each in headers.columns
    )


def shown(headers: Sequence[Headers] | None, plan: HeadersPlan, rows: int) -> pa.Array:
    """*headers*, which travel by *plan*, for SQL: each value as text, whatever it is."""
    if headers is None:
        return no_headers(rows)
    if isinstance(headers, HeaderColumns) and plan != "rows":
        return _by_columns(headers)
    texts = [[{"key": one.key, "value": _text(one.value)} for one in each] for each in headers]
    return pa.array(texts, _COLUMN)


def no_headers(rows: int) -> pa.Array:
    """An empty list for each row.

    Not nulls: for each of these Spark's side goes through all that precede it in its batch.
    """
    return pa.ListArray.from_arrays(
        pa.repeat(pa.scalar(0, pa.int32()), rows + 1), pa.nulls(0, HEADER)
    )


def notes(headers: Sequence[Headers] | None, plan: HeadersPlan, rows: int) -> pa.Array:
    """What has to travel besides, for each row."""
    if plan != "rows" or headers is None:
        return pa.nulls(rows, pa.binary())
    return pa.array([pickle.dumps(each) for each in headers], pa.binary())


def restored(plan: HeadersPlan, column: pa.Array, told: pa.Array) -> Sequence[Headers] | None:
    """The headers that *plan* says, of the rows of *column* and of the notes *told*."""
    if plan is None:
        return None
    if isinstance(plan, str):
        # Our own process has written them.
        return [cast("Headers", pickle.loads(each)) for each in told.to_pylist()]  # noqa: S301
    entries = cast("pa.StructArray", column.flatten())
    columns = [
        _column(each, entries.take(pa.array(np.arange(index, len(entries), len(plan)))))
        for index, each in enumerate(plan)
    ]
    return HeaderColumns(columns, rows=len(column))


def _column(plan: HeaderPlan, entries: pa.StructArray) -> HeaderColumn:
    if plan.kind is None:
        return HeaderColumn(key=plan.key, value=plan.value, schema=plan.schema)
    values = entries.field("value").cast(plan.kind)
    return HeaderColumn(key=plan.key, values=values, schema=plan.schema)


def _by_columns(headers: HeaderColumns) -> pa.Array:
    rows, width = len(headers), len(headers.columns)
    borders = pa.array(np.arange(rows + 1, dtype=np.int32) * np.int32(width))
    if not width:
        return pa.ListArray.from_arrays(borders, pa.nulls(0, HEADER))
    keys = pa.array([each.key for each in headers.columns], pa.utf8())
    texts = pa.concat_arrays([_texts(each, rows) for each in headers.columns])
    of_columns = np.repeat(np.arange(width)[None, :], rows, axis=0).ravel()
    order = (np.arange(width)[None, :] * rows + np.arange(rows)[:, None]).ravel()
    entries = [keys.take(pa.array(of_columns)), texts.take(pa.array(order))]
    return pa.ListArray.from_arrays(
        borders, pa.StructArray.from_arrays(entries, fields=list(HEADER)), type=_COLUMN
    )


def _texts(column: HeaderColumn, rows: int) -> pa.Array:
    if column.values is not None:
        return column.values.cast(pa.utf8())
    return pa.repeat(pa.scalar(_text(column.value), pa.utf8()), rows)


def _text(value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    try:
        return document(value)
    except (TypeError, ValueError):
        return str(value)
