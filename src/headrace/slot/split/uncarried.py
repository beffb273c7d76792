"""A value that Spark's types have no place for: which one it is, and what to do; pure."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.slot.places import position_told, source_name
from headrace.slot.split.columns import reshaped

_ADVICE = "Correct it where it is read, or leave the field out before SparkSql, such as with ReplaceField and exclude."


def uncarried(
    batch: SourceBatch, noun: str, column: pa.Array, kind: pa.DataType
) -> TaskFailedError:
    """The error about the first value of *column*, the batch's *noun*, that cannot become one of *kind*.

    There is such a value.
    """
    row = _first(column, kind)
    path, error = _part(column.slice(row, 1), kind, ())
    source, what = (
        source_name(batch.source_partition),
        f"{'.'.join(path)} of {noun}" if path else noun,
    )
    return TaskFailedError(
        f"{source}, {position_told(batch.offset_at(row))}: {what} cannot be handed to Spark: {error}. {_ADVICE}"
    )


def _first(column: pa.Array, kind: pa.DataType) -> int:
    good, bad = 0, len(column)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _refusal(column.slice(good, middle - good), kind) is None:
            good = middle
        else:
            bad = middle
    return good


def _part(
    row: pa.Array, kind: pa.DataType, path: tuple[str, ...]
) -> tuple[tuple[str, ...], pa.ArrowInvalid | None]:
    """The path of the field of *row* that is refused, and why."""
    for name, part, wanted in _fields(row, kind):
        if _refusal(part, wanted) is not None:
            return _part(part, wanted, (*path, name))
    return path, _refusal(row, kind)


def _fields(row: pa.Array, kind: pa.DataType) -> Iterator[tuple[str, pa.Array, pa.DataType]]:
    if isinstance(row, pa.StructArray) and isinstance(kind, pa.StructType):
        # Not of the slice's children: they are whole.
        parts = row.flatten()
        yield from ((each.name, parts[index], each.type) for index, each in enumerate(kind))


def _refusal(values: pa.Array, kind: pa.DataType) -> pa.ArrowInvalid | None:
    try:
        reshaped(values, kind)
    except pa.ArrowInvalid as error:
        return error
    return None
