"""The rows of a Parquet file, in chunks, from any row group on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.batch_rows import BatchRows
from headrace.formats.chunk import READ_ANEW, Chunk, Resume, numbered
from headrace.formats.format import ReadLimits
from headrace.formats.parquet.file import ParquetSource
from headrace.formats.parquet.structs import ParquetStructs
from headrace.formats.rows import Int64Array
from headrace.formats.unreadable import Unread, UnreadableRecordError


class ParquetReader:
    """An ``ObjectReader`` of *source* up to before the row group *stop*. Owns *source*.

    Reading inside a row group begins with reading and dropping what was read before; row groups before
    it are not touched. A damaged page ends the reading, because nothing behind it can be found; a value that
    no Connect type holds is a record of its own that is refused.
    """

    cut_short = False

    def __init__(
        self, source: ParquetSource, *, resume: Resume, stop: int, limits: ReadLimits
    ) -> None:
        groups = len(source.rows)
        if resume.anchor > groups:
            raise TaskFailedError(
                f"{source.native_key}: Its offset speaks of row group {resume.anchor}, but the file has "
                f"{groups}. {READ_ANEW}"
            )
        self.value_schema: Schema | None = source.schema
        self._source = source
        self._structs = ParquetStructs(source.names, source.schema)
        self._sizes = BatchRows(most=limits.rows, target_bytes=limits.chunk_bytes)
        self._stop = stop
        self._group = resume.anchor
        self._row = 0
        self._skip = resume.skip
        self._count = resume.record_count - resume.skip
        self._batches: Iterator[pa.RecordBatch] | None = None
        self._waiting: pa.RecordBatch | None = None
        self._error: Exception | None = None
        self._fatal: Exception | None = None

    @property
    def place(self) -> Resume:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return Resume(anchor=self._group, skip=self._row, record_count=self._count)

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return {}

    def next_chunk(self) -> Chunk | None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        while True:
            error, self._error = self._error or self._fatal, None
            if error is not None:
                raise error
            batch = self._waiting if self._waiting is not None else self._unread()
            if batch is None:
                return None
            chunk = self._chunk(batch)
            if chunk is not None:
                return chunk

    def close(self) -> None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        self._source.close()

    def _unread(self) -> pa.RecordBatch | None:
        """The next rows that were not read before, or ``None`` at the end."""
        while self._group < self._stop:
            rows = self._source.rows[self._group]
            if not self._row and self._skip >= rows:
                self._skip -= rows
                self._count += rows
                self._group += 1
                continue
            batch = self._read()
            dropped = min(self._skip, len(batch))
            self._skip -= dropped
            self._go_behind(dropped)
            if dropped < len(batch):
                return batch.slice(dropped)
        return None

    def _read(self) -> pa.RecordBatch:
        """The next batch of the row group, which has rows left."""
        try:
            if self._batches is None:
                self._sizes.expect(self._source.bytes_per_row(self._group))
                self._batches = self._source.batches(self._group, self._sizes.rows)
            self._source.read_at_once(self._sizes.rows)
            batch = next(self._batches, None)
            if not batch:
                rows = self._source.rows[self._group]
                raise pa.ArrowInvalid(f"it ends before the {rows} rows that its footer says")
        except (pa.ArrowException, OSError, OverflowError) as error:
            self._fatal = self._source.failure(self._where(), error)
            raise self._fatal from error
        self._sizes.seen(len(batch), batch.nbytes)
        return batch

    def _where(self) -> str:
        return f"row group {self._group}, row {self._row} (record {self._count + 1})"

    def _chunk(self, batch: pa.RecordBatch) -> Chunk | None:
        """The records that *batch* begins with; what is left of it waits."""
        found = self._structs.structs(batch.slice(0, self._sizes.fit(len(batch), batch.nbytes)))
        done = len(found.values)
        anchors, skips, counts = self._places(done)
        self._go_behind(done)
        if found.refused is not None:
            self._error = self._refuse(found.refused)
            done += 1
        self._waiting = batch.slice(done) if done < len(batch) else None
        if not len(found.values):
            return None
        return Chunk(
            values=found.values,
            anchors=anchors,
            skips=skips,
            counts=counts,
            constants={},
            last=self._error is None and not any(self._source.rows[self._group : self._stop]),
        )

    def _refuse(self, error: RecordError) -> UnreadableRecordError:
        """Go behind the row that *error* is about. What it was made of is spread over pages: it has no bytes."""
        where, reference = self._where(), {"rowGroup": self._group, "row": self._row}
        self._go_behind(1)
        return UnreadableRecordError(
            error.reason,
            native_key=self._source.native_key,
            position=where,
            advice=error.advice,
            record=Unread(behind=self.place, reference=reference),
        )

    def _places(self, count: int) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Anchor, skip and number of the next *count* records; behind a row group the next one begins."""
        anchors = np.full(count, self._group, np.int64)
        skips = numbered(self._row + 1, count)
        if count and self._row + count == self._source.rows[self._group]:
            anchors[-1] += 1
            skips[-1] = 0
        return anchors, skips, numbered(self._count + 1, count)

    def _go_behind(self, count: int) -> None:
        self._row += count
        self._count += count
        if self._row >= self._source.rows[self._group]:
            self._group, self._row = self._group + 1, 0
            self._batches = None
