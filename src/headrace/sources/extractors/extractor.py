"""The contract of an extractor: how one item becomes records, whatever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.sources.extractors.blocks import Span
from headrace.sources.extractors.chunk import Chunk, Resume, numbered
from headrace.sources.extractors.format import Format, ObjectInput, ReadLimits
from headrace.sources.extractors.object_reader import ObjectReader
from headrace.sources.extractors.streams import Compression
from headrace.sources.item import NativeItem


class Extractor(Protocol):
    """Reads items; one per task, used on one thread."""

    needs_stream: ClassVar[bool]
    """Whether it reads ``NativeItem.open``; such an extractor on items that are no streams is refused."""

    def reader(
        self,
        item: NativeItem[Any],
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ObjectReader:
        """A reader of *item* that goes on at *resume*. *constants* are what its offset says besides.

        Raises ``OSError`` when the source does not give the item, which is tried again.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamExtractor:
    """Reads an item's bytes in *format*."""

    format: Format
    compression: Compression = Compression.NONE
    needs_stream: ClassVar[bool] = True

    def reader(
        self,
        item: NativeItem[Any],
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ObjectReader:
        """See :class:`Extractor`."""
        source = ObjectInput(
            native_key=str(item.context().native_key), raw=item.open(), compression=self.compression
        )
        return self.format.reader(
            source, span=Span(), resume=resume, limits=limits, constants=constants
        )


class ValueExtractor(ABC):
    """For items that are no streams: override :meth:`values`; the place of each record is counted.

    Values have *value_schema*; without one they are strings, bytes, numbers, booleans, or lists and maps,
    which become JSON documents. All values of an item are of one kind.
    """

    needs_stream: ClassVar[bool] = False
    value_schema: ClassVar[Schema | None] = None

    @abstractmethod
    def values(self, item: NativeItem[Any]) -> Iterable[object]:
        """The values of *item*'s records, in the same order each time."""
        ...

    def reader(
        self,
        item: NativeItem[Any],
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ObjectReader:
        """See :class:`Extractor`; what was read before is passed over."""
        return _ValueReader(
            iter(self.values(item)),
            native_key=str(item.context().native_key),
            resume=resume,
            schema=self.value_schema,
            rows=limits.rows,
        )


class _ValueReader:
    """An ``ObjectReader`` of Python values."""

    cut_short: bool = False

    def __init__(
        self,
        values: Iterator[object],
        *,
        native_key: str,
        resume: Resume,
        schema: Schema | None,
        rows: int,
    ) -> None:
        self.value_schema = schema
        self._values = values
        self._native_key = native_key
        self._rows = rows
        self._count = 0
        self._to_pass = resume.record_count

    @property
    def place(self) -> Resume:
        return Resume(skip=self._count, record_count=self._count)

    def constants(self) -> Mapping[str, OffsetValue]:
        return {}

    def next_chunk(self) -> Chunk | None:
        while self._to_pass:
            passed = sum(1 for _ in islice(self._values, min(self._to_pass, self._rows)))
            if not passed:
                return None
            self._to_pass -= passed
            self._count += passed
        values = list(islice(self._values, self._rows))
        if not values:
            return None
        try:
            column = column_of(self.value_schema, values)
        except RecordError as error:
            raise error.located(self._native_key, f"after record {self._count}") from error
        counts = numbered(self._count + 1, len(values))
        self._count += len(values)
        return Chunk(
            values=column,
            anchors=np.zeros(len(values), np.int64),
            skips=counts,
            counts=counts,
            constants={},
            last=False,
        )

    def close(self) -> None:
        close = getattr(self._values, "close", None)
        if close is not None:
            close()
