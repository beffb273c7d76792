"""What one split's records become: batches with their topic, headers, fields and offsets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.connect.task import Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.naming.destinations import Destinations
from headrace.connectors.files.opening import OpenedSplit
from headrace.connectors.files.progress import CLEANUP, PENDING, is_range, path_of
from headrace.connectors.files.records.facts import LAST
from headrace.connectors.files.records.fields import RecordFields, says_last_field
from headrace.connectors.files.records.headers import RecordHeaders, says_last
from headrace.connectors.files.records.schema import RecordSchema
from headrace.formats.chunk import Chunk
from headrace.formats.format import Format


class SplitBatches:
    """Makes the batches of *split*, whose file is of *form*, from the chunks that its reader gives."""

    def __init__(self, split: Split, config: FilesConfig, form: Format) -> None:
        path, has_bytes = path_of(split.partition), not form.sealed
        self._split = split
        self._config = config
        self._details = details = SplitDetails.of(split.details)
        self._goes_to = Destinations(config).of(path)
        self._headers = RecordHeaders(config.headers, path, details, has_bytes=has_bytes)
        self._schema = RecordSchema(config.schema_text, path)
        self._fields = RecordFields(config.fields, path, details, has_bytes=has_bytes)

    @property
    def topic(self) -> str:
        """Where the records go."""
        return self._goes_to.topic

    def of(
        self, chunk: Chunk, opened: OpenedSplit, *, done: Mapping[str, OffsetValue] | None
    ) -> Iterator[SourceBatch]:
        """One batch of *chunk*, which *opened* gave; or two, when its last record ends all there is.

        The offset of that one says *done* besides.
        """
        constants = self.constants(chunk.constants)
        moving = {
            "recordCount": pa.array(chunk.counts),
            "anchor": pa.array(chunk.anchors),
            "skip": pa.array(chunk.skips),
            **opened.fingerprints(chunk.anchors),
        }
        read = opened.reader.value_schema
        if done is None:
            yield self._batch(chunk, read, constants, moving, rows=slice(None))
            return
        if len(chunk) > 1:
            yield self._batch(chunk, read, constants, moving, rows=slice(0, -1))
        yield self._batch(chunk, read, {**constants, **done}, moving, rows=slice(-1, None))

    def saying_last(self, batch: SourceBatch) -> SourceBatch:
        """*batch*, of one record, saying that it is the last one of its file."""
        headers, values = batch.headers, batch.values
        if LAST in self._config.headers:
            headers = says_last(headers)
        if LAST in self._config.fields:
            values = says_last_field(values)
        return replace(batch, headers=headers, values=values)

    def constants(self, more: Mapping[str, OffsetValue]) -> dict[str, OffsetValue]:
        """What all offsets of the split say, with the *more* that its reader has to know."""
        return {
            "skip": 0,
            "version": self._details.version,
            "size": self._details.size,
            "format": self._details.format,
            **more,
        }

    def done(self) -> dict[str, OffsetValue]:
        """What the last offset says besides; what comes after the commit is done to whole files only."""
        if is_range(self._split.partition) or self._config.after_commit == "keep":
            return {"done": True}
        return {"done": True, CLEANUP: PENDING}

    def _batch(
        self,
        chunk: Chunk,
        read: Schema | None,
        constants: Mapping[str, OffsetValue],
        moving: Mapping[str, pa.Array],
        *,
        rows: slice,
    ) -> SourceBatch:
        goes_to = self._goes_to
        own, values = self._schema.of(read), self._schema.values(chunk.values[rows], read)
        values = self._fields.of(values, own, chunk, rows)
        return SourceBatch(
            topic=goes_to.topic,
            partition=goes_to.partition,
            keys=None if goes_to.key is None else pa.repeat(goes_to.key, len(values)),
            headers=self._headers.of(chunk, rows),
            values=values,
            value_schema=self._fields.schema(own),
            source_partition=self._split.partition,
            offsets=BatchOffsets(
                constant=constants,
                columns={key: column[rows] for key, column in moving.items()},
            ),
        )
