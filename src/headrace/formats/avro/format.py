"""Avro object container files, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.formats.avro.container import BlockSource, read_header
from headrace.formats.avro.lost import LostRecordsError
from headrace.formats.avro.reader import AvroReader
from headrace.formats.avro.reader_schema import ReaderSchema, reader_schema_of
from headrace.formats.avro.search import FIRST_BLOCK, BlockSearch
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.damage import DamagedObjectError
from headrace.formats.exact_bytes import ExactBytes
from headrace.formats.format import ObjectInput, ReadLimits
from headrace.formats.streams import Compression, open_stream
from headrace.formats.unreadable import UnreadableRecordError

DEFAULT_BLOCK_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFormat:
    """Records of the schema in each file's header.

    An anchor is the byte at which a block begins, behind the sync marker before it; 0 means the first
    block. A span has the blocks that begin in it. No block may have more than *block_bytes*, packed or
    unpacked. A file may be packed as a whole, too; positions are then those of the unpacked file.
    """

    block_bytes: int = DEFAULT_BLOCK_BYTES
    splits: bool = True
    sealed: ClassVar[bool] = True
    packs_itself: ClassVar[bool] = True
    byte_anchors: ClassVar[bool] = True

    def signature(self) -> str:
        """See :class:`~headrace.formats.format.Format`; what else matters is in the file."""
        return "avro"

    def reader(
        self,
        source: ObjectInput,
        *,
        span: Span,
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> AvroReader:
        """See :class:`~headrace.formats.format.Format`."""
        try:
            return self._opened(
                source, span=span, resume=resume, limits=limits, constants=constants
            )
        except RecordError as error:
            source.raw.close()
            raise error.located(source.native_key, "byte 0") from error
        except BaseException:
            source.raw.close()
            raise

    def _opened(
        self,
        source: ObjectInput,
        *,
        span: Span,
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> AvroReader:
        stream = ExactBytes(open_stream(source.raw, source.compression, 0), limit=span.limit)
        header = read_header(stream)
        shape = reader_schema_of(header)
        search = BlockSearch(source.raw, header, most_bytes=self.block_bytes)
        told = {key: constants[key] for key in (FIRST_BLOCK,) if key in constants}
        if span.seek_row:
            first = search.first(
                span.start, span.stop, reads=lambda found: _reads(found, shape, limits)
            )
            blocks, told = search.blocks_at(first), search.told(first)
        elif span.stop is not None and resume.anchor >= span.stop:
            # Where no block begins in a range, its end is none either.
            blocks = search.blocks_at(resume.anchor)
        else:
            blocks = BlockSource(
                stream,
                header.sync,
                most_bytes=self.block_bytes,
                unpacked=source.compression is not Compression.NONE,
            )
            _start_at(blocks, resume.anchor, source.native_key)
        return AvroReader(
            blocks,
            shape,
            native_key=source.native_key,
            resume=resume,
            limits=limits,
            span=span,
            constants=told,
        )


def _reads(blocks: BlockSource, shape: ReaderSchema, limits: ReadLimits) -> bool:
    """Whether the next of *blocks* is sound; a record of it that fits no Connect type does not count."""
    reader = AvroReader(
        blocks,
        shape,
        native_key="",
        resume=Resume(),
        limits=limits,
        span=Span(stop=blocks.position + 1),
        constants={},
    )
    while True:
        try:
            if reader.next_chunk() is None:
                return reader.place.record_count > 0
        except (LostRecordsError, DamagedObjectError):
            return False
        except UnreadableRecordError:
            continue


def _start_at(blocks: BlockSource, anchor: int, native_key: str) -> None:
    if not anchor:
        return
    try:
        blocks.start_at(anchor)
    except RecordError as error:
        raise TaskFailedError(str(error.located(native_key, f"byte {anchor}"))) from error
