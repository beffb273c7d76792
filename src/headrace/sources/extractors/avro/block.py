"""One block of an Avro file, unpacked, and the records that are taken out of it."""

from __future__ import annotations

import io

import numpy as np

from headrace.connect.errors import RecordError
from headrace.sources.extractors.avro.container import BlockHead
from headrace.sources.extractors.avro.datums import DatumReader
from headrace.sources.extractors.avro.scan import UNUSUAL, Scan
from headrace.sources.extractors.avro.taken import Scanned, Standings, Taken
from headrace.sources.extractors.chunk import numbered
from headrace.sources.extractors.unpacking import BROKEN

# Records that take no bytes, as those without fields, cannot be checked against a block's size.
_MOST_WITHOUT_BYTES = 1_000_000


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
        self.head = head
        self.end = end
        self._payload = payload
        self._data = io.BytesIO(payload)
        self._done = 0
        self.miscounted = False
        """Whether, where a record cannot be read, the block seems to have more or fewer of them than it says."""

    @property
    def left(self) -> int:
        """How many records have not been taken."""
        return self.head.count - self._done

    @property
    def left_bytes(self) -> int:
        """How many bytes they take."""
        return len(self._payload) - self._data.tell()

    def take(self, count: int, datums: DatumReader) -> tuple[Taken, str | None]:
        """The next records, *count* at most; with the reason when those behind them cannot be read."""
        wanted = min(count, self.left)
        start = self._data.tell()
        values, reason = datums.read(self._data, wanted)
        if reason is None and wanted == self.left and self.left_bytes:
            # Which of them took too few bytes cannot be told.
            values, reason = [], "its block holds more bytes than its records take"
            self.miscounted = True
        elif reason is not None:
            self.miscounted = not self.left_bytes
        octets = memoryview(self._payload)[start : self._data.tell()]
        standings = self._passed(len(values))
        return Taken(values=values, octets=octets, gone=0, standings=standings), reason

    def scanned(self, count: int, scan: Scan) -> Scanned | None:
        """The next records, *count* at most; ``None`` when one of them is unusual: :meth:`take` some of them."""
        wanted, start = min(count, self.left), self._data.tell()
        try:
            places, end = scan.places(self._payload, start, wanted)
        except UNUSUAL:
            return None
        if wanted == self.left and end < len(self._payload):
            return None
        self._data.seek(end)
        octets = memoryview(self._payload)[start:end]
        standings = self._passed(wanted)
        return Scanned(scan=scan, places=places - start, octets=octets, standings=standings)

    def next_name(self) -> str:
        """What errors call the next record."""
        return name_of(self.head.position, self._done + 1)

    def _passed(self, count: int) -> Standings:
        """Where the next *count* records stand, which are taken; behind a block's last one is the next block."""
        numbers = numbered(self._done + 1, count)
        last = numbers == self.head.count
        self._done += count
        return Standings(
            starts=np.full(count, self.head.position, np.int64),
            numbers=numbers,
            anchors=np.where(last, self.end, self.head.position),
            skips=np.where(last, 0, numbers),
        )


def name_of(start: int, number: int) -> str:
    """What errors call record *number* of the block at byte *start*."""
    return f"block at byte {start}, record {number} of it"
