"""One split of a plan, read: a file or a range of one, as batches whose offsets can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from io import FileIO

import pyarrow as pa

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.partition import OffsetValue, SourceOffset
from headrace.connect.task import Split
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.formats import reading
from headrace.connectors.files.identity import same_object
from headrace.connectors.files.listing import HEAD_BYTES, FileSeen, look_at, seen
from headrace.connectors.files.progress import FILENAME, number
from headrace.connectors.files.topics import topic_of
from headrace.sources.extractors.blocks import BlockReader, Span
from headrace.sources.extractors.record_reader import Chunk, RecordReader, Resume
from headrace.sources.extractors.streams import Compression, open_stream

_RANGED = "from"


class SplitReader:
    """Reads one split from its offset to the end that was planned."""

    def __init__(self, split: Split, config: FilesConfig) -> None:
        self._split = split
        self._config = config
        self._details = SplitDetails.of(split.details)
        self._path = str(split.partition[FILENAME])
        self._packing = config.packing(self._path)
        self._topic = topic_of(config.topic, self._path)
        self._reader: RecordReader | None = None

    @property
    def packed(self) -> bool:
        """Whether the file is compressed, so that going on inside it means unpacking it from its beginning."""
        return self._packing is not Compression.NONE

    def open(self) -> bool:
        """Open the file; ``False`` when it is not the one that was planned, for the next plan to judge.

        Raises :class:`~headrace.connect.errors.TaskFailedError` or
        :class:`~headrace.connect.errors.RecordError` when it cannot be read.
        """
        framing, extractor = reading(self._path, self._config, self._split.offset)
        raw = self._raw()
        if raw is None:
            return False
        resume = self._resume()
        try:
            stream = open_stream(raw, self._packing, self._first_byte(resume))
        except RecordError as error:
            raw.close()
            raise error.located(self._path, f"before byte {resume.anchor}") from error
        blocks = BlockReader(
            stream,
            framing,
            span=self._span(resume),
            block_bytes=self._config.batch_max_bytes,
            max_row_bytes=self._config.max_line_bytes,
        )
        self._reader = RecordReader(
            blocks,
            extractor,
            native_key=self._path,
            resume=resume,
            max_rows=self._config.batch_max_rows,
            max_row_bytes=self._config.max_line_bytes,
        )
        return True

    def next_batches(self) -> list[SourceBatch] | None:
        """The next records; ``None`` after the last. Raises what :class:`RecordReader` raises."""
        chunk = self._opened().next_chunk()
        return None if chunk is None else list(self._batches(chunk))

    def end(self) -> SourceOffset | None:
        """After the last record: the offset that passes all there was, or ``None`` if it was cut short."""
        reader = self._opened()
        if reader.cut_short:
            return None
        moving = {"anchor": reader.position, "recordCount": reader.record_count}
        constants = {**self._constants(reader.extractor.constants()), **moving}
        return {**constants, "done": True} if self._whole(reader.position) else constants

    def close(self) -> None:
        """Close the file."""
        if self._reader is not None:
            self._reader.close()

    def _opened(self) -> RecordReader:
        if self._reader is None:
            raise RuntimeError("the split was not opened")
        return self._reader

    def _raw(self) -> FileIO | None:
        try:
            raw = FileIO(self._path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise TaskFailedError(
                f"{self._path}: It cannot be opened: {error.strerror}."
            ) from error
        head = raw.read(HEAD_BYTES)
        if self._is_planned(seen(self._path, os.fstat(raw.fileno()), head)):
            raw.seek(0)
            return raw
        raw.close()
        return None

    def _is_planned(self, file: FileSeen | None) -> bool:
        return (
            file is not None
            and same_object(file, self._details.version)
            and file.size >= self._details.size
        )

    def _resume(self) -> Resume:
        offset = self._split.offset
        count = number(offset, "recordCount")
        if offset is None or "anchor" not in offset:
            # An entry with only a count was set by a person, and means "skip so many records".
            return Resume(anchor=self._details.start, skip=count, record_count=count)
        return Resume(
            anchor=number(offset, "anchor"), skip=number(offset, "skip"), record_count=count
        )

    def _seeks(self, resume: Resume) -> bool:
        return self._details.seek and resume.anchor == self._details.start

    def _first_byte(self, resume: Resume) -> int:
        return resume.anchor - 1 if self._seeks(resume) else resume.anchor

    def _span(self, resume: Resume) -> Span:
        return Span(
            start=resume.anchor,
            stop=self._details.stop,
            limit=self._details.limit,
            take_tail=self._details.tail,
            seek_row=self._seeks(resume),
        )

    def _batches(self, chunk: Chunk) -> Iterator[SourceBatch]:
        """One batch; or two, when the last record is the one whose offset says that all was read."""
        constants = self._constants(chunk.constants)
        reader = self._opened()
        at_end = chunk.last and not reader.cut_short
        if not at_end or not self._whole(reader.position):
            yield self._batch(chunk, constants, rows=slice(None))
            return
        if len(chunk) > 1:
            yield self._batch(chunk, constants, rows=slice(0, -1))
        yield self._batch(chunk, {**constants, "done": True}, rows=slice(-1, None))

    def _batch(
        self, chunk: Chunk, constants: Mapping[str, OffsetValue], *, rows: slice
    ) -> SourceBatch:
        return SourceBatch(
            topic=self._topic,
            values=chunk.values[rows],
            value_schema=self._opened().extractor.value_schema,
            source_partition=self._split.partition,
            offsets=BatchOffsets(
                constant=constants,
                columns={
                    "recordCount": pa.array(chunk.counts[rows]),
                    "anchor": pa.array(chunk.anchors[rows]),
                },
            ),
        )

    def _constants(self, more: Mapping[str, OffsetValue]) -> dict[str, OffsetValue]:
        return {
            "skip": 0,
            "version": self._details.version,
            "size": self._details.size,
            "format": self._details.format,
            **more,
        }

    def _whole(self, position: int) -> bool:
        """Whether *position* is where this split's partition ends, and the file is still what it was."""
        details = self._details
        at_file_end = self._packing is not Compression.NONE or position >= details.size
        if _RANGED in self._split.partition:
            at_end = position >= (details.stop or 0) or (details.tail and at_file_end)
            return at_end and self._is_planned(look_at(self._path))
        if not details.settled or not details.tail or not at_file_end:
            return False
        file = look_at(self._path)
        return self._is_planned(file) and file is not None and file.size == details.size
