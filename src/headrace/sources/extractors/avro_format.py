"""Avro object container files, block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.sources.extractors.avro_codecs import codec_named
from headrace.sources.extractors.avro_columns import column_of
from headrace.sources.extractors.avro_container import BlockSource, Header, read_header
from headrace.sources.extractors.avro_reader import AvroReader, AvroShape
from headrace.sources.extractors.avro_schema import connect_schema
from headrace.sources.extractors.avro_types import parsed
from headrace.sources.extractors.blocks import Span
from headrace.sources.extractors.chunk import Resume
from headrace.sources.extractors.exact_bytes import ExactBytes
from headrace.sources.extractors.format import ObjectInput, ReadLimits
from headrace.sources.extractors.streams import open_stream

DEFAULT_BLOCK_BYTES: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFormat:
    """Records of the schema in each file's header.

    An anchor is the byte at which a block begins, behind the sync marker before it; 0 means the first
    block. No block may have more than *block_bytes*, packed or unpacked. A file may be packed as a whole,
    too; positions are then those of the unpacked file.
    """

    block_bytes: int = DEFAULT_BLOCK_BYTES
    splits: bool = False
    sealed: ClassVar[bool] = True
    packs_itself: ClassVar[bool] = True

    def signature(self) -> str:
        """See :class:`~headrace.sources.extractors.format.Format`; what else matters is in the file."""
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
        """See :class:`~headrace.sources.extractors.format.Format`."""
        try:
            return self._opened(source, span, resume, limits)
        except RecordError as error:
            source.raw.close()
            raise error.located(source.native_key, "byte 0") from error
        except BaseException:
            source.raw.close()
            raise

    def _opened(
        self, source: ObjectInput, span: Span, resume: Resume, limits: ReadLimits
    ) -> AvroReader:
        stream = ExactBytes(open_stream(source.raw, source.compression, 0), limit=span.limit)
        header = read_header(stream)
        shape = shape_of(header)
        blocks = BlockSource(stream, header.sync, most_bytes=self.block_bytes)
        if resume.anchor:
            try:
                blocks.start_at(resume.anchor)
            except RecordError as error:
                place = f"byte {resume.anchor}"
                raise TaskFailedError(str(error.located(source.native_key, place))) from error
        return AvroReader(
            blocks,
            shape,
            native_key=source.native_key,
            resume=resume,
            limits=limits,
            limit=span.limit,
        )


def shape_of(header: Header) -> AvroShape:
    """What *header* says about the records; raises ``RecordError``, without a place, when it makes no sense."""
    kind = parsed(header.schema)
    schema = connect_schema(kind)
    return AvroShape(
        schema=schema,
        column=column_of(kind, schema),
        least_bytes=kind.least_bytes,
        unpack=codec_named(header.codec),
    )
