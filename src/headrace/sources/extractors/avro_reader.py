"""An Avro file, read in chunks of records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.sources.extractors.avro_block import AvroBlock, Taken, name_of
from headrace.sources.extractors.avro_codecs import Unpack
from headrace.sources.extractors.avro_columns import UNFIT, Column, Values
from headrace.sources.extractors.avro_container import BlockHead, BlockSource
from headrace.sources.extractors.avro_datums import DatumReader
from headrace.sources.extractors.chunk import Chunk, Resume, numbered
from headrace.sources.extractors.damage import DamagedObjectError
from headrace.sources.extractors.format import ReadLimits
from headrace.sources.extractors.rows import Places
from headrace.sources.extractors.unpacking import BROKEN
from headrace.sources.extractors.unreadable import Unread, UnreadableRecordError

# So many records become Arrow at a time: more of them as Python objects keep the garbage collector busy.
_PIECE = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroShape:
    """What an object's header says about all its records. *least_bytes* is what a record takes at least."""

    schema: Schema
    column: Column
    least_bytes: int
    unpack: Unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """A part of a chunk."""

    values: pa.Array
    anchors: Places
    skips: Places
    counts: Places


class AvroReader:
    """An ``ObjectReader`` of *blocks*, which begin at *resume*'s anchor, and there are none from *limit* on.

    It holds one unpacked block, and of its records as Python objects only those of one chunk.
    """

    def __init__(
        self,
        blocks: BlockSource,
        shape: AvroShape,
        *,
        native_key: str,
        resume: Resume,
        limits: ReadLimits,
        limit: int | None,
    ) -> None:
        self._blocks = blocks
        self._shape = shape
        self._native_key = native_key
        self._limits = limits
        self._limit = limit
        self._datums = DatumReader(shape.column)
        self._skip = resume.skip
        self._count = self._read = resume.record_count - resume.skip
        self._block: AvroBlock | None = None
        self._rest: Taken | None = None
        self._refused: RecordError | None = None
        self._failure: DamagedObjectError | None = None

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.sources.extractors.object_reader.ObjectReader`."""
        return self._shape.schema

    @property
    def place(self) -> Resume:
        """See :class:`~headrace.sources.extractors.object_reader.ObjectReader`."""
        return Resume(anchor=self._blocks.position, record_count=self._count)

    @property
    def cut_short(self) -> bool:
        """See :class:`~headrace.sources.extractors.object_reader.ObjectReader`."""
        return self._limit is not None and self._blocks.position < self._limit

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.sources.extractors.object_reader.ObjectReader`; the header is read anew."""
        return {}

    def close(self) -> None:
        """See :class:`~headrace.sources.extractors.object_reader.ObjectReader`."""
        self._blocks.close()

    def next_chunk(self) -> Chunk | None:
        """See :class:`~headrace.sources.extractors.object_reader.ObjectReader`."""
        pieces = self._pieces() if self._refused is None else []
        if pieces:
            return self._chunk(pieces)
        error, self._refused = self._refused or self._failure, None
        if error is not None:
            raise error
        return None

    def _pieces(self) -> list[_Piece]:
        """The next records, in small pieces, up to what a chunk may hold or what is refused."""
        pieces = list[_Piece]()
        rows, size = self._limits.rows, self._limits.chunk_bytes
        while rows > 0 and size > 0 and self._refused is None:
            taken = self._rest or self._take(rows, size)
            if taken is None:
                break
            piece = self._built(taken)
            if len(piece.values):
                pieces.append(piece)
            rows -= len(piece.values)
            size -= piece.values.nbytes
        return pieces

    def _take(self, rows: int, size: int) -> Taken | None:
        """Some records that were not read before; ``None`` at the end, or after a failure."""
        while (block := self._open_block()) is not None:
            share = max(1, size * block.left // max(1, block.left_bytes))
            taken, reason = block.take(min(rows, share, _PIECE), self._datums)
            self._read += len(taken)
            if reason is not None:
                place = f"{block.next_name()} (record {self._read + 1})"
                damage = RecordError(
                    f"This record cannot be read: {reason}.",
                    native_key=self._native_key,
                    position=place,
                    advice=BROKEN,
                )
                self._failure = DamagedObjectError(damage)
            passed = min(self._skip, len(taken))
            self._skip -= passed
            self._count += passed
            if passed < len(taken):
                return taken.behind(passed)
        return None

    def _open_block(self) -> AvroBlock | None:
        """The block that records are to be taken from; ``None`` at the end, or after a failure."""
        try:
            while self._failure is None:
                if self._block is not None and self._block.left:
                    return self._block
                self._block = None
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
        try:
            return AvroBlock(
                head,
                self._shape.unpack(packed, self._blocks.most_bytes),
                end=self._blocks.position,
                least_bytes=self._shape.least_bytes,
            )
        except RecordError as error:
            raise error.located(self._native_key, f"byte {head.position}") from error

    def _built(self, taken: Taken) -> _Piece:
        """The column of the values that fit, before the first that does not; that one is refused."""
        build = self._shape.column.build
        self._rest = None
        first = self._count + 1
        try:
            values = build(taken.values)
        except UNFIT:
            good, reason = _first_unfit(build, taken.values)
            self._refuse(taken, good, reason)
            values = build(taken.values[:good])
        self._count += len(values) + (self._refused is not None)
        return _Piece(
            values=values,
            anchors=taken.anchors[: len(values)],
            skips=taken.skips[: len(values)],
            counts=numbered(first, len(values)),
        )

    def _refuse(self, taken: Taken, index: int, reason: str) -> None:
        """Remember why record *index* of *taken* is refused, and what comes behind it."""
        assert self._block is not None
        start, number = int(taken.starts[index]), int(taken.numbers[index])
        count = self._count + index + 1
        self._refused = UnreadableRecordError(
            f"This record does not fit its schema: {reason}.",
            native_key=self._native_key,
            position=f"{name_of(start, number)} (record {count})",
            advice="Write the file anew from what it was made of.",
            record=Unread(
                behind=Resume(
                    anchor=int(taken.anchors[index]),
                    skip=int(taken.skips[index]),
                    record_count=count,
                ),
                reference={"block": start, "record": number},
                raw=self._block.raw(number, self._datums),
            ),
        )
        rest = taken.behind(index + 1)
        self._rest = rest if len(rest) else None

    def _chunk(self, pieces: Sequence[_Piece]) -> Chunk:
        return Chunk(
            values=pa.concat_arrays([each.values for each in pieces]),
            anchors=np.concatenate([each.anchors for each in pieces]),
            skips=np.concatenate([each.skips for each in pieces]),
            counts=np.concatenate([each.counts for each in pieces]),
            constants={},
            last=self._at_end(),
        )

    def _at_end(self) -> bool:
        if self._rest is not None or self._refused is not None:
            return False
        return self._open_block() is None and self._failure is None


def _first_unfit(build: Callable[[Values], pa.Array], values: Values) -> tuple[int, str]:
    """The index of the first of *values* that *build* refuses, as it does one of them, and why."""
    low, high, reason = 0, len(values), ""
    while high - low > 1 or not reason:
        middle = max(low + 1, (low + high) // 2)
        try:
            build(values[low:middle])
            low = middle
        except UNFIT as error:
            high, reason = middle, str(error)
    return low, reason
