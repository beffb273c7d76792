"""One block of an Avro file, unpacked, and the records that are read out of it."""

from __future__ import annotations

import io
from dataclasses import dataclass

import numpy as np

from headrace.connect.errors import RecordError
from headrace.sources.extractors.avro_columns import Values
from headrace.sources.extractors.avro_container import BlockHead
from headrace.sources.extractors.avro_datums import DatumReader
from headrace.sources.extractors.chunk import numbered
from headrace.sources.extractors.rows import Places
from headrace.sources.extractors.unpacking import BROKEN

# Records that take no bytes, as those without fields, cannot be checked against a block's size.
_MOST_WITHOUT_BYTES = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Records that were read but not yet passed on.

    Record *i* is the ``numbers[i]``-th of the block at byte ``starts[i]``, and reading goes on ``skips[i]``
    records behind ``anchors[i]``.
    """

    values: Values
    starts: Places
    numbers: Places
    anchors: Places
    skips: Places

    def __len__(self) -> int:
        return len(self.values)

    def behind(self, count: int) -> Taken:
        """These without the first *count*."""
        return Taken(
            values=self.values[count:],
            starts=self.starts[count:],
            numbers=self.numbers[count:],
            anchors=self.anchors[count:],
            skips=self.skips[count:],
        )


class AvroBlock:
    """The block of *head*; *payload* is unpacked, *end* is where the next one begins. Used by one thread.

    Raises :class:`~headrace.connect.errors.RecordError`, without a place, when its number of records
    cannot be true; *least_bytes* is what one takes at least.
    """

    def __init__(self, head: BlockHead, payload: bytes, *, end: int, least_bytes: int) -> None:
        most = len(payload) // least_bytes if least_bytes else _MOST_WITHOUT_BYTES
        if head.count > most or (payload and not head.count):
            raise RecordError(
                f"A block of {len(payload)} bytes cannot hold {head.count} records.", advice=BROKEN
            )
        self._head = head
        self._end = end
        self._data = io.BytesIO(payload)
        self._size = len(payload)
        self._done = 0
        self._page = (0, 0)

    @property
    def left(self) -> int:
        """How many records have not been taken."""
        return self._head.count - self._done

    @property
    def left_bytes(self) -> int:
        """How many bytes they take."""
        return self._size - self._data.tell()

    def take(self, count: int, datums: DatumReader) -> tuple[Taken, str | None]:
        """The next records, *count* at most; with the reason when those behind them cannot be read."""
        wanted = min(count, self.left)
        self._page = (self._done, self._data.tell())
        values, reason = datums.read(self._data, wanted)
        if reason is None and wanted == self.left and self.left_bytes:
            # Which of them took too few bytes cannot be told.
            values, reason = [], "its block holds more bytes than its records take"
        taken = self._placed(values)
        self._done += len(values)
        return taken, reason

    def raw(self, number: int, datums: DatumReader) -> bytes:
        """The bytes of the *number*-th record, one of those that were taken last; they are read once more."""
        before, start = self._page
        place = self._data.tell()
        self._data.seek(start)
        datums.read(self._data, number - before - 1)
        start = self._data.tell()
        datums.read(self._data, 1)
        found = bytes(self._data.getbuffer()[start : self._data.tell()])
        self._data.seek(place)
        return found

    def next_name(self) -> str:
        """What errors call the next record."""
        return name_of(self._head.position, self._done + 1)

    def _placed(self, values: Values) -> Taken:
        """*values* with their places; behind a block's last record is the next block."""
        numbers = numbered(self._done + 1, len(values))
        last = numbers == self._head.count
        return Taken(
            values=values,
            starts=np.full(len(values), self._head.position, np.int64),
            numbers=numbers,
            anchors=np.where(last, self._end, self._head.position),
            skips=np.where(last, 0, numbers),
        )


def name_of(start: int, number: int) -> str:
    """What errors call record *number* of the block at byte *start*."""
    return f"block at byte {start}, record {number} of it"
