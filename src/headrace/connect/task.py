"""The contract of source tasks: what a task does, and what the runtime gives it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.record import BytesRecord, RecordMetadata, SourceRecord

Offsets = Mapping[SourcePartition, SourceOffset | None]
"""Source offsets by source partition; ``None`` stands for "remove what is stored"."""

Polled = (
    SourceBatch
    | EncodedBatches
    | Sequence[SourceBatch]
    | Sequence[EncodedBatches]
    | Sequence[SourceRecord]
    | None
)
"""What ``poll`` returns: one batch, several, plain records in order, or ``None``. Encoded batches only where the task's
context says so."""


class TransactionScope(Enum):
    """The scope of a transaction request that names no record."""

    POLL = "poll"
    """Everything that the next ``poll`` that returns has returned."""


class TransactionContext(Protocol):
    """Lets a task place the ends of transactions (KIP-618), with ``transaction.boundary=connector``.

    Called from ``poll``, on the slot's thread. A request for a poll takes effect after everything that this
    ``poll`` returns, a request for a record directly after the next record that equals it, even if a
    transformation drops that; requests for records take effect before that for the poll. A task that makes requests
    for records returns plain records and no batches. Requesting a commit and an abort of the same scope, or naming a
    record that is ``None``, raises :class:`~headrace.connect.errors.TaskFailedError`.
    """

    def commit_transaction(
        self, record: SourceRecord | TransactionScope = TransactionScope.POLL
    ) -> None:
        """Commit after *record*, or after what this ``poll`` returns."""
        ...

    def abort_transaction(
        self, record: SourceRecord | TransactionScope = TransactionScope.POLL
    ) -> None:
        """Discard what is in the transaction, up to and including *record* or what this ``poll`` returns.

        The offsets of discarded records are committed, so they are not read again; to have them read again, raise.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """A piece of planned work: one source partition, read by one slot from *offset* on.

    *offset* is what the store held when the plan was made (``None``: from the beginning). *details* are
    information of the connector for its task, as JSON values. A split that shares an object with others is a
    source partition of its own, because a source partition belongs to one slot at a time.
    """

    partition: SourcePartition
    offset: SourceOffset | None = None
    details: Mapping[str, object] = field(default_factory=dict[str, object])


class TaskContext(Protocol):
    """What the runtime gives to a task before it starts; the same object until it has stopped."""

    @property
    def connector(self) -> str:
        """The connector's name."""
        ...

    @property
    def task(self) -> int:
        """The task's number within the connector, from 0."""
        ...

    @property
    def offsets(self) -> OffsetReader:
        """Reads committed source offsets; may block on the network, and may be used on any thread."""
        ...

    @property
    def transaction(self) -> TransactionContext | None:
        """Places the ends of transactions; ``None`` unless the connector's configuration asks for it."""
        ...

    @property
    def splits(self) -> Sequence[Split]:
        """This task's share of the plan, in the order to read it; empty for a polled connector."""
        ...

    @property
    def takes_encoded(self) -> bool:
        """Whether ``poll`` may return :class:`~headrace.connect.encoded.EncodedBatches`.

        True when nothing has to look at the records: the connector has no transformations, and its key and value
        converters are those for bytes.
        """
        ...

    def stopping(self) -> bool:
        """Whether the slot has been asked to end. A ``poll`` that waits checks it at least once a second."""
        ...


