"""Reads a topic's log on the broker's disk: how many records are committed, since when, until when.

The benchmark's topics have ``message.timestamp.type=LogAppendTime``, so each batch and each
commit marker has the time of its append in milliseconds, whatever sent it. Reading the log costs the broker
nothing while it is measured.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

# Base offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and last timestamp,
# producer id and epoch, base sequence, number of records (message format 2).
_HEADER = struct.Struct(">qiibIhiqqqhii")
_BEFORE_LENGTH_ENDS = 12
# Of the one record in a control batch: length, attributes, two deltas, key's length, key's version.
_BEFORE_TYPE = 7
_CONTROL = 0x20
_TRANSACTIONAL = 0x10
_COMMIT = 1
_LONGEST_HEADER = _HEADER.size + _BEFORE_TYPE + 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The header of a record batch; *committed* only in a control batch: whether it commits."""

    size: int
    records: int
    landed_ms: int
    producer: int
    transactional: bool
    committed: bool | None


def parsed_batch(head: bytes) -> Batch | None:
    """The batch that begins with *head*; None when *head* is too short. Pure."""
    if len(head) < _HEADER.size:
        return None
    _, length, _, _, _, attributes, _, _, landed, producer, _, _, records = _HEADER.unpack_from(
        head
    )
    committed = None
    if attributes & _CONTROL:
        if len(head) < _LONGEST_HEADER:
            return None
        (kind,) = struct.unpack_from(">h", head, _HEADER.size + _BEFORE_TYPE)
        committed = kind == _COMMIT
    return Batch(
        size=_BEFORE_LENGTH_ENDS + length,
        records=records,
        landed_ms=landed,
        producer=producer,
        transactional=bool(attributes & _TRANSACTIONAL),
        committed=committed,
    )


@dataclass(slots=True)
class Tally:
    """What a reader with ``read_committed`` could see so far. Pure; times are the broker's, in ms.

    *commits_ms* are the times at which transactions with records were committed.
    """

    committed: int = 0
    transactions: int = 0
    first_landed_ms: int | None = None
    last_committed_ms: int | None = None
    commits_ms: list[int] = field(default_factory=list[int])
    _open: dict[int, int] = field(default_factory=dict[int, int])

    def add(self, batch: Batch) -> None:
        """Count the log's next batch."""
        if batch.committed is not None:
            self._end(batch)
            return
        if self.first_landed_ms is None:
            self.first_landed_ms = batch.landed_ms
        if batch.transactional:
            self._open[batch.producer] = self._open.get(batch.producer, 0) + batch.records
        else:
            self.committed += batch.records
            self.last_committed_ms = batch.landed_ms

    def _end(self, marker: Batch) -> None:
        records = self._open.pop(marker.producer, 0)
        if marker.committed and records:
            self.transactions += 1
            self.committed += records
            self.commits_ms.append(marker.landed_ms)
            self.last_committed_ms = marker.landed_ms


class PartitionLog:
    """Follows the segments of one partition in *folder* while the broker writes them."""

    def __init__(self, folder: Path) -> None:
        self.tally = Tally()
        self._folder = folder
        self._segment: str | None = None
        self._at = 0

    def follow(self) -> Tally:
        """Count what was written since the last call."""
        names = sorted(file.name for file in self._folder.glob("*.log"))
        for name in names:
            if self._segment is None or name > self._segment:
                self._segment, self._at = name, 0
            if name == self._segment:
                with (self._folder / name).open("rb", buffering=0) as file:
                    self._at = self._count(file, self._at)
        return self.tally

    def _count(self, file: BinaryIO, at: int) -> int:
        """Count the whole batches of *file* from *at* on; returns where they end."""
        end = file.seek(0, 2)
        while True:
            file.seek(at)
            batch = parsed_batch(file.read(_LONGEST_HEADER))
            if batch is None or at + batch.size > end:
                return at
            self.tally.add(batch)
            at += batch.size
