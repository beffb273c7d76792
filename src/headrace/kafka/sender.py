"""The contract of senders, through which all records leave, whichever client implements it."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import RecordError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourcePartition
from headrace.connect.record import RecordMetadata
from headrace.kafka.batches.forwarding import Counted
from headrace.kafka.refused_records import RefusedRecords

EncodedHeaders = Sequence[tuple[str, bytes | None]]

_OFFSET = struct.Struct("=i")
_LARGE_OFFSET = struct.Struct("=q")


class RowsOrigin(NamedTuple):
    """The source partition of rows, and the source offset of each."""

    source: SourcePartition
    offsets: pa.Int64Array


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedRecords:
    """Rows of one topic as bytes, in order; columns as in a source batch, all of equal length.

    *values* and *keys* are binary columns, a null is Kafka's null. *timestamps* is a column of
    milliseconds, one number for all rows, or ``None`` for the time of sending. *partition* is the Kafka
    partition of all rows, or ``None`` to let the key decide as Java's partitioner does. *origin* is given where source
    offsets are numbers, for a sender that says which of them landed where. *number* is the caller's own, for a
    :class:`~headrace.kafka.errors.LateRefusalError`.
    """

    topic: str
    values: pa.BinaryArray
    keys: pa.BinaryArray | None = None
    headers: Sequence[EncodedHeaders] | None = None
    timestamps: pa.Int64Array | int | None = None
    partition: int | None = None
    origin: RowsOrigin | None = None
    number: int | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def data_bytes(self) -> int:
        """Bytes of the values and keys themselves, without Arrow's offsets and bitmaps."""
        return _data_bytes(self.values) + (0 if self.keys is None else _data_bytes(self.keys))


def _data_bytes(column: pa.BinaryArray) -> int:
    if column.null_count or not len(column):
        # Arrow allows data under a null.
        return pc.sum(pc.binary_length(column)).as_py() or 0
    offsets = column.buffers()[1]
    assert offsets is not None, "only an empty column may have no offsets"
    form = _LARGE_OFFSET if pa.types.is_large_binary(column.type) else _OFFSET
    [first] = form.unpack_from(offsets, column.offset * form.size)
    [last] = form.unpack_from(offsets, (column.offset + len(column)) * form.size)
    return last - first


OffsetEntry = tuple[bytes, bytes | None]
"""Key and value of a record of an offsets topic."""


class UnsendableError(RecordError):
    """A row cannot be sent, which was found before sending: nothing of the same call was handed over."""


class TooLargeError(UnsendableError):
    """A row is larger than the producer's limit."""


class NoPartitionError(UnsendableError):
    """A row names a partition that its topic does not have."""


class RecordSender(Protocol):
    """The part of a sender that sends records; see :class:`Sender` for the order of calls and for errors."""

    def send(self, records: EncodedRecords) -> None:
        """Hand over *records*; returns when all are in the client's queue, waiting while it is full.

        Raises :class:`UnsendableError` with ``row`` for the first record that is too large, or whose topic
        does not have its partition, before anything is queued, and
        :class:`~headrace.connect.errors.RecordError` with ``row`` for one that the client refuses for
        another reason: other rows are then in the queue, and the caller must not commit.
        """
        ...

    def send_each(self, records: EncodedRecords) -> Sequence[RecordMetadata]:
        """Like ``send``, one by one; returns each record's place in Kafka once all are acknowledged."""
        ...


