"""One item, read from where its entry says it goes on, as batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.partition import RECORD_COUNT, OffsetValue, SourceOffset, SourcePartition
from headrace.connect.reread_commands import ALL_ANEW
from headrace.formats.chunk import Chunk, Resume
from headrace.formats.damage import DamagedObjectError
from headrace.formats.format import ReadLimits
from headrace.formats.unreadable import UnreadableRecordError
from headrace.sources.destination import Destination
from headrace.sources.extractor import Extractor
from headrace.sources.item import Context, NativeItem
from headrace.sources.offset_entry import (
    ANCHOR,
    DONE,
    FORMAT,
    SKIP,
    VERSION,
    OffsetEntry,
)
from headrace.sources.quarantine import quarantine_rest


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemToRead:
    """An item, its context, entry and version, and what was stored about it, if anything was."""

    item: NativeItem[Any]
    context: Context[Any]
    entry: OffsetEntry
    version: str | None = None
    offset: SourceOffset | None = None

    @property
    def partition(self) -> SourcePartition:
        """The source partition of its records."""
        return self.entry.key.partition

    def place(self) -> Resume:
        """Where reading goes on. An entry with a count of its own passes over so many records."""
        count, anchor = self.entry.record_count, self._number(ANCHOR)
        if anchor is None or count != self._number(RECORD_COUNT):
            return Resume(skip=count, record_count=count)
        return Resume(anchor=anchor, skip=self._number(SKIP) or 0, record_count=count)

    def going_on_as(self, form: str) -> str:
        """*form*; raises ``TaskFailedError`` when the item was begun in another one, whose places differ."""
        begun = (self.offset or {}).get(FORMAT, form)
        if begun != form:
            raise TaskFailedError(
                f"{self.context.native_key}: It was read as {begun} up to record {self.entry.record_count} and "
                f"cannot go on as {form}. Take the change of the extractor's settings back; or {ALL_ANEW}."
            )
        return form

    def constants(self, form: str) -> dict[str, OffsetValue]:
        """What all offsets of its records say, read as *form*; raises what :meth:`going_on_as` does."""
        known = {} if self.version is None else {VERSION: self.version}
        return {**self.entry.own_offset(), **known, FORMAT: self.going_on_as(form)}

    def in_quarantine(
        self, damage: DamagedObjectError, form: str, *, topic: str | None
    ) -> RecordError:
        """*damage* as the task raises it, with an offset that says that nothing more is read of the item."""
        begun = {RECORD_COUNT: 0, ANCHOR: 0, SKIP: 0}
        return quarantine_rest(
            damage,
            self.partition,
            {**(self.offset or begun), **self.constants(form)},
            topic=topic,
            object_name=str(self.context.native_key),
            version=self.version,
        )

    def behind(self, offset: SourceOffset) -> ItemToRead:
        """The same item, to go on behind the record of that *offset*."""
        count = {RECORD_COUNT: offset[RECORD_COUNT]}
        entry = self.entry.from_properties({**self.entry.properties(), **count})
        return dataclasses.replace(self, offset=offset, entry=entry)

    def _number(self, name: str) -> int | None:
        value = (self.offset or {}).get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class ItemReader:
    """Reads one item; made again behind the last batch when the source failed."""

    def __init__(
        self,
        work: ItemToRead,
        extractor: Extractor,
        *,
        goes_to: Destination,
        limits: ReadLimits,
    ) -> None:
        self._work = work
        self._goes_to = goes_to
        self._constants = work.constants(extractor.signature())
        self._reader = extractor.reader(work.item, work.place(), limits, work.offset or {})

    def next_batch(self) -> SourceBatch | None:
        """The next records; ``None`` after the last. Raises what the extractor's reader raises.

        A :class:`~headrace.connect.errors.RecordError` tells the offset behind its record where there is one.
        """
        try:
            chunk = self._reader.next_chunk()
        except UnreadableRecordError as error:
            raise self._passed(error) from error
        return None if chunk is None else self._batch(chunk)

    def end(self) -> SourceOffset:
        """After the last record: the offset that says that all was read."""
        offset = self._offset(self._reader.place, self._reader.constants())
        return {**offset, DONE: True}

    def close(self) -> None:
        """Close the item's stream."""
        self._reader.close()

    def _passed(self, error: UnreadableRecordError) -> RecordError:
        """*error* with the offset behind its record."""
        return error.with_offset(
            self._work.partition,
            self._offset(error.record.behind, error.record.constants),
            topic=self._goes_to.topic or None,
            version=self._constants.get(VERSION),
        )

    def _offset(self, place: Resume, constants: Mapping[str, OffsetValue]) -> SourceOffset:
        return {
            **self._constants,
            **constants,
            RECORD_COUNT: place.record_count,
            ANCHOR: place.anchor,
            SKIP: place.skip,
        }

    def _batch(self, chunk: Chunk) -> SourceBatch:
        columns = {RECORD_COUNT: chunk.counts, ANCHOR: chunk.anchors, SKIP: chunk.skips}
        return SourceBatch(
            topic=self._goes_to.topic,
            partition=self._goes_to.partition,
            keys=None if self._goes_to.key is None else pa.array([self._goes_to.key] * len(chunk)),
            values=chunk.values,
            value_schema=self._reader.value_schema,
            source_partition=self._work.partition,
            offsets=BatchOffsets(
                constant={**self._constants, **chunk.constants},
                columns={name: pa.array(column) for name, column in columns.items()},
            ),
        )
