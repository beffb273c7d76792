"""Parquet: each row of a table is a struct; reading goes on at any row group."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.compression import Compression
from headrace.formats.format import ObjectInput, ReadLimits
from headrace.formats.parquet.file import ParquetSource
from headrace.formats.parquet.ranges import groups_between
from headrace.formats.parquet.reader import ParquetReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """Rows as structs of *columns*, in that order; none means all of them, in the file's order.

    An anchor is the number of a row group; a span has those that begin in it. A file is read as it is: it
    compresses its own pages, so that another compression around it is refused.
    """

    columns: tuple[str, ...] = ()
    splits: bool = True
    sealed: ClassVar[bool] = True
    packs_itself: ClassVar[bool] = True
    byte_anchors: ClassVar[bool] = False

    def signature(self) -> str:
        """See :class:`~headrace.formats.format.Format`: other columns are other records."""
        return f"parquet {json.dumps(self.columns)}" if self.columns else "parquet"

    def reader(
        self,
        source: ObjectInput,
        *,
        span: Span,
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ParquetReader:
        """See :class:`~headrace.formats.format.Format`."""
        try:
            _check_readable(source)
            opened = ParquetSource(source.raw, source.native_key, columns=self.columns)
            first, stop = groups_between(opened.begins, span.start, span.stop, size=opened.size)
            if span.seek_row:
                resume = dataclasses.replace(resume, anchor=first)
            return ParquetReader(opened, resume=resume, stop=stop, limits=limits)
        except BaseException:
            source.raw.close()
            raise


def _check_readable(source: ObjectInput) -> None:
    if source.compression is not Compression.NONE:
        raise TaskFailedError(
            f"{source.native_key}: A Parquet file compresses its own pages and is not read out of "
            f"{source.compression}, because its footer is at its end. Unpack it, or set the "
            "compression to none if only its name says so."
        )
    if not source.raw.seekable():
        raise TaskFailedError(
            f"{source.native_key}: A Parquet file has its footer at its end, and its stream cannot seek. Let "
            "open() return one that can, such as a temporary file with the same bytes."
        )
