"""An Avro file, read in chunks of records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.avro.block import AvroBlock, name_of
from headrace.formats.avro.chunk_parts import ChunkPart, first_unfit, joined_parts
from headrace.formats.avro.codecs import BlockTooLargeError
from headrace.formats.avro.container import BlockHead, BlockSource
from headrace.formats.avro.datums import PIECE, DatumReader
from headrace.formats.avro.leaves import UNFIT
from headrace.formats.avro.lost import LostRecords, LostRecordsError
from headrace.formats.avro.reader_schema import ReaderSchema
from headrace.formats.avro.scan import Scan
from headrace.formats.avro.taken import Built, RecordPositions, Scanned, Taken, joined
from headrace.formats.blocks import Span
from headrace.formats.chunk import Chunk, Resume, numbered
from headrace.formats.damage import DamagedObjectError
from headrace.formats.format import ReadLimits
from headrace.formats.unpacking import BROKEN
from headrace.formats.unreadable import Unread, UnreadableRecordError

_Records = TypeVar("_Records", Taken, Scanned, Taken | Built)


class AvroReader:
    """An ``ObjectReader`` of the *blocks* of *span*, from the one they are at on.

    *resume* tells what is skipped of them, and how many records came before; *constants* are part of every offset.
    It holds one unpacked block, in columns or places a few times its bytes, and as Python objects records of one chunk.
    """

    def __init__(
        self,
        blocks: BlockSource,
        shape: ReaderSchema,
        *,
        native_key: str,
        resume: Resume,
        limits: ReadLimits,
        span: Span,
        constants: Mapping[str, OffsetValue],
    ) -> None:
        self._blocks = blocks
        self._shape = shape
        self._native_key = native_key
        self._limits = limits
        self._constants = constants
        self._stop = span.stop
        self._least = span.limit if span.stop is None else span.stop
        self._datums = DatumReader(shape.column)
        self._skip = resume.skip
        self._count = self._read = resume.record_count - resume.skip
        self._block: AvroBlock | None = None
        self._waiting = list[Taken | Scanned]()
        self._refused: RecordError | None = None
        self._lost: LostRecordsError | None = None
        self._failure: DamagedObjectError | None = None

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._shape.schema

    @property
    def place(self) -> Resume:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return Resume(anchor=self._blocks.position, record_count=self._count)

    @property
    def cut_short(self) -> bool:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._least is not None and self._blocks.position < self._least

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.object_reader.ObjectReader`; the header is read again."""
        return self._constants

    def close(self) -> None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        self._blocks.close()

    def next_chunk(self) -> Chunk | None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        parts = self._parts() if self._refused is None else []
        if parts:
            return joined_parts(parts, constants=self._constants, last=self._at_end())
        if self._refused is None and self._lost is not None:
            self._count = self._lost.record.behind.record_count
            self._refused, self._lost = self._lost, None
        error, self._refused = self._refused or self._failure, None
        if error is not None:
            raise error
        return None

    def _parts(self) -> list[ChunkPart]:
        """The next records, in small parts, up to what a chunk may hold or what is refused."""
        parts = list[ChunkPart]()
        rows, size = self._limits.rows, self._limits.chunk_bytes
        while rows > 0 and size > 0 and self._refused is None:
            taken = self._waiting.pop() if self._waiting else self._take(rows, size)
            if taken is None:
                break
            part = self._built(taken)
            if len(part.values):
                parts.append(part)
            rows -= len(part.values)
            size -= part.size
        return parts

    def _take(self, rows: int, size: int) -> Taken | Scanned | Built | None:
        """Some records that were not taken before; ``None`` at the end, or after a failure."""
        scan = self._shape.scan
        scanned = self._scanned(scan, rows, size) if scan is not None else None
        return scanned or self._read_out(rows, size)

    def _scanned(self, scan: Scan, rows: int, size: int) -> Scanned | None:
        """The next records, of many blocks where these are small; ``None`` when the next must be read.

        What numpy and Arrow do for each call is then done once for a chunk, not for each block.
        """
        parts = list[Scanned]()
        while rows > 0 and size > 0 and (block := self._open_block()) is not None:
            share = size * block.left // (block.left_bytes + scan.column_bytes(block.left))
            part = block.scanned(max(1, min(rows, share, scan.portion())), scan)
            if part is None:
                break
            rest = self._not_skipped(part)
            rows -= len(rest)
            size -= rest.size
            if len(rest):
                parts.append(rest)
        return joined(parts) if parts else None

    def _read_out(self, rows: int, size: int) -> Taken | Built | None:
        """The next records, read one by one; ``None`` at the end, or after a failure."""
        while (block := self._open_block()) is not None:
            share = max(1, size * block.left // max(1, block.left_bytes))
            taken, reason = block.take(
                min(rows, share, PIECE), self._datums, scans=self._shape.scan is not None
            )
            rest = self._not_skipped(taken)
            if reason is not None:
                self._give_up(block, reason)
            if len(rest):
                return rest
        return None

    def _give_up(self, block: AvroBlock, reason: str) -> None:
        """Leave out what is left of *block*, or of the file where not even their number can be relied on."""
        damage = RecordError(f"This record cannot be read: {reason}.", advice=BROKEN)
        if not block.miscounted:
            self._lose(block.head, block.end, block.left, damage)
            return
        place = f"{block.next_name()} (record {self._read + 1})"
        self._failure = DamagedObjectError(damage.located(self._native_key, place))

    def _not_skipped(self, taken: _Records) -> _Records:
        """*taken*, which count as read, without those that are to be skipped."""
        self._read += len(taken)
        passed = min(self._skip, len(taken))
        self._skip -= passed
        self._count += passed
        return taken.behind(passed)

    def _open_block(self) -> AvroBlock | None:
        """The block that records are to be taken from; ``None`` at the end, or after a failure."""
        try:
            while self._failure is None and self._lost is None:
                if self._block is not None and self._block.left:
                    return self._block
                self._block = None
                if self._stop is not None and self._blocks.position >= self._stop:
                    return None
                head = self._blocks.next_head()
                if head is None:
                    return None
                self._block = self._opened(head)
        except RecordError as error:
            place = f"byte {self._blocks.position}"
            self._failure = DamagedObjectError(error.located(self._native_key, place))
        return None

    def _opened(self, head: BlockHead) -> AvroBlock | None:
        """The block of *head*; ``None`` when it is skipped as a whole."""
        if head.count and self._skip >= head.count:
            self._blocks.pass_over(head)
            self._skip -= head.count
            self._count += head.count
            self._read += head.count
            return None
        packed = self._blocks.payload(head)
        end, least = self._blocks.position, self._shape.least_bytes
        try:
            payload = self._unpacked(head, packed)
            return None if payload is None else AvroBlock(head, payload, end=end, least_bytes=least)
        except RecordError as error:
            raise error.located(self._native_key, f"byte {head.position}") from error

    def _unpacked(self, head: BlockHead, packed: bytes) -> bytes | None:
        """What *packed*, the bytes of the block of *head*, holds; ``None`` when its records are lost."""
        most = self._blocks.most_bytes
        try:
            return self._shape.unpack(packed, most)
        except RecordError as error:
            if isinstance(error, BlockTooLargeError) or not self._shape.may_be(head.count, most):
                raise
            self._lose(head, self._blocks.position, head.count, error)
            return None

    def _lose(self, head: BlockHead, end: int, count: int, damage: RecordError) -> None:
        """Go on behind the block of *head*; its last *count* records, if not skipped, are raised as *damage*."""
        self._block = None
        self._read += count
        lost = count - min(self._skip, count)
        self._skip -= count - lost
        self._count += count - lost
        if lost:
            told = LostRecords(
                head=head,
                end=end,
                count=lost,
                counted=self._read - lost,
                unpacked=self._blocks.unpacked,
            )
            self._lost = told.error(damage, self._native_key, self._constants)

    def _built(self, taken: Taken | Scanned | Built) -> ChunkPart:
        """The column of the records that fit, before the first that does not; that one is refused."""
        if isinstance(taken, Built):
            return self._part(taken.column, taken.positions, taken.column.nbytes)
        if isinstance(taken, Scanned):
            try:
                return self._part(taken.built(), taken.positions, taken.size)
            except UNFIT:
                if len(taken) > PIECE:
                    self._waiting.append(taken.behind(PIECE))
                taken = taken.read(PIECE, self._datums)
        return self._built_of(taken)

    def _built_of(self, taken: Taken) -> ChunkPart:
        build = self._shape.column.build
        try:
            values = build(taken.values)
        except UNFIT:
            good, reason = first_unfit(build, taken.values)
            self._refuse(taken, good, reason)
            values = build(taken.values[:good])
        return self._part(values, taken.positions, values.nbytes)

    def _part(self, values: pa.Array, positions: RecordPositions, size: int) -> ChunkPart:
        """The part of *values*; they count, and so does one that is refused."""
        first = self._count + 1
        self._count += len(values) + (self._refused is not None)
        return ChunkPart(
            values=values,
            size=max(size, values.nbytes),
            anchors=positions.anchors[: len(values)],
            skips=positions.skips[: len(values)],
            counts=numbered(first, len(values)),
        )

    def _refuse(self, taken: Taken, index: int, reason: str) -> None:
        """Remember why record *index* of *taken* is refused, and what comes behind it."""
        place = taken.positions
        start, number = int(place.starts[index]), int(place.numbers[index])
        count = self._count + index + 1
        self._refused = UnreadableRecordError(
            f"This record does not fit its schema: {reason}.",
            native_key=self._native_key,
            position=f"{name_of(start, number)} (record {count})",
            advice="Write the file again from what it was made of.",
            record=Unread(
                behind=Resume(
                    anchor=int(place.anchors[index]),
                    skip=int(place.skips[index]),
                    record_count=count,
                ),
                reference={"block": start, "record": number},
                raw=taken.raw(index, self._datums),
                constants=self._constants,
            ),
        )
        rest = taken.behind(index + 1)
        if len(rest):
            self._waiting.append(rest)

    def _at_end(self) -> bool:
        if self._waiting or self._refused is not None:
            return False
        return self._open_block() is None and self._failure is None and self._lost is None
