"""Records as Arrow columns: the form in which they travel from the extractor to the producer."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from headrace.connect.header_columns import taken_headers
from headrace.connect.partition import (
    OffsetValue,
    SourcePartition,
    as_partition,
    checked_values,
)
from headrace.connect.record import Headers
from headrace.connect.schema import Schema


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOffsets:
    """The source offset of every row: what all rows share, and int64 columns for what moves.

    A column holds one non-null value per row. Raises ``TypeError`` or ``ValueError`` for what an offset
    cannot hold.
    """

    constant: Mapping[str, OffsetValue] = field(default_factory=dict[str, OffsetValue])
    columns: Mapping[str, pa.Int64Array] = field(default_factory=dict[str, pa.Int64Array])

    def __post_init__(self) -> None:
        checked_values(self.constant, "source offset")
        for name, column in self.columns.items():
            if column.type != pa.int64() or column.null_count:
                raise TypeError(f"The offset column {name!r} must be int64 without nulls.")

    def at(self, row: int) -> dict[str, OffsetValue]:
        """The source offset of *row*, counted from 0; negative rows count from the end."""
        index = row if row >= 0 else self._rows() + row
        moving = {name: column[index].as_py() for name, column in self.columns.items()}
        return {**self.constant, **moving}

    def slice(self, start: int, length: int) -> BatchOffsets:
        """The offsets of *length* rows from *start*, without copying."""
        cut = {name: column.slice(start, length) for name, column in self.columns.items()}
        return BatchOffsets(constant=self.constant, columns=cut)

    def take(self, rows: pa.Int64Array) -> BatchOffsets:
        """The offsets of *rows*, in their order."""
        taken = {name: column.take(rows) for name, column in self.columns.items()}
        return BatchOffsets(constant=self.constant, columns=taken)

    def _rows(self) -> int:
        return next((len(column) for column in self.columns.values()), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBatch:
    """Rows of one topic, one value schema and one source partition, in order.

    *values* has the Arrow type of *value_schema*; without a schema it is a column of strings, bytes,
    numbers, booleans or :data:`~headrace.connect.schema.JSON_DOCUMENT`. *keys* likewise. *headers* holds
    one entry per row; where all rows have the same headers,
    :class:`~headrace.connect.header_columns.HeaderColumns` cost far less. *timestamps* is a column of
    milliseconds since 1970, one number for all rows, or ``None`` for the time of sending. *partition* is
    the Kafka partition of all rows, or ``None``. *offsets* of ``None`` remove what is stored for the source
    partition. Another mapping, given as *source_partition*, becomes a :class:`SourcePartition`.

    Its size is not limited here; those who make it limit its bytes and rows. A null value is a
    tombstone. Raises ``ValueError`` when columns differ in length, and ``TypeError`` for what is not a column.
    """

    topic: str
    values: pa.Array
    source_partition: SourcePartition
    offsets: BatchOffsets | None
    value_schema: Schema | None = None
    keys: pa.Array | None = None
    key_schema: Schema | None = None
    headers: Sequence[Headers] | None = None
    timestamps: pa.Int64Array | int | None = None
    partition: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_partition", as_partition(self.source_partition))
        _check_column("values", self.values)
        if self.keys is not None:
            _check_column("keys", self.keys)
        _check_timestamps(self.timestamps)
        columns = dict[str, Sequence[object] | pa.Array | None](
            keys=self.keys,
            headers=self.headers,
            timestamps=self.timestamps if isinstance(self.timestamps, pa.Array) else None,
            **{f"offsets[{name}]": column for name, column in self._offset_columns()},
        )
        for name, column in columns.items():
            if column is not None and len(column) != len(self.values):
                raise ValueError(
                    f"A batch has {len(self.values)} values but {len(column)} of its {name}."
                )

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Bytes of the values and keys, as Arrow counts them."""
        return self.values.nbytes + (self.keys.nbytes if self.keys is not None else 0)

    def offset_at(self, row: int) -> dict[str, OffsetValue] | None:
        """The source offset of *row*, counted from 0; negative rows count from the end."""
        return None if self.offsets is None else self.offsets.at(row)

    def slice(self, start: int, length: int) -> SourceBatch:
        """*length* rows from *start*, without copying."""
        stamps = self.timestamps
        return dataclasses.replace(
            self,
            values=self.values.slice(start, length),
            offsets=None if self.offsets is None else self.offsets.slice(start, length),
            keys=None if self.keys is None else self.keys.slice(start, length),
            headers=None if self.headers is None else self.headers[start : start + length],
            timestamps=stamps if isinstance(stamps, int | None) else stamps.slice(start, length),
        )

    def take(self, rows: pa.Int64Array) -> SourceBatch:
        """The rows with the numbers *rows*, in their order; a copy."""
        stamps = self.timestamps
        return dataclasses.replace(
            self,
            values=self.values.take(rows),
            offsets=None if self.offsets is None else self.offsets.take(rows),
            keys=None if self.keys is None else self.keys.take(rows),
            headers=None if self.headers is None else taken_headers(self.headers, rows),
            timestamps=stamps if isinstance(stamps, int | None) else stamps.take(rows),
        )

    def _offset_columns(self) -> Iterable[tuple[str, pa.Int64Array]]:
        return () if self.offsets is None else self.offsets.columns.items()


def _check_column(name: str, column: object) -> None:
    if isinstance(column, pa.ChunkedArray):
        raise TypeError(f"The {name} of a batch are one pyarrow Array: call combine_chunks().")
    if not isinstance(column, pa.Array):
        raise TypeError(
            f"The {name} of a batch are a pyarrow Array, not {type(column).__name__!r}."
        )


def _check_timestamps(timestamps: object) -> None:
    # Kafka has no other unit, and a silent conversion from another one would be off by a factor of a thousand.
    if timestamps is None or type(timestamps) is int:
        return
    if not isinstance(timestamps, pa.Int64Array):
        raise TypeError(
            "The timestamps of a batch are milliseconds since 1970: one int, or an int64 column."
        )
