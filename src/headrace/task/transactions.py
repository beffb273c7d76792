"""How records and their offsets become permanent: in a transaction, or acknowledged; secondary offsets; what is late."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.connect.errors import (
    RetriableError,
    StaleTokenError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.offsets.codec import encoded_entries
from headrace.offsets.target import DriverStore, OffsetTopic, TargetGroup
from headrace.task.channel import ChannelClient
from headrace.task.work import BoundaryKind, ConnectorSpec, SlotWork

_OWN_OFFSETS = (
    "Source tasks may not produce to their own offsets topics when exactly-once support is enabled. A record of "
    "connector {connector} is for topic {topic!r}, which holds its source offsets: change the topic, or the "
    "transformation that names it, or name another topic for its offsets (offsets.storage.topic)."
)

StoreOffsets = Callable[[Sequence[OffsetEntry]], None]
"""Hands acknowledged offsets to the driver, and returns when it has stored them."""


class CommitStrategy(Protocol):
    """Ends what was sent since the last commit. Used by the writing half, on the slot's thread."""

    update_must_succeed: bool
    """Whether a failure of ``update_offsets`` fails the task, because it is part of the commit."""
    in_transactions: bool
    """Whether a commit is one transaction with all its records."""

    def before_records(self, topic: str) -> None:
        """Called before records for *topic* are handed to the sender.

        Raises :class:`~headrace.connect.errors.TaskFailedError` for a topic that they must not go to.
        """
        ...

    def settle(self) -> None:
        """Called before ``update_offsets`` is asked: what it is shown must be true by then."""
        ...

    def commit(self, offsets: Offsets) -> bool:
        """Make everything sent so far, and *offsets*, permanent; ``False`` when there was nothing to do."""
        ...

    def abort(self) -> bool:
        """Throw away what was sent since the last commit, as far as that is possible; whether anything was."""
        ...


class TransactionalCommits:
    """Records and offsets in one Kafka transaction (KIP-618)."""

    update_must_succeed = True
    in_transactions = True

    def __init__(
        self,
        sender: Sender,
        connector: str,
        offsets_topic: str,
    ) -> None:
        self._sender = sender
        self._connector = connector
        self._offsets_topic = offsets_topic
        self._open = False

    def before_records(self, topic: str) -> None:
        """Begin a transaction unless one is open; refuses the topic that holds the offsets."""
        if topic == self._offsets_topic:
            raise TaskFailedError(_OWN_OFFSETS.format(connector=self._connector, topic=topic))
        self._begin()

    def settle(self) -> None:
        """Nothing: the transaction settles everything at once."""

    def commit(self, offsets: Offsets) -> bool:
        """Commit the open transaction, or one with nothing but *offsets*."""
        entries = encoded_entries(self._connector, offsets)
        if not entries and not self._open:
            return False
        self._begin()
        if entries:
            self._sender.send_offsets(self._offsets_topic, entries)
        self._sender.commit()
        self._open = False
        return True

    def abort(self) -> bool:
        """Abort the open transaction; whether there was one."""
        if not self._open:
            return False
        self._sender.abort()
        self._open = False
        return True

    def _begin(self) -> None:
        if not self._open:
            self._sender.begin()
            self._open = True


class AcknowledgedCommits:
    """Offsets are stored once the broker has acknowledged every record that they cover."""

    update_must_succeed = False
    in_transactions = False

    def __init__(
        self,
        sender: Sender,
        connector: str,
        store: StoreOffsets,
    ) -> None:
        self._sender = sender
        self._connector = connector
        self._store = store

    def before_records(self, topic: str) -> None:
        """Nothing: there is no transaction."""

    def settle(self) -> None:
        """Wait until everything sent is acknowledged."""
        self._sender.flush()

    def commit(self, offsets: Offsets) -> bool:
        """Store *offsets*, after everything sent is acknowledged."""
        self._sender.flush()
        entries = encoded_entries(self._connector, offsets)
        if not entries:
            return False
        self._store(entries)
        return True

    def abort(self) -> bool:
        """Nothing can be taken back; the offsets just do not move."""
        return False


def stored_in_topic(sender: Sender, topic: str) -> StoreOffsets:
    """Offsets go to a Kafka topic by the sender that sent the records."""

    def store(entries: Sequence[OffsetEntry]) -> None:
        sender.send_offsets(topic, entries)
        sender.flush()

    return store


_log = logging.getLogger(__name__)


class Copies(Protocol):
    """The driver's hands: it alone writes to the worker's store."""

    def first(self, offsets: Offsets) -> None:
        """Write *offsets* and return when they are stored; raises ``RetriableError`` when that failed."""
        ...

    def later(self, offsets: Offsets) -> None:
        """Hand *offsets* over, to be written soon; raises ``RetriableError`` when the driver did not hear.

        ``StaleTokenError`` when it does not listen to this slot any more.
        """
        ...


