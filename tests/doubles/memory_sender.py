"""A sender that keeps what it is given, with Kafka's rules of transactions; for tests of the task loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf

from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import FencedError, RecordError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourcePartition
from headrace.connect.record import RecordMetadata
from headrace.kafka.batches.errors import CorruptBatchError, DamagedBatchError
from headrace.kafka.batches.forwarding import Counted, source_place
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.refused_records import RefusedRecords, before_damage
from headrace.kafka.sender import (
    EncodedHeaders,
    EncodedRecords,
    NoPartitionError,
    OffsetEntry,
    TooLargeError,
)

Sent = tuple[str, bytes | None, bytes | None]
"""Topic, key and value of a record."""


@dataclass(slots=True)
class MemorySender:
    """Implements ``GroupSender``. *committed* is what a ``read_committed`` consumer would see, in order.

    Set *fenced* to make every later call fail as after a newer owner's ``open``; put values into
    *refuses* that the client is to refuse, into *refuses_late* those that the broker is to refuse. Values
    that have more than *most_bytes* with their headers are too large, and *partitions* is how many each topic
    has. *headers* has those of each committed record. *forwarded* are committed batches that were not opened, and
    *groups* the offsets of groups; *calls* tells in which order offsets of groups were sent and removed. Batches that begin at
    the source offsets *damaged* are.
    """

    transactional: bool = True
    committed: list[Sent] = field(default_factory=list[Sent])
    offsets: dict[bytes, bytes | None] = field(default_factory=dict[bytes, bytes | None])
    commits: int = 0
    aborts: int = 0
    fenced: bool = False
    headers: list[EncodedHeaders] = field(default_factory=list[EncodedHeaders])
    most_bytes: int | None = None
    partitions: float = inf
    refuses: set[bytes] = field(default_factory=set[bytes])
    refuses_late: set[bytes] = field(default_factory=set[bytes])
    closed: bool = False
    forwarded: list[EncodedBatches] = field(default_factory=list[EncodedBatches])
    groups: dict[str, dict[tuple[str, int], GroupEntry]] = field(
        default_factory=dict[str, dict[tuple[str, int], GroupEntry]]
    )
    calls: list[str] = field(default_factory=list[str])
    damaged: set[int] = field(default_factory=set[int])
    refused_batches: list[RefusedRecords] = field(default_factory=list[RefusedRecords])
    _open: bool = False
    _records: list[Sent] = field(default_factory=list[Sent])
    _headers: list[EncodedHeaders] = field(default_factory=list[EncodedHeaders])
    _entries: list[OffsetEntry] = field(default_factory=list[OffsetEntry])
    _batches: list[EncodedBatches] = field(default_factory=list[EncodedBatches])
    _copied: list[tuple[SourcePartition, tuple[str, int], int, int]] = field(
        default_factory=list[tuple[SourcePartition, tuple[str, int], int, int]]
    )
    _is_flushed: bool = False
    _group_entries: list[tuple[str, GroupEntry]] = field(
        default_factory=list[tuple[str, GroupEntry]]
    )

    def open(self) -> None:
        """Nothing to fence in memory."""
        self._refuse_if_fenced()

    def begin(self) -> None:
        """Begin a transaction; raises when one is open."""
        self._refuse_if_fenced()
        if self.transactional and self._open:
            raise RuntimeError("begin was called with a transaction open")
        self._open = self.transactional
        self._copied.clear()

    def send(self, records: EncodedRecords) -> None:
        """Keep *records* until commit or flush; rows behind a refused one are kept, as in a real queue."""
        self._refuse_if_fenced()
        if self.transactional and not self._open:
            raise RuntimeError("send was called without a transaction")
        values = records.values.to_pylist()
        keys = [None] * len(values) if records.keys is None else records.keys.to_pylist()
        headers = records.headers or [()] * len(values)
        self._refuse_too_large(values, headers)
        if records.partition is not None and records.partition >= self.partitions:
            raise NoPartitionError("There is no such partition.", row=0)
        refused: int | None = None
        for row, (key, value) in enumerate(zip(keys, values, strict=True)):
            if value in self.refuses:
                refused = row if refused is None else refused
            else:
                self._records.append((records.topic, key, value))
                self._headers.append(headers[row])
        if refused is not None:
            raise RecordError("The record is refused.", row=refused)

        self._forget_flushed()
        if records.origin is not None:
            source, offsets = records.origin
            target = records.topic, records.partition or 0
            self._copied += [(source, target, offset, 1) for offset in offsets.to_pylist()]

    def send_each(self, records: EncodedRecords) -> Sequence[RecordMetadata]:
        """Like ``send``; offsets count from the number of records kept so far."""
        first = len(self.committed) + len(self._records)
        self.send(records)
        return [
            RecordMetadata(topic=records.topic, partition=0, offset=first + row)
            for row in range(len(records))
        ]

    def send_offsets(self, topic: str, entries: Sequence[OffsetEntry]) -> None:
        """Keep *entries* until commit or flush."""
        self._refuse_if_fenced()
        self._entries.extend(entries)

    def send_batches(self, batches: EncodedBatches) -> int:
        """Keep *batches* until commit or flush; those of which it is not known have no gaps."""
        self._refuse_if_fenced()
        if self.transactional and not self._open:
            raise RuntimeError("send_batches was called without a transaction")
        self._forget_flushed()
        for each in batches.headers:
            if each.base_offset in self.damaged:
                damage = CorruptBatchError(source_place(batches), each.base_offset, "it is damaged")
                before = before_damage(batches, damage)
                sent = 0 if before is None else self.send_batches(before)
                raise DamagedBatchError(damage, before=before, records=sent, last=each.last_offset)
        self._batches.append(batches)
        target = batches.topic, batches.partition
        self._copied += [
            (batches.source_partition, target, each.base_offset, each.at_most)
            for each in batches.headers
        ]
        known = batches.records
        return sum(each.at_most for each in batches.headers) if known < 0 else known

    @property
    def counted(self) -> dict[str, Counted]:
        """It opens none."""
        found = [each.nbytes for each in self.forwarded]
        return {"forwarded": Counted(len(found), sum(found))} if found else {}

    def set_refused_aside(self) -> None:
        """It refuses none."""

    @property
    def has_many_refused(self) -> bool:
        """More than two."""
        return len(self.refused_batches) > 2

    def refused(self) -> Sequence[RefusedRecords]:
        """What *refused_batches* has, once."""
        self._refuse_if_fenced()
        refused, self.refused_batches = self.refused_batches, []
        return refused

    def copied_runs(self) -> Sequence[CopiedRun]:
        """One for each batch and for each row with an origin, as if they landed one behind the other."""
        self.flush()
        found, ends = list[CopiedRun](), dict[tuple[str, int], int]()
        for source, target, first, records in self._copied:
            at = ends.get(target, 0)
            found.append(CopiedRun(source, target, first, at, records))
            ends[target] = at + records
        return found

    def send_group_offsets(self, group: str, entries: Sequence[GroupEntry]) -> None:
        """Keep *entries* until commit; without transactions they are committed, after what was flushed."""
        self._refuse_if_fenced()
        self.calls.append("send")
        if not self.transactional:
            assert not self._records, "offsets of records that are not acknowledged"
            assert not self._batches, "offsets of batches that are not acknowledged"
        self._group_entries += [(group, each) for each in entries]
        if not self.transactional:
            self._publish()

    def delete_group_offsets(self, group: str, places: Sequence[tuple[str, int]]) -> None:
        """Remove them at once, as the broker does; never in a transaction."""
        self._refuse_if_fenced()
        assert not self._open, "entries cannot be removed in a transaction"
        self.calls.append("delete")
        for each in places:
            self.groups.get(group, {}).pop(each, None)

    def commit(self) -> None:
        """Make everything of the transaction visible at once."""
        self._refuse_if_fenced()
        if not self._open:
            raise RuntimeError("commit was called without a transaction")
        self._refuse_late()
        self._publish()
        self._open = False
        self.commits += 1

    def abort(self) -> None:
        """Forget everything of the transaction."""
        self._records.clear()
        self._headers.clear()
        self._entries.clear()
        self._batches.clear()
        self._group_entries.clear()
        self._open = False
        self.aborts += 1

    def flush(self) -> None:
        """Make everything visible, when not transactional."""
        self._refuse_if_fenced()
        self._refuse_late()
        if not self.transactional:
            self._publish()
            self._is_flushed = True

    def close(self) -> None:
        """Note that the sender was closed."""
        self.closed = True

    def _forget_flushed(self) -> None:
        if self._is_flushed:
            self._copied.clear()
        self._is_flushed = False

    def _publish(self) -> None:
        self.committed.extend(self._records)
        self.headers.extend(self._headers)
        self.offsets.update(self._entries)
        self.forwarded.extend(self._batches)
        for group, entry in self._group_entries:
            self.groups.setdefault(group, {})[entry.place] = entry
        self._batches.clear()
        self._group_entries.clear()
        self._records.clear()
        self._headers.clear()
        self._entries.clear()

    def _refuse_too_large(
        self, values: Sequence[bytes | None], headers: Sequence[EncodedHeaders]
    ) -> None:
        if self.most_bytes is None:
            return
        for row, value in enumerate(values):
            around = sum(len(key) + len(content or b"") for key, content in headers[row])
            if len(value or b"") + around > self.most_bytes:
                raise TooLargeError("The record is too large.", row=row)

    def _refuse_late(self) -> None:
        for topic, key, value in self._records:
            if value is not None and value in self.refuses_late:
                raise LateRefusalError(
                    "The broker refuses the record.",
                    advice="Send another one.",
                    topic=topic,
                    key_bytes=None if key is None else len(key),
                    value_bytes=len(value),
                )

    def _refuse_if_fenced(self) -> None:
        if self.fenced:
            raise FencedError("A newer owner has taken over.")
