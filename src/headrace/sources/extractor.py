"""The contract of an extractor: how one item becomes records, whatever it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar, Protocol

import numpy as np
import pyarrow as pa

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.blocks import Span
from headrace.formats.by_name import FORMATS, FormatOptions
from headrace.formats.chunk import Chunk, Resume, numbered
from headrace.formats.compression import Compression, by_magic
from headrace.formats.damage import DamagedObjectError
from headrace.formats.format import Format, ObjectInput, ReadLimits
from headrace.formats.head import with_head
from headrace.formats.object_reader import ObjectReader
from headrace.formats.readable import Readable
from headrace.formats.row_format import RowFormat
from headrace.formats.unreadable import Unread, UnreadableRecordError
from headrace.sources.author_checks import opened
from headrace.sources.item import NativeItem


class Extractor(Protocol):
    """Reads items; one per task, used on one thread."""

    needs_stream: ClassVar[bool]
    """Whether it reads ``NativeItem.open``; such an extractor on items that are no streams is refused."""

    def signature(self) -> str:
        """What an offset's ``format`` says: an item goes on only under the same one."""
        ...

    def reader(
        self,
        item: NativeItem[Any],
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ObjectReader:
        """A reader of *item* that goes on at *resume*. *constants* are what its offset says besides.

        Raises ``OSError`` when the source does not give the item, which is tried again, and
        :class:`~headrace.formats.damage.DamagedObjectError` when it is damaged before that place.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamExtractor:
    """Reads an item's bytes in *format*.

    *compression* is how they are packed; with ``None`` the first bytes of an item tell, where it is read as rows of text.
    """

    format: Format
    compression: Compression | None = None
    needs_stream: ClassVar[bool] = True

    def signature(self) -> str:
        """See :class:`Extractor`."""
        return self.format.signature()

    def reader(
        self,
        item: NativeItem[Any],
        resume: Resume,
        limits: ReadLimits,
        constants: Mapping[str, OffsetValue],
    ) -> ObjectReader:
        """See :class:`Extractor`."""
        raw, packing = self._opened(item)
        source = ObjectInput(
            native_key=str(item.context().native_key), raw=raw, compression=packing
        )
        try:
            return self.format.reader(
                source, span=Span(), resume=resume, limits=limits, constants=constants
            )
        except RecordError as error:
            raise DamagedObjectError(error) from error

    def _opened(self, item: NativeItem[Any]) -> tuple[Readable, Compression]:
        """The stream of *item*, and how it is packed."""
        raw = opened(item)
        if self.compression is not None or not isinstance(self.format, RowFormat):
            return raw, self.compression or Compression.NONE
        try:
            raw, head = with_head(raw)
        except BaseException:
            raw.close()
            raise
        return raw, by_magic(head)


class ValueExtractor(ABC):
    """For items that are no streams: override :meth:`values`; the place of each record is counted.

    Values have *value_schema*; without one they are strings, bytes, numbers, booleans, or lists and maps,
    which become JSON documents. All values of an item are of one kind. ``None`` is a record without value, a
    tombstone, whatever the other ones are; :data:`~headrace.connect.json_document.JSON_NULL` is the JSON document ``null``.
    """

    needs_stream: ClassVar[bool] = False
    value_schema: ClassVar[Schema | None] = None

    def signature(self) -> str:
        """See :class:`Extractor`. Override it when values are made in another way than before."""
        return "values"

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
        self._waiting = list[object]()
        self._refused: UnreadableRecordError | None = None

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
        error, self._refused = self._refused, None
        if error is not None:
            raise error
        values = self._waiting or list(islice(self._values, self._rows))
        self._waiting = []
        if not values:
            return None
        column = self._column(values)
        if not len(column):
            return self.next_chunk()
        counts = numbered(self._count - len(column) + 1 - (self._refused is not None), len(column))
        return Chunk(
            values=column,
            anchors=np.zeros(len(column), np.int64),
            skips=counts,
            counts=counts,
            constants={},
            last=False,
        )

    def _column(self, values: list[object]) -> pa.Array:
        """Those of *values* that come before the first one that does not fit; what is behind that waits."""
        try:
            column = column_of(self.value_schema, values)
        except RecordError as error:
            column, good, reason = _up_to_bad(self.value_schema, values, error)
            self._count += good + 1
            self._waiting = values[good + 1 :]
            self._refused = UnreadableRecordError(
                reason,
                native_key=self._native_key,
                position=f"record {self._count}",
                record=Unread(behind=self.place, reference={"record": self._count}),
            )
        else:
            self._count += len(values)
        return column

    def close(self) -> None:
        close = getattr(self._values, "close", None)
        if close is not None:
            close()


def _up_to_bad(
    schema: Schema | None, values: Sequence[object], error: RecordError
) -> tuple[pa.Array, int, str]:
    """The column of the values before the first with which there is none, how many those are, and why."""
    good, bad, reason = 0, len(values), error.reason
    column = pa.array([], pa.null()) if schema is None else column_of(schema, [])
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            column = column_of(schema, values[:middle])
            good = middle
        except RecordError as found:
            bad, reason = middle, found.reason
    return column, good, reason


_USUAL = FormatOptions()


def extractor_named(
    name: str, options: FormatOptions = _USUAL, *, compression: Compression | None = None
) -> StreamExtractor:
    """The extractor that ``extractor.class`` names.

    *compression* is how items are packed; with ``None`` the first bytes of each tell, where it is text.
    """
    return StreamExtractor(format=FORMATS[name.lower()](options), compression=compression)