class SourceTask(ABC):
    """Reads one share of a source. One instance lives inside one slot, for one micro-batch.

    The runtime calls, all on one thread: ``initialize``, ``start``, then ``poll`` again and again with
    ``update_offsets`` and the commit hooks in between, and finally ``stop``, whatever happened. An
    instance may also be made only to have its commit hooks called; it is then started and stopped but
    never polled, and has no splits.

    Any exception fails the task, except
    :class:`~headrace.connect.errors.RetriableError` from ``poll``, which counts as "nothing now", and
    :class:`~headrace.connect.errors.RecordError`, which is treated as ``errors.tolerance`` says.
    Everything returned before an exception keeps its place: nothing is read twice, nothing is skipped.
    """

    context: TaskContext

    def initialize(self, context: TaskContext) -> None:
        """Called once, before ``start``. Keeps *context*; an override calls this one too."""
        self.context = context

    @abstractmethod
    def start(self, config: Mapping[str, str]) -> None:
        """Open what ``poll`` needs. Called once per micro-batch, on a fresh instance.

        *config* is the task's configuration: one of what ``task_configs`` returned, or for a planned
        connector its own configuration.
        """

    @abstractmethod
    def poll(self) -> Polled:
        """Return the next records, in order.

        A polled task returns ``None`` or an empty sequence when there is nothing now; it may wait for records, but
        checks ``context.stopping()`` at least once a second while it does. A planned task returns
        ``None`` only when its share is finished; an empty sequence means "call again". If its share is followed
        (:attr:`~headrace.connect.connector.Plan.followed`), an empty sequence says that there is nothing now: what
        was read before is then committed without waiting for the end of the interval, so such a task waits for a
        tenth of a second or so, not longer.

        Never return ``None`` because reading failed: raise. The usual mistake is an offset that points *at* a record
        and not after it: the runtime resumes after what the offset describes. Records of one poll that share an
        offset follow each other, and are then committed together.
        """

    def is_idle(self) -> bool:
        """Whether a poll without records means that the source has nothing now; called after such polls.

        A task that is polled, or follows its share, overrides it when looking takes longer than its polls wait: it
        returns false as long as it does not know yet, for example while it still connects, or keeps reading without a
        match. The time after which an idle task ends (``poll.linger.ms``) begins with the first poll without records
        after which this is true.
        """
        return True

    def resumes_cheaply(self) -> bool:
        """Whether a later micro-batch could resume from here at little cost; called between polls.

        A time budget ends the micro-batch of a planned task, and idleness that of a polled one, only where
        this is true. A polled task that must not be opened again and again returns ``False`` and stays, waiting
        in ``poll``. A stop, a run with ``--once``, and the time budget of a polled task do not depend on it, and neither
        does anything that ends a task whose share is followed.
        """
        return True

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Move source offsets without a record (KIP-910). Called directly before each commit at the end of a poll.

        *offsets* is what is about to be committed, filtered records included, with what was committed since the
        last call; neither it nor the offsets in it can be changed. Partitions of the result are added or replace
        those of *offsets*; an offset of ``None`` removes what is stored; partitions left out stay as they are.
        ``None`` changes nothing, and an offset that is committed already changes nothing either. With exactly-once the
        result is part of the same transaction, and an exception fails the task; otherwise an exception is logged and
        the hook is called again at the next commit.

        When it is called, everything that ``poll`` returned has been sent, so that a task may return its own position.
        It is not called at a commit in the middle of what a ``poll`` returned, and not after a ``poll`` that raised
        anything but "nothing now". While nothing is read and no slot is open, the driver starts a task once per
        ``offset.flush.interval.ms`` to call it, with no offsets; with ``transaction.boundary=connector`` only if
        the task requests a commit from its transaction context while it is started.
        """
        return None

    def records_of_commit(self, copied: Sequence[CopiedRun]) -> Iterable[BytesRecord]:
        """Records that become part of the commit that is about to happen; called directly before each one with records.

        *copied* says where those have landed, which Kafka has acknowledged by then: the records of encoded batches, and of
        other batches whose source offset has exactly one column. What a transformation has dropped is a gap. Only for
        the tasks of a connector whose offsets are in a consumer group (:meth:`SourceConnector.offset_group`); a task that
        overrides this waits for its records before each commit. An exception fails the task.

        The topics and partitions of what is returned exist. Without exactly-once it is written after the records and
        before their offsets.
        """
        return ()

    def check_new_topic(self, topic: str, partition: SourcePartition | None) -> None:
        """Refuse, by raising, that *topic*, which is missing, is created for records as ``topic.creation.*`` says.

        Called before the first record is sent to a missing topic, if topics are created so. *partition* is the source
        partition of the record, where it is known. For connectors that create topics themselves, and have to notice when one is gone;
        by default nothing is refused. May raise :class:`~headrace.connect.errors.PartitionError`.
        """

    def commit(self) -> None:
        """Called after each commit, which need not cover every record that ``poll`` returned.

        An exception of a commit hook is logged and changes nothing, because the commit has happened; the
        remaining hooks for this commit are still called.
        """

    def commit_batch(self, batch: SourceBatch) -> None:
        """Called after the commit that covers *batch*: the place to acknowledge it upstream.

        Batches are passed in the order of ``poll``; one that the end of a transaction divides, or that is very large,
        is passed in pieces. After a Spark SQL step they are passed as they are sent, to an instance that was never
        polled. Plain records that ``poll`` returned are passed as the batches that the runtime made of them; a record
        that fits no batch and was skipped is passed as a row of its own with neither key nor value.
        """

    def commit_encoded(self, batches: EncodedBatches) -> None:
        """Called after the commit that covers *batches*, as :meth:`commit_batch` is for decoded ones.

        They are passed in pieces as they were sent, and without their ``data``, which is released when it is sent.
        ``commit_record`` is not called for their records.
        """

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Called after the commit that covers *record*, with its place in Kafka, or ``None`` if filtered.

        Overriding it makes the slot send record by record, which is several times slower: prefer
        ``commit_batch`` where the place in Kafka is not needed. *record* is rebuilt from its batch when
        ``poll`` returned batches, as for a transformation: structs and maps as dictionaries, JSON documents parsed.
        """

    def stop(self) -> None:
        """Close what ``start`` opened. Called once, on the same thread, after the last ``poll``."""
