"""One block of an Avro file, unpacked, and the records that are taken out of it."""

from __future__ import annotations

import io
from collections import deque
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.formats.avro.container import BlockHead
from headrace.formats.avro.datums import PIECE, DatumReader
from headrace.formats.avro.leaves import Values
from headrace.formats.avro.scan import UNUSUAL, FieldPlaces, KeptPlaces, Scan
from headrace.formats.avro.taken import Built, RecordPositions, Scanned, Taken
from headrace.formats.chunk import numbered
from headrace.formats.unpacking import BROKEN

# Records that take no bytes, as those without fields, cannot be checked against a block's size.
_MOST_WITHOUT_BYTES = 1_000_000
# Columns of so many times a block's bytes are kept while it is looked through; what is behind is read twice.
_MOST_KEPT = 4


@dataclass(slots=True)
class _Kept:
    """The *column* of some records, which end at byte *end*."""

    column: pa.Array
    end: int


class AvroBlock:
    """The block of *head*; *payload* is unpacked, *end* is where the next one begins. Used by one thread.

    No record is given of one whose records end before its bytes: which of them took too few cannot be told.
    So the whole block is looked through before the first one is given.

    Raises :class:`~headrace.connect.errors.RecordError`, without a place, when its number of records
    cannot be true; *least_bytes* is what one takes at least.
    """

    def __init__(self, head: BlockHead, payload: bytes, *, end: int, least_bytes: int) -> None:
        most = len(payload) // least_bytes if least_bytes else _MOST_WITHOUT_BYTES
        if head.count > most or (payload and not head.count):
            raise RecordError(
                f"A block of {len(payload)} bytes cannot hold {head.count} records.", advice=BROKEN
            )
        self.head = head
        self.end = end
        self._payload = payload
        self._data = io.BytesIO(payload)
        self._done = 0
        self._looked_through = False
        self._too_long = False
        self._places: KeptPlaces | None = None
        self._kept = deque[_Kept]()
        self.miscounted = False
        """Whether, where a record cannot be read, the block seems to have more or fewer of them than it says."""

    @property
    def left(self) -> int:
        """How many records have not been taken."""
        return self.head.count - self._done

    @property
    def left_bytes(self) -> int:
        """How many bytes they take; about as many where they have been read ahead."""
        if self._kept:
            return len(self._payload) * self.left // self.head.count
        return len(self._payload) - self._data.tell()

    def take(
        self, count: int, datums: DatumReader, *, scans: bool
    ) -> tuple[Taken | Built, str | None]:
        """The next records, *count* at most; with the reason when those behind them cannot be read.

        *scans* says that :meth:`scanned` gives most others.
        """
        wanted = min(count, self.left)
        if not self._looked_through and wanted < self.left:
            self._look_through(datums, keep=not scans)
        if self._kept:
            return self._of_kept(wanted), None
        start = self._data.tell()
        values, reason = ([], None) if self._too_long else datums.read(self._data, wanted)
        if self._too_long or (reason is None and wanted == self.left and self.left_bytes):
            values, reason = [], "its block holds more bytes than its records take"
            self.miscounted = True
        elif reason is not None:
            self.miscounted = not self.left_bytes
        return self._taken(values, start), reason

    def scanned(self, count: int, scan: Scan) -> Scanned | None:
        """The next records, *count* at most; ``None`` when one of them is unusual: :meth:`take` some of them."""
        wanted, start = min(count, self.left), self._data.tell()
        found = self._scan(wanted, start, scan)
        if found is None:
            return None
        self._looked_through = True
        places, end = found
        self._data.seek(end)
        octets = memoryview(self._payload)[start:end]
        positions = self._passed(wanted)
        return Scanned(scan=scan, places=places - start, octets=octets, positions=positions)

    def _scan(self, wanted: int, start: int, scan: Scan) -> tuple[FieldPlaces, int] | None:
        """The places of the next *wanted* records, and where they end; of a block's first ones when all are sound."""
        if not self._looked_through and wanted < self.left:
            self._places = scan.whole(self._payload, self.head.count)
            if self._places is None:
                return None
        if self._places is not None:
            return self._of_places(wanted, self._places)
        try:
            places, end = scan.places(self._payload, start, wanted)
        except UNUSUAL:
            return None
        return None if wanted == self.left and end < len(self._payload) else (places, end)

    def _of_places(self, wanted: int, kept: KeptPlaces) -> tuple[FieldPlaces, int]:
        stop = self._done + wanted
        end = len(self._payload) if wanted == self.left else int(kept[stop, 0])
        return kept[self._done : stop].astype(np.int64), end

    def _look_through(self, datums: DatumReader, *, keep: bool) -> None:
        """Find out whether the records end before the bytes, and *keep* those that can be kept."""
        self._looked_through = True
        rest, room = self.head.count, _MOST_KEPT * len(self._payload) if keep else 0
        while rest and room > 0:
            column = datums.built(self._data, min(PIECE, rest))
            if column is None:
                break
            self._kept.append(_Kept(column, self._data.tell()))
            rest -= len(column)
            room -= column.nbytes
        self._too_long = datums.pass_over(self._data, rest) and self._data.tell() < len(
            self._payload
        )
        self._data.seek(0)
        if self._too_long:
            self._kept.clear()

    def _of_kept(self, wanted: int) -> Built:
        """The next records of those that are kept, *wanted* at most."""
        kept = self._kept[0]
        column, kept.column = kept.column[:wanted], kept.column[wanted:]
        if not len(kept.column):
            self._data.seek(kept.end)
            self._kept.popleft()
        return Built(column=column, positions=self._passed(len(column)))

    def _taken(self, values: Values, start: int) -> Taken:
        octets = memoryview(self._payload)[start : self._data.tell()]
        return Taken(values=values, octets=octets, gone=0, positions=self._passed(len(values)))

    def next_name(self) -> str:
        """What errors call the next record."""
        return name_of(self.head.position, self._done + 1)

    def _passed(self, count: int) -> RecordPositions:
        """Where the next *count* records stand, which are taken; behind a block's last one is the next block."""
        numbers = numbered(self._done + 1, count)
        last = numbers == self.head.count
        self._done += count
        return RecordPositions(
            starts=np.full(count, self.head.position, np.int64),
            numbers=numbers,
            anchors=np.where(last, self.end, self.head.position),
            skips=np.where(last, 0, numbers),
        )


def name_of(start: int, number: int) -> str:
    """What errors call record *number* of the block at byte *start*."""
    return f"block at byte {start}, record {number} of it"
