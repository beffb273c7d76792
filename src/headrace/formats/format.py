"""The contract of a format: how the bytes of one object become records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

from headrace.connect.partition import OffsetValue
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.object_reader import ObjectReader
from headrace.formats.readable import Readable
from headrace.formats.streams import ByteStream, Compression


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectInput:
    """The bytes of one object. *native_key* is what errors call it; *raw* begins at its first byte.

    *stream*, where it is given, are its unpacked bytes from where reading begins: a format of rows reads
    them instead of *raw*.
    """

    native_key: str
    raw: Readable
    compression: Compression = Compression.NONE
    stream: ByteStream | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLimits:
    """What bounds a reader's memory: records and bytes of a chunk, and bytes of one record.

    *record_key* is the setting that raises the last one, for errors.
    """

    rows: int
    chunk_bytes: int
    record_bytes: int
    record_key: str = "the limit"


class Format(Protocol):
    """Reads objects of one format; made from a configuration, used for many objects, holds none of them."""

    sealed: ClassVar[bool]
    """Whether only a finished object can be read: one with a footer, or whose anchors are not bytes."""

    packs_itself: ClassVar[bool]
    """Whether the format compresses its own blocks, so that an object is not unpacked before."""

    byte_anchors: ClassVar[bool]
    """Whether an anchor is the byte at which reading goes on; its meaning is the format's own where it is not."""

    @property
    def splits(self) -> bool:
        """Whether records can be found from any byte on, so that ranges of one object can be read apart."""
        ...

    def signature(self) -> str:
        """What an offset's ``format`` says: reading goes on only under the same one."""
        ...

    def reader(
        self,
        source: ObjectInput,
        *,
        span: Span,
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ObjectReader:
        """A reader of *span* that goes on at *resume*, with what :meth:`ObjectReader.constants` said then.

        A span's borders are bytes, whatever anchors are. With ``seek_row`` reading does not go on but begin:
        *resume*'s anchor is then the span's start, and what it skips is behind that.

        Owns *source*'s stream from now on, also when it raises. Raises
        :class:`~headrace.connect.errors.RecordError` when the object is damaged before the place, and
        :class:`~headrace.connect.errors.TaskFailedError` when reading cannot go on there.
        """
        ...