class CopiedCommits:
    """*commits* with copies: values after the commit, and removals, which must succeed, before it.

    A value that was copied before its commit would stay when that is aborted, and records be passed over. One
    that is removed from the place that counts first would be read from the other one again.
    """

    def __init__(self, commits: CommitStrategy, copies: Copies, *, connector: str) -> None:
        self._commits = commits
        self._copies = copies
        self._connector = connector
        self._left: dict[SourcePartition, SourceOffset] = {}
        self.update_must_succeed = commits.update_must_succeed
        self.in_transactions = commits.in_transactions

    def before_records(self, topic: str) -> None:
        """As without copies."""
        self._commits.before_records(topic)

    def settle(self) -> None:
        """As without copies."""
        self._commits.settle()

    def commit(self, offsets: Offsets) -> bool:
        """Make everything sent so far, and *offsets*, permanent; then have them copied."""
        self._remove([each for each, offset in offsets.items() if offset is None])
        is_done = self._commits.commit(offsets)
        self._copy({each: offset for each, offset in offsets.items() if offset is not None})
        return is_done

    def abort(self) -> bool:
        """As without copies."""
        return self._commits.abort()

    def _remove(self, partitions: list[SourcePartition]) -> None:
        if not partitions:
            return
        for each in partitions:
            self._left.pop(each, None)
        self._copies.first(dict.fromkeys(partitions))

    def _copy(self, values: dict[SourcePartition, SourceOffset]) -> None:
        self._left.update(values)
        if not self._left:
            return
        try:
            self._copies.later(self._left)
        except (RetriableError, StaleTokenError) as error:
            # It is committed, whatever became of the token since: hooks must hear of it.
            _log.warning(
                "Offsets of %s are committed, and not copied to the worker's: %s They are handed over with the next "
                "ones.",
                self._connector,
                error,
            )
        else:
            self._left = {}


def made_commits(work: SlotWork, sender: Sender, client: ChannelClient) -> CommitStrategy:
    """The commits that *work* asks for: records go by *sender*, what is the driver's business by *client*."""
    commits = _commits(work.spec, sender, client)
    if not (isinstance(work.spec.offsets, OffsetTopic) and work.spec.offsets.has_secondary):
        return commits
    connector = work.spec.name
    return CopiedCommits(commits, CopiesByDriver(client, connector), connector=connector)


def _commits(spec: ConnectorSpec, sender: Sender, client: ChannelClient) -> CommitStrategy:
    match spec.offsets:
        case OffsetTopic(name=topic) if spec.exactly_once:
            return TransactionalCommits(sender, spec.name, topic)
        case OffsetTopic(name=topic):
            return AcknowledgedCommits(sender, spec.name, stored_in_topic(sender, topic))
        case DriverStore():
            return AcknowledgedCommits(sender, spec.name, stored_by_driver(client))
        case TargetGroup(group_id=group):
            raise TaskFailedError(
                f"Connector {spec.name}: offsets of a source task are not committed to the consumer group {group}."
            )


def stored_by_driver(client: ChannelClient) -> StoreOffsets:
    """Offsets go to the driver, which is the only writer of the worker's file."""

    def store(entries: Sequence[OffsetEntry]) -> None:
        _ask(client, "store", entries)

    return store


class CopiesByDriver:
    """See :class:`~headrace.task.transactions.Copies`. ``StaleTokenError`` when the token was withdrawn."""

    def __init__(self, client: ChannelClient, connector: str) -> None:
        self._client = client
        self._connector = connector

    def first(self, offsets: Offsets) -> None:
        """Write *offsets* and return when they are stored."""
        _ask(self._client, "copy_first", encoded_entries(self._connector, offsets))

    def later(self, offsets: Offsets) -> None:
        """Hand *offsets* over."""
        _ask(self._client, "copy_later", encoded_entries(self._connector, offsets))


def _ask(client: ChannelClient, verb: str, entries: Sequence[OffsetEntry]) -> None:
    texts = [(key.decode(), None if value is None else value.decode()) for key, value in entries]
    answer = client.ask(verb, entries=texts)
    if answer["stored"] is not True:
        raise StaleTokenError(answer["reason"])


class TransactionTooLongError(TransactionTimedOutError):
    """It would be as long again, because where it ends is not ours to say: a person has to look at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """What a transaction was: the *boundary* it went to, and the *records* that were sent in it so far.

    *held_back* says that its time was over within a poll, where no offset lay between two records.
    """

    boundary: BoundaryKind
    records: int
    held_back: bool


def too_long_again(
    error: TransactionTimedOutError, was: OpenTransaction
) -> TransactionTooLongError | None:
    """The error that a person has to see; ``None`` where the work may be planned again, as *error* says."""
    if error.in_outage or (was.boundary is BoundaryKind.INTERVAL and not was.held_back):
        return None
    whole, advice = _TOO_LONG[was.boundary]
    return TransactionTooLongError(
        f"{error} With transaction.boundary={was.boundary} {whole}. This one was open for "
        f"{error.open_seconds:.0f} s with {was.records} records sent, and transaction.timeout.ms is "
        f"{error.timeout_seconds * 1000:.0f}; it would be as long when it is tried again. {advice}",
        open_seconds=error.open_seconds,
        timeout_seconds=error.timeout_seconds,
        in_outage=error.in_outage,
    )


_RAISE = "set producer.override.transaction.timeout.ms to more."

_TOO_LONG = {
    BoundaryKind.POLL: (
        "all that one poll returns is one transaction",
        f"Have each poll return less, leave transaction.boundary out, or {_RAISE}",
    ),
    BoundaryKind.CONNECTOR: (
        "a transaction goes on until the connector ends it",
        f"Choose another boundary, have the connector end its transactions earlier, or {_RAISE}",
    ),
    BoundaryKind.INTERVAL: (
        "records of one poll that share a source offset are in one transaction",
        f"Have the connector give its records offsets of their own, or {_RAISE}",
    ),
}


def never_ended(open_seconds: float, timeout_seconds: float) -> str:
    """What a person has to see of a connector's transaction that was open while others waited for its slot."""
    whole, advice = _TOO_LONG[BoundaryKind.CONNECTOR]
    return (
        f"The task has not ended its transaction for {open_seconds:.0f} s: with transaction.boundary="
        f"{BoundaryKind.CONNECTOR} {whole}, and transaction.timeout.ms is {timeout_seconds * 1000:.0f}. {advice}"
    )
