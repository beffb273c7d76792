"""The operand of a transformation: the key or the value of records, its required type, and its nulls."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Problem
from headrace.connect.errors import RecordError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.json_document import JSON_NULL
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema, SchemaType


@dataclass(frozen=True, slots=True)
class RecordPart:
    """The key or the value, of single records and of batches. Pure."""

    is_key: bool

    def value(self, record: SourceRecord) -> object:
        """The key or the value of *record*."""
        return record.key if self.is_key else record.value

    def schema(self, record: SourceRecord) -> Schema | None:
        """Its schema, if it has one."""
        return record.key_schema if self.is_key else record.value_schema

    def replaced(self, record: SourceRecord, schema: Schema | None, value: object) -> SourceRecord:
        """*record* with another key or value."""
        if self.is_key:
            return dataclasses.replace(record, key_schema=schema, key=value)
        return dataclasses.replace(record, value_schema=schema, value=value)

    def column(self, batch: SourceBatch) -> pa.Array | None:
        """The keys or values of *batch*; ``None`` when it has no keys."""
        return batch.keys if self.is_key else batch.values

    def column_schema(self, batch: SourceBatch) -> Schema | None:
        """The schema of the keys or values of *batch*, if they have one."""
        return batch.key_schema if self.is_key else batch.value_schema

    def replaced_column(
        self, batch: SourceBatch, schema: Schema | None, column: pa.Array
    ) -> SourceBatch:
        """*batch* with other keys or values, one for each row."""
        if self.is_key:
            return dataclasses.replace(batch, key_schema=schema, keys=column)
        return dataclasses.replace(batch, value_schema=schema, values=column)


KEY: Final = RecordPart(is_key=True)
VALUE: Final = RecordPart(is_key=False)


def required_struct(schema: Schema, value: object, purpose: str) -> Mapping[str, Any]:
    """*value* as a struct; raises :class:`~headrace.connect.errors.RecordError` for anything else."""
    if schema.type is SchemaType.STRUCT and isinstance(value, Mapping):
        return value
    raise RecordError(
        f"Only Struct objects supported for [{purpose}], found: {java_class(value, schema)}"
    )


def required_map(value: object, purpose: str) -> Mapping[Any, Any]:
    """*value* without schema as a map; raises :class:`~headrace.connect.errors.RecordError` for anything else."""
    if isinstance(value, Mapping):
        return value
    raise RecordError(
        f"Only Map objects supported in absence of schema for [{purpose}], found: {java_class(value)}"
    )


def required_name(key: object) -> str:
    """*key* of a map without schema; raises :class:`~headrace.connect.errors.RecordError` unless it is a string."""
    if isinstance(key, str):
        return key
    raise RecordError(f"A key of a map has to be a string, found: {java_class(key)}")


_CLASSES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "java.lang.Boolean"),
    ((int,), "java.lang.Long"),
    ((float,), "java.lang.Double"),
    ((str,), "java.lang.String"),
    ((bytes,), "[B"),
    ((Decimal,), "java.math.BigDecimal"),
    ((dt.date, dt.time), "java.util.Date"),
    ((Mapping,), "java.util.HashMap"),
    ((list, tuple), "java.util.ArrayList"),
)


def java_class(value: object, schema: Schema | None = None) -> str:
    """The name of Java's class of *value*, which may have a *schema*; ``null`` for no value. Pure."""
    if value is None or value is JSON_NULL:
        return "null"
    if schema is not None and schema.type is SchemaType.STRUCT:
        return "org.apache.kafka.connect.data.Struct"
    if schema is not None and schema.name is None and schema.type in _NARROW:
        return _NARROW[schema.type]
    return next(
        (name for kinds, name in _CLASSES if isinstance(value, kinds)), type(value).__name__
    )


_NARROW = {
    SchemaType.INT8: "java.lang.Byte",
    SchemaType.INT16: "java.lang.Short",
    SchemaType.INT32: "java.lang.Integer",
    SchemaType.FLOAT32: "java.lang.Float",
}


def runs(kinds: npt.NDArray[Any]) -> Iterator[tuple[int, int]]:
    """The start and the length of each run of equal *kinds*, one kind per row. Pure."""
    if not len(kinds):
        return
    starts = np.concatenate(([0], np.flatnonzero(kinds[1:] != kinds[:-1]) + 1))
    ends = np.append(starts[1:], len(kinds))
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        yield start, end - start


def is_absent(value: object) -> bool:
    """Whether *value* is null, the JSON document null included."""
    return value is None or value is JSON_NULL


def is_all_null(column: pa.Array | None) -> bool:
    """Whether all rows of *column* are null."""
    return column is None or column.null_count == len(column)


def where_present(
    batch: SourceBatch, column: pa.Array, changed: SourceBatch
) -> Sequence[SourceBatch]:
    """*changed* in the rows of *batch* whose *column* is not null, *batch* in the others.

    In runs of rows, because the two may have different schemas.
    """
    if not column.null_count:
        return [changed]
    present = column.is_valid().to_numpy(zero_copy_only=False)
    return [
        (changed if present[start] else batch).slice(start, length)
        for start, length in runs(present)
    ]


def with_headers(batch: SourceBatch, added: Sequence[HeaderColumn]) -> SourceBatch:
    """*batch* with one more header in every row for each column of *added*; columns stay columns. Pure."""
    rows = len(batch)
    if batch.headers is None or isinstance(batch.headers, HeaderColumns):
        there = () if batch.headers is None else batch.headers.columns
        return dataclasses.replace(batch, headers=HeaderColumns((*there, *added), rows=rows))
    new = HeaderColumns(added, rows=rows)
    headers = [(*batch.headers[row], *new[row]) for row in range(rows)]
    return dataclasses.replace(batch, headers=headers)


PAIR = 2
"""How many parts a pair has."""


def list_problems(key: str, names: tuple[str, ...], *, may_be_empty: bool) -> Iterator[Problem]:
    """What is wrong with *names*, the value of *key*. Pure."""
    if not names and not may_be_empty:
        yield (
            key,
            f"Configuration '{key}' must not be empty. Valid values include: any non-empty value",
        )
    elif "" in names:
        yield key, f"Configuration '{key}' values must not be empty."
    elif len(set(names)) < len(names):
        yield key, f"Configuration '{key}' values must not be duplicated."


def parts_of(pair: str) -> list[str]:
    """The parts of *pair* between colons, as Java splits it: without empty ones at the end."""
    return pair.rstrip(":").split(":")
