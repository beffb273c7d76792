"""Encodes source batches for sending: keys, values and headers through their converters."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import cast

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.converting import ColumnarHeaderConverter, Converter, HeaderConverter
from headrace.connect.errors import ConnectError, RecordError, TaskFailedError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.record import Headers
from headrace.kafka.sender import EncodedHeaders, EncodedRecords, RowsOrigin
from headrace.task.error_handling import RetryWithBackoff
from headrace.task.frames import Records


class Encoder:
    """Converts batches with one slot's converters; retriable errors are retried by *retrying*, if given.

    With *tells_origin* records know their source offsets, for a task that is told where they have landed.
    """

    def __init__(
        self,
        keys: Converter,
        values: Converter,
        headers: HeaderConverter,
        *,
        retrying: RetryWithBackoff | None = None,
        tells_origin: bool = False,
    ) -> None:
        self._keys = keys
        self._values = values
        self._headers = headers
        self._retrying = retrying
        self._tells_origin = tells_origin

    def encoded(self, batch: SourceBatch) -> EncodedRecords:
        """*batch* as bytes. Raises :class:`~headrace.connect.errors.RecordError` with the row that is refused.

        As in Kafka Connect, any exception of a converter is attributed to a record.
        """
        if self._retrying is None:
            return self._attempted(batch)
        return self._retrying.call(lambda: self._attempted(batch), lambda: Records(batch).begins_at)

    def _attempted(self, batch: SourceBatch) -> EncodedRecords:
        try:
            return self._encoded(batch)
        except ConnectError:
            raise
        except Exception as error:
            refused = self._first_refused(batch)
            if refused is None:
                raise
            raise refused from error

    def _first_refused(self, batch: SourceBatch) -> RecordError | None:
        """The error of the first row that is also refused on its own; ``None`` when there is no such row."""

        def fails(rows: int) -> int:
            return int(self._failure(batch.slice(0, rows)) is not None)

        row = bisect.bisect_left(range(1, len(batch)), 1, key=fails)
        error = self._failure(batch.slice(row, 1))
        if error is None:
            return None
        if isinstance(error, RecordError):
            return RecordError(error.reason, row=row, advice=error.advice)
        return RecordError(f"The converter raised {type(error).__name__}: {error}", row=row)

    def _failure(self, batch: SourceBatch) -> Exception | None:
        """The exception of a converter for *batch*, if it is about the rows; other errors are raised."""
        try:
            self._encoded(batch)
        except RecordError as error:
            return error
        except ConnectError:
            raise
        except Exception as error:  # noqa: BLE001 (authors write converters)
            return error
        return None

    def _encoded(self, batch: SourceBatch) -> EncodedRecords:
        return EncodedRecords(
            topic=batch.topic,
            partition=batch.partition,
            timestamps=batch.timestamps,
            origin=_origin(batch) if self._tells_origin else None,
            headers=self._encoded_headers(batch),
            keys=self._encoded_keys(batch),
            values=_checked(
                self._values,
                self._values.encode(batch.topic, batch.value_schema, batch.values),
                len(batch),
            ),
        )

    def refused_by(self, batch: SourceBatch) -> tuple[str, object]:
        """The stage (KIP-298) and the converter that refuse *batch*, for which :meth:`encoded` raised."""
        attempts = (
            ("HEADER_CONVERTER", self._headers, self._encoded_headers),
            ("KEY_CONVERTER", self._keys, self._encoded_keys),
        )
        for stage, converter, attempt in attempts:
            try:
                attempt(batch)
            except Exception:  # noqa: BLE001 (authors write converters)
                return stage, converter
        return "VALUE_CONVERTER", self._values

    def _encoded_keys(self, batch: SourceBatch) -> pa.BinaryArray | None:
        if batch.keys is None:
            return None
        encoded = self._keys.encode(batch.topic, batch.key_schema, batch.keys)
        return _checked(self._keys, encoded, len(batch))

    def _encoded_headers(self, batch: SourceBatch) -> list[EncodedHeaders] | None:
        if batch.headers is None:
            return None
        if isinstance(batch.headers, HeaderColumns):
            return self._encoded_columns(batch.topic, batch.headers)
        return [
            self._encoded_row(batch.topic, headers, row)
            for row, headers in enumerate(batch.headers)
        ]

    def _encoded_columns(self, topic: str, headers: HeaderColumns) -> list[EncodedHeaders]:
        if not headers.columns:
            return [()] * len(headers)
        columns = (self._encoded_column(topic, each, len(headers)) for each in headers.columns)
        return list(zip(*columns, strict=True))

    def _encoded_column(
        self, topic: str, column: HeaderColumn, rows: int
    ) -> Sequence[tuple[str, bytes | None]]:
        key, values = column.key, column.values
        if values is None:
            return [*self._encoded_row(topic, (column.at(0),), 0)] * rows if rows else []
        if not isinstance(self._headers, ColumnarHeaderConverter):
            return [
                self._encoded_row(topic, (column.at(row),), row)[0] for row in range(len(values))
            ]
        encoded = _checked(
            self._headers,
            self._headers.encode_headers(topic, key, column.schema, values),
            rows,
        )
        return [(key, each) for each in cast("list[bytes | None]", encoded.to_pylist())]

    def _encoded_row(self, topic: str, headers: Headers, row: int) -> EncodedHeaders:
        convert = self._headers.encode_header
        try:
            return [(header.key, convert(topic, header)) for header in headers]
        except RecordError as error:
            # A header converter sees one value; only here its row is known.
            raise RecordError(error.reason, row=row, advice=error.advice) from error


def _origin(batch: SourceBatch) -> RowsOrigin | None:
    columns = () if batch.offsets is None else tuple(batch.offsets.columns.values())
    return RowsOrigin(batch.source_partition, columns[0]) if len(columns) == 1 else None


def _checked(converter: object, encoded: pa.Array, rows: int) -> pa.BinaryArray:
    """*encoded*, which *converter* returned for *rows* rows; raises if its length differs: records would be lost."""
    if not isinstance(encoded, pa.Array):
        made = repr(type(encoded).__name__)
    elif not _is_binary(encoded.type) or len(encoded) != rows:
        made = f"{len(encoded)} of type {encoded.type}"
    else:
        return encoded
    raise TaskFailedError(
        f"{type(converter).__name__} returned {made} for {rows} values: return a BinaryArray with one element for each."
    )


def _is_binary(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
