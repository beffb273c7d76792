"""A source batch into what is sent: keys, values and headers through their converters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.converting import ColumnarHeaderConverter, Converter, HeaderConverter
from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.record import Headers
from headrace.kafka.sender import EncodedHeaders, EncodedRecords
from headrace.slot.frames import Records
from headrace.slot.retrying import Retrying


class Encoder:
    """Converts batches with one slot's converters; what may pass is tried again as *retrying* says, if at all."""

    def __init__(
        self,
        keys: Converter,
        values: Converter,
        headers: HeaderConverter,
        *,
        retrying: Retrying | None = None,
    ) -> None:
        self._keys = keys
        self._values = values
        self._headers = headers
        self._retrying = retrying

    def encoded(self, batch: SourceBatch) -> EncodedRecords:
        """*batch* as bytes. Raises :class:`~headrace.connect.errors.RecordError` with its row."""
        if self._retrying is None:
            return self._encoded(batch)
        return self._retrying.call(lambda: self._encoded(batch), lambda: Records(batch).begins_at)

    def _encoded(self, batch: SourceBatch) -> EncodedRecords:
        return EncodedRecords(
            topic=batch.topic,
            partition=batch.partition,
            timestamps=batch.timestamps,
            headers=self._encoded_headers(batch),
            keys=self._encoded_keys(batch),
            values=self._values.encode(batch.topic, batch.value_schema, batch.values),
        )

    def refused_by(self, batch: SourceBatch) -> tuple[str, object]:
        """The stage (KIP-298) and the converter that refuse *batch*, which :meth:`encoded` did."""
        attempts = (
            ("HEADER_CONVERTER", self._headers, self._encoded_headers),
            ("KEY_CONVERTER", self._keys, self._encoded_keys),
        )
        for stage, converter, attempt in attempts:
            try:
                attempt(batch)
            except (RecordError, RetriableError):
                return stage, converter
        return "VALUE_CONVERTER", self._values

    def _encoded_keys(self, batch: SourceBatch) -> pa.BinaryArray | None:
        if batch.keys is None:
            return None
        return self._keys.encode(batch.topic, batch.key_schema, batch.keys)

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
        encoded = self._headers.encode_headers(topic, key, column.schema, values)
        return [(key, each) for each in cast("list[bytes | None]", encoded.to_pylist())]

    def _encoded_row(self, topic: str, headers: Headers, row: int) -> EncodedHeaders:
        convert = self._headers.encode_header
        try:
            return [(header.key, convert(topic, header)) for header in headers]
        except RecordError as error:
            # A converter of headers sees one value; only here is it known whose it is.
            raise RecordError(error.reason, row=row, advice=error.advice) from error
