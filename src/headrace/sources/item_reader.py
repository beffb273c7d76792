"""One item, read from where its entry says it goes on, as batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.sources.extractors.chunk import Chunk, Resume
from headrace.sources.extractors.extractor import Extractor
from headrace.sources.extractors.format import ReadLimits
from headrace.sources.item import Context, NativeItem
from headrace.sources.offset_entry import RECORD_COUNT, OffsetEntry

VERSION, DONE = "version", "done"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemToRead:
    """An item, its context and entry, and what was stored about it, if anything was."""

    item: NativeItem[Any]
    context: Context[Any]
    entry: OffsetEntry
    offset: SourceOffset | None = None

    @property
    def partition(self) -> SourcePartition:
        """The source partition of its records."""
        return self.entry.key.partition

    def place(self) -> Resume:
        """Where reading goes on. An entry with a count of its own passes over so many records."""
        count, anchor = self.entry.record_count, self._number("anchor")
        if anchor is None or count != self._number(RECORD_COUNT):
            return Resume(skip=count, record_count=count)
        return Resume(anchor=anchor, skip=self._number("skip") or 0, record_count=count)

    def behind(self, batch: SourceBatch) -> ItemToRead:
        """The same item, to go on behind *batch*."""
        offset = batch.offset_at(-1) or {}
        count = {RECORD_COUNT: offset[RECORD_COUNT]}
        entry = self.entry.from_properties({**self.entry.properties(), **count})
        return dataclasses.replace(self, offset=offset, entry=entry)

    def _number(self, name: str) -> int | None:
        value = (self.offset or {}).get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None


class ItemReader:
    """Reads one item; made again behind the last batch when the source failed."""

    def __init__(
        self, work: ItemToRead, extractor: Extractor, *, topic: str, limits: ReadLimits
    ) -> None:
        self._work = work
        self._topic = topic
        self._reader = extractor.reader(work.item, work.place(), limits, work.offset or {})
        self._constants = {**work.entry.own_offset(), **self._version()}

    def next_batch(self) -> SourceBatch | None:
        """The next records; ``None`` after the last. Raises what the extractor's reader raises."""
        chunk = self._reader.next_chunk()
        return None if chunk is None else self._batch(chunk)

    def end(self) -> SourceOffset:
        """After the last record: the offset that says that all was read."""
        place = self._reader.place
        return {
            **self._constants,
            **self._reader.constants(),
            RECORD_COUNT: place.record_count,
            "anchor": place.anchor,
            "skip": place.skip,
            DONE: True,
        }

    def close(self) -> None:
        """Close the item's stream."""
        self._reader.close()

    def _version(self) -> Mapping[str, OffsetValue]:
        version = self._work.item.version()
        return {} if version is None else {VERSION: version}

    def _batch(self, chunk: Chunk) -> SourceBatch:
        columns = {RECORD_COUNT: chunk.counts, "anchor": chunk.anchors, "skip": chunk.skips}
        return SourceBatch(
            topic=self._topic,
            partition=self._work.context.partition,
            values=chunk.values,
            value_schema=self._reader.value_schema,
            source_partition=self._work.partition,
            offsets=BatchOffsets(
                constant={**self._constants, **chunk.constants},
                columns={name: pa.array(column) for name, column in columns.items()},
            ),
        )