class Sender(RecordSender, Protocol):
    """Sends to one Kafka cluster. One slot owns it and calls it from one thread.

    Transactional: ``open``, then ``begin``, ``send`` any number of times, ``send_offsets``, ``commit`` or
    ``abort``, and again. Idempotent: ``open``, then ``send``, ``flush``, ``send_offsets``, ``flush``.

    Every method raises :class:`~headrace.connect.errors.FencedError` or
    :class:`~headrace.connect.errors.TransactionTimedOutError` (drop the sender, plan again),
    :class:`~headrace.connect.errors.RetriableError`, or
    :class:`~headrace.connect.errors.TaskFailedError` for errors that no retry can resolve:
    :class:`~headrace.kafka.errors.LateRefusalError` when the broker rejects a single record.
    """

    def open(self) -> None:
        """Become the owner of the transactional id, fencing every earlier one; nothing when idempotent."""
        ...

    def begin(self) -> None:
        """Begin a transaction; nothing when idempotent."""
        ...

    def send_offsets(self, topic: str, entries: Sequence[OffsetEntry]) -> None:
        """Hand over records of the offsets topic. Called only directly before ``commit`` or ``flush``."""
        ...

    def commit(self) -> None:
        """Wait until the broker has everything of the transaction, and end it."""
        ...

    def abort(self) -> None:
        """Abort the open transaction, whatever its records' state; nothing when none is open."""
        ...

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged; raises when anything was not."""
        ...

    def close(self) -> None:
        """Release the client without waiting for what is still in its queue."""
        ...


class BatchForwarder(Protocol):
    """The part of a sender that sends record batches unopened; see :class:`Sender` for the order of calls and errors."""

    def send_batches(self, batches: EncodedBatches) -> int:
        """Hand over the records of *batches* from its ``start`` on; returns how many there are.

        A batch that the target would not take as it is, is rebuilt: its records are the same. Returns when all are in
        the queue, waiting while that is full; their bytes are no longer used once they are acknowledged. Raises
        :class:`~headrace.connect.errors.TaskFailedError` with topic, partition and offset for a batch that the target can take
        in no form: the caller must not commit. Raises :class:`~headrace.kafka.batches.errors.DamagedBatchError` for one that is
        damaged, once all before it is handed over, which may be committed. Neither is raised where they are tolerated.
        """
        ...

    @property
    def counted(self) -> Mapping[str, Counted]:
        """What was handed over so far, as it was fetched: under ``forwarded``, or the reason for which it was rebuilt."""
        ...

    def tolerate_refused(self) -> None:
        """From now on, raise no error for copied records that are refused or damaged: ``refused`` has them."""
        ...

    def refused(self) -> Sequence[RefusedRecords]:
        """The records that were refused or damaged, once.

        Called before each commit, which fails while there are some, and while there are many.

        Waits until what was sent is acknowledged, so that there are no others of it. Errors are as those of :class:`Sender`.
        """
        ...

    @property
    def has_many_refused(self) -> bool:
        """Whether so many records are refused that they are to be taken before anything else is sent."""
        ...

    def copied_runs(self) -> Sequence[CopiedRun]:
        """Where the records that were sent since the last commit have landed: those of batches, and those with an origin.

        Waits until they are acknowledged. Runs are as long as they can be; those of one partition are in the order of its
        offsets at the target. Errors are as those of :class:`Sender`.
        """
        ...


class GroupOffsetSender(Protocol):
    """The part of a sender that commits offsets of a consumer group on the cluster that it sends to.

    Errors are as those of :class:`Sender`.
    """

    def send_group_offsets(self, group: str, entries: Sequence[GroupEntry]) -> None:
        """Commit *entries* for *group*, which has no members.

        Transactional: they are part of the open transaction; called only directly before ``commit``. Idempotent: they
        are committed on return; called only directly after ``flush``.
        """
        ...

    def delete_group_offsets(self, group: str, places: Sequence[tuple[str, int]]) -> None:
        """Remove what *group* has committed for *places*, each a topic and a partition; done on return.

        Kafka cannot do this in a transaction: called after ``commit``, or after ``flush``. A place or a group that is
        not there is removed already.
        """
        ...


@runtime_checkable
class GroupSender(Sender, BatchForwarder, GroupOffsetSender, Protocol):
    """A sender of records, whole record batches, and offsets of groups."""
