"""Formats whose records are rows of text: JSONL, CSV, plain lines."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.formats.blocks import BlockReader, Span, Words
from headrace.formats.byte_order_mark import UTF8
from headrace.formats.chunk import Resume
from headrace.formats.decoding import DecodingExtractor
from headrace.formats.format import ObjectInput, ReadLimits
from headrace.formats.line_framing import Framing
from headrace.formats.looking_ahead import Look, Sample, SampledStream
from headrace.formats.row_extractor import RowExtractor
from headrace.formats.row_reader import RowReader
from headrace.formats.streams import ByteStream, Compression, open_stream
from headrace.formats.text_encoding import TextEncoding


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFormat:
    """Rows as *framing* cuts them, understood by what *extractor* makes for each object.

    *extractor* is given the native key, the place where reading begins and the constants of its offset,
    with what *look* learns of the bytes there. *encoding* is that of the text, ``None`` for UTF-8.
    """

    name: str
    framing: Framing
    extractor: Callable[[str, Resume, Mapping[str, OffsetValue]], RowExtractor]
    look: Look | None = None
    encoding: TextEncoding | None = None
    splits: bool = True
    sealed: ClassVar[bool] = False
    packs_itself: ClassVar[bool] = False
    byte_anchors: ClassVar[bool] = True

    def signature(self) -> str:
        """See :class:`~headrace.formats.format.Format`."""
        return self.name if self.encoding is None else f"{self.name} {self.encoding.name}"

    def reader(
        self,
        source: ObjectInput,
        *,
        span: Span,
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> RowReader:
        """See :class:`~headrace.formats.format.Format`."""
        of = "" if source.compression is Compression.NONE else " of the unpacked text"
        try:
            first = resume.anchor - 1 if span.seek_row else resume.anchor
            stream = source.stream or open_stream(source.raw, source.compression, first)
            if self.look is not None and self.look.key not in constants:
                stream, learnt = _looked(
                    self.look, stream, span=span, resume=resume, constants=constants
                )
                constants = {**constants, **learnt}
            extractor = self.extractor(source.native_key, resume, constants)
            if self.encoding is not None:
                extractor = DecodingExtractor(extractor, self.encoding)
        except RecordError as error:
            source.raw.close()
            raise error.located(source.native_key, f"before byte {resume.anchor}{of}") from error
        except BaseException:
            source.raw.close()
            raise
        blocks = BlockReader(
            stream,
            self.framing,
            span=dataclasses.replace(span, start=resume.anchor),
            block_bytes=limits.chunk_bytes,
            max_row_bytes=limits.record_bytes,
            encoding=UTF8 if self.encoding is None else self.encoding.name,
            words=Words(of=of, limit_key=limits.record_key),
        )
        return RowReader(
            blocks,
            extractor,
            native_key=source.native_key,
            resume=resume,
            max_rows=limits.rows,
            max_row_bytes=limits.record_bytes,
        )


def _looked(
    look: Look,
    stream: ByteStream,
    *,
    span: Span,
    resume: Resume,
    constants: Mapping[str, OffsetValue],
) -> tuple[ByteStream, Mapping[str, OffsetValue]]:
    """*stream* as it was before *look*, and what that has learnt."""
    most = look.most_bytes
    if span.limit is not None:
        most = min(most, max(span.limit - resume.anchor, 0))
    sampled = SampledStream(stream, most)
    ended = sampled.ended or most < look.most_bytes
    sample = Sample(
        content=sampled.sample,
        at_start=not resume.anchor,
        ended=ended,
        # What ends with the span may go on later, but only behind the last row's end.
        whole=ended and span.take_tail,
        constants=constants,
    )
    return sampled, look.learn(sample)
