"""Bytes: an object in pieces of at most so many bytes, each a record."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import BYTES, Schema
from headrace.formats.blocks import Span
from headrace.formats.chunk import Chunk, Resume, numbered
from headrace.formats.damage import DamagedObjectError
from headrace.formats.format import ObjectInput, ReadLimits
from headrace.formats.streams import (
    ByteStream,
    Compression,
    open_stream,
    skipped,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytesFormat:
    """Pieces of *record_bytes*; only the last one of an object may be shorter, and none is empty."""

    record_bytes: int
    splits: bool = False
    sealed: ClassVar[bool] = True
    packs_itself: ClassVar[bool] = False
    byte_anchors: ClassVar[bool] = True

    def signature(self) -> str:
        """See :class:`~headrace.formats.format.Format`: pieces of another size are others."""
        return f"bytes {self.record_bytes}"

    def reader(
        self,
        source: ObjectInput,
        *,
        span: Span,
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> BytesReader:
        """See :class:`~headrace.formats.format.Format`."""
        try:
            stream, first = self._opened(source, resume)
        except RecordError as error:
            source.raw.close()
            place = f"before byte {resume.anchor + resume.skip * self.record_bytes}"
            raise error.located(source.native_key, place) from error
        return BytesReader(
            stream,
            native_key=source.native_key,
            resume=Resume(anchor=first, record_count=resume.record_count),
            record_bytes=self.record_bytes,
            chunk_records=max(1, min(limits.rows, limits.chunk_bytes // self.record_bytes)),
            limit=span.limit,
        )

    def _opened(self, source: ObjectInput, resume: Resume) -> tuple[ByteStream, int]:
        """The bytes behind the pieces that are skipped, and where these end.

        Whoever only counts pieces does not know by how much the last one is shorter.
        """
        left_out = resume.skip * self.record_bytes
        if source.compression is not Compression.NONE or not source.raw.seekable():
            stream = open_stream(source.raw, source.compression, resume.anchor)
            return stream, resume.anchor + skipped(stream, left_out)
        first = resume.anchor
        if left_out:
            first = max(first, min(first + left_out, source.raw.seek(0, os.SEEK_END)))
        return open_stream(source.raw, source.compression, first), first


class BytesReader:
    """An ``ObjectReader`` of *stream*, which begins at *resume*'s anchor. There are no bytes from *limit* on."""

    value_schema: Schema | None = BYTES

    def __init__(
        self,
        stream: ByteStream,
        *,
        native_key: str,
        resume: Resume,
        record_bytes: int,
        chunk_records: int,
        limit: int | None,
    ) -> None:
        self._stream = stream
        self._native_key = native_key
        self._place = resume
        self._record_bytes = record_bytes
        self._buffer = bytearray(chunk_records * record_bytes)
        self._limit = limit
        self._failure: RecordError | None = None

    @property
    def place(self) -> Resume:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._place

    @property
    def cut_short(self) -> bool:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._limit is not None and self._place.anchor < self._limit

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return {}

    def next_chunk(self) -> Chunk | None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        if self._failure is not None:
            raise DamagedObjectError(self._failure)
        used = self._fill()
        if self._failure is not None:
            # What is damaged has no end: a piece of it would not be the piece of a whole object.
            used -= used % self._record_bytes
        if not used:
            if self._failure is not None:
                raise DamagedObjectError(self._failure)
            return None
        return self._chunk(used)

    def close(self) -> None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        self._stream.close()

    def _fill(self) -> int:
        target = memoryview(self._buffer)
        left = None if self._limit is None else self._limit - self._place.anchor
        room = len(target) if left is None else min(len(target), left)
        used = 0
        while used < room:
            try:
                count = self._stream.read_into(target[used:room])
            except RecordError as error:
                place = f"byte {self._place.anchor + used}"
                self._failure = error.located(self._native_key, place)
                break
            if not count:
                break
            used += count
        return used

    def _chunk(self, used: int) -> Chunk:
        ends = np.append(np.arange(self._record_bytes, used, self._record_bytes), used)
        borders = np.concatenate(([0], ends)).astype(np.int32)
        values = pa.Array.from_buffers(
            pa.binary(),
            len(ends),
            [None, pa.py_buffer(borders), pa.py_buffer(bytes(self._buffer[:used]))],
        )
        before = self._place
        self._place = Resume(
            anchor=before.anchor + used, record_count=before.record_count + len(ends)
        )
        return Chunk(
            values=values,
            anchors=ends.astype(np.int64) + before.anchor,
            skips=np.zeros(len(ends), np.int64),
            counts=numbered(before.record_count + 1, len(ends)),
            constants={},
            last=self._limit is not None and self._place.anchor >= self._limit,
        )
