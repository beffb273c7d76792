"""Where a transaction is committed: records and offsets in one, or offsets once their records are acknowledged."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.connect.errors import (
    RetriableError,
    StaleTokenError,
    TaskFailedError,
)
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import GroupSender, OffsetEntry, Sender
from headrace.offsets.codec import encoded_entries
from headrace.offsets.group_codec import codec_of, group_change
from headrace.offsets.target import DriverStore, OffsetTopic, TargetGroup
from headrace.task.channel import ChannelClient
from headrace.task.connector_spec import ConnectorSpec
from headrace.task.slot_work import SlotWork

_log = logging.getLogger(__name__)

_OWN_OFFSETS = (
    "Source tasks may not produce to their own offsets topics when exactly-once support is enabled. A record of "
    "connector {connector} is destined for topic {topic!r}, which holds its source offsets: change the topic, or the "
    "transformation that sets it, or use another topic for its offsets (offsets.storage.topic)."
)

StoreOffsets = Callable[[Offsets], None]
"""Stores offsets of acknowledged records; returns when they are stored."""


class CommitStrategy(Protocol):
    """Makes what was sent since the last commit permanent. Used by the writer, on the slot's thread."""

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
        """Called before ``update_offsets``: the offsets that it is shown must be final by then."""
        ...

    def commit(self, offsets: Offsets) -> bool:
        """Make everything sent so far, and *offsets*, permanent; ``False`` when there was nothing to do."""
        ...

    def abort(self) -> bool:
        """Abort what was sent since the last commit, if possible; returns whether anything was aborted."""
        ...


class OffsetSending(Protocol):
    """How offsets reach their store with the sender of the records."""

    def refuse(self, topic: str) -> None:
        """Raise :class:`~headrace.connect.errors.TaskFailedError` if records must not go to *topic*."""
        ...

    def sends(self, offsets: Offsets) -> bool:
        """Whether anything of *offsets* is handed over before the commit."""
        ...

    def send(self, offsets: Offsets) -> None:
        """Hand over *offsets*; called directly before a commit, or after everything sent is acknowledged."""
        ...

    def finish(self, offsets: Offsets) -> bool:
        """Do what is left to do after the commit; returns whether that was anything."""
        ...


class OffsetsToTopic:
    """Offsets are records of an offsets *topic* (KIP-618)."""

    def __init__(self, sender: Sender, connector: str, topic: str) -> None:
        self._sender = sender
        self._connector = connector
        self._topic = topic

    def refuse(self, topic: str) -> None:
        """Raise for the topic that holds the offsets."""
        if topic == self._topic:
            raise TaskFailedError(_OWN_OFFSETS.format(connector=self._connector, topic=topic))

    def sends(self, offsets: Offsets) -> bool:
        """All of them, removals included: these are tombstones."""
        return bool(offsets)

    def send(self, offsets: Offsets) -> None:
        """See :class:`OffsetSending`."""
        self._sender.send_offsets(self._topic, encoded_entries(self._connector, offsets))

    def finish(self, offsets: Offsets) -> bool:
        """Nothing is left to do."""
        return False

    def store(self, offsets: Offsets) -> None:
        """Store *offsets* without a transaction."""
        self.send(offsets)
        self._sender.flush()


class OffsetsToGroup:
    """Offsets are entries of a consumer group on the cluster that the records go to (KIP-656).

    Kafka removes entries outside of transactions only: removals come after the commit, and if the task dies in
    between, what was to be removed is still there.
    """

    def __init__(self, sender: GroupSender, target: TargetGroup) -> None:
        self._sender = sender
        self._target = target
        self._codec = codec_of(target)

    def refuse(self, topic: str) -> None:
        """Do nothing: no topic that records could go to holds the offsets."""

    def sends(self, offsets: Offsets) -> bool:
        """All but the removals."""
        return any(each is not None for each in offsets.values())

    def send(self, offsets: Offsets) -> None:
        """See :class:`OffsetSending`."""
        change = group_change(self._target, self._codec, offsets)
        self._sender.send_group_offsets(change.group, change.entries)

    def finish(self, offsets: Offsets) -> bool:
        """Remove what is to be removed."""
        removed = {each: offset for each, offset in offsets.items() if offset is None}
        change = group_change(self._target, self._codec, removed)
        if change.removed:
            self._sender.delete_group_offsets(change.group, change.removed)
        return bool(change.removed)

    def store(self, offsets: Offsets) -> None:
        """Store *offsets* without a transaction."""
        if self.sends(offsets):
            self.send(offsets)
        self.finish(offsets)


class TransactionalCommitStrategy:
    """Records and offsets in one Kafka transaction; the offsets go where *offsets* sends them."""

    update_must_succeed = True
    in_transactions = True

    def __init__(self, sender: Sender, offsets: OffsetSending) -> None:
        self._sender = sender
        self._offsets = offsets
        self._open = False

    def before_records(self, topic: str) -> None:
        """Begin a transaction unless one is open; raises for the topic that holds the offsets."""
        self._offsets.refuse(topic)
        self._begin()

    def settle(self) -> None:
        """Do nothing: the transaction settles everything at once."""

    def commit(self, offsets: Offsets) -> bool:
        """Commit the open transaction, or a new one with only *offsets*."""
        if self._offsets.sends(offsets):
            self._begin()
            self._offsets.send(offsets)
        was_open = self._open
        if was_open:
            self._sender.commit()
            self._open = False
        return self._offsets.finish(offsets) or was_open

    def abort(self) -> bool:
        """Abort the open transaction; returns whether there was one."""
        if not self._open:
            return False
        self._sender.abort()
        self._open = False
        return True

    def _begin(self) -> None:
        if not self._open:
            self._sender.begin()
            self._open = True


class AcknowledgedCommitStrategy:
    """Offsets are stored once the broker has acknowledged every record that they cover."""

    update_must_succeed = False
    in_transactions = False

    def __init__(self, sender: Sender, store: StoreOffsets) -> None:
        self._sender = sender
        self._store = store

    def before_records(self, topic: str) -> None:
        """Do nothing: there is no transaction."""

    def settle(self) -> None:
        """Wait until everything sent is acknowledged."""
        self._sender.flush()

    def commit(self, offsets: Offsets) -> bool:
        """Store *offsets*, after everything sent is acknowledged."""
        self._sender.flush()
        if not offsets:
            return False
        self._store(offsets)
        return True

    def abort(self) -> bool:
        """Return ``False``: sent records cannot be taken back, only their offsets do not move."""
        return False


class OffsetCopier(Protocol):
    """Copies offsets to the worker's store, through the driver, which is its only writer."""

    def first(self, offsets: Offsets) -> None:
        """Write *offsets* and return when they are stored; raises ``RetriableError`` when that failed."""
        ...

    def later(self, offsets: Offsets) -> None:
        """Hand *offsets* over, to be written soon; raises ``RetriableError`` when the driver did not receive them.

        Raises ``StaleTokenError`` when the token was withdrawn.
        """
        ...


class CopyingCommitStrategy:
    """*commits*, with secondary offsets: values are copied after the commit, removals, which must succeed, before it.

    A value that was copied before its commit would stay if the commit is aborted, and records would be skipped. An
    offset that was removed from the primary store first could be read again from the secondary one.
    """

    def __init__(self, commits: CommitStrategy, copier: OffsetCopier, *, connector: str) -> None:
        self._commits = commits
        self._copier = copier
        self._connector = connector
        self._left: dict[SourcePartition, SourceOffset] = {}
        self.update_must_succeed = commits.update_must_succeed
        self.in_transactions = commits.in_transactions

    def before_records(self, topic: str) -> None:
        """See :class:`CommitStrategy`."""
        self._commits.before_records(topic)

    def settle(self) -> None:
        """See :class:`CommitStrategy`."""
        self._commits.settle()

    def commit(self, offsets: Offsets) -> bool:
        """Make everything sent so far, and *offsets*, permanent; then have them copied."""
        self._remove([each for each, offset in offsets.items() if offset is None])
        is_done = self._commits.commit(offsets)
        self._copy({each: offset for each, offset in offsets.items() if offset is not None})
        return is_done

    def abort(self) -> bool:
        """See :class:`CommitStrategy`."""
        return self._commits.abort()

    def _remove(self, partitions: list[SourcePartition]) -> None:
        if not partitions:
            return
        for each in partitions:
            self._left.pop(each, None)
        self._copier.first(dict.fromkeys(partitions))

    def _copy(self, values: dict[SourcePartition, SourceOffset]) -> None:
        self._left.update(values)
        if not self._left:
            return
        try:
            self._copier.later(self._left)
        except (RetriableError, StaleTokenError) as error:
            # They are committed, even if the token was withdrawn since: the task's hooks must be called.
            _log.warning(
                "Offsets of %s are committed but not yet copied to the worker's offset store: %s They are copied with "
                "the next ones.",
                self._connector,
                error,
            )
        else:
            self._left = {}


def make_commit_strategy(work: SlotWork, sender: Sender, client: ChannelClient) -> CommitStrategy:
    """The commit strategy for *work*: records are sent by *sender*, the driver is reached through *client*."""
    commits = _strategy_without_copies(work.spec, sender, client)
    if not (isinstance(work.spec.offsets, OffsetTopic) and work.spec.offsets.has_secondary):
        return commits
    connector = work.spec.name
    return CopyingCommitStrategy(
        commits, DriverOffsetCopier(client, connector), connector=connector
    )


def _strategy_without_copies(
    spec: ConnectorSpec, sender: Sender, client: ChannelClient
) -> CommitStrategy:
    match spec.offsets:
        case DriverStore():
            return AcknowledgedCommitStrategy(sender, stored_by_driver(client, spec.name))
        case OffsetTopic(name=topic):
            offsets = OffsetsToTopic(sender, spec.name, topic)
        case TargetGroup() as target:
            assert isinstance(sender, GroupSender), "the sender is chosen by where the offsets are"
            offsets = OffsetsToGroup(sender, target)
    if spec.exactly_once:
        return TransactionalCommitStrategy(sender, offsets)
    return AcknowledgedCommitStrategy(sender, offsets.store)


def stored_by_driver(client: ChannelClient, connector: str) -> StoreOffsets:
    """Stores offsets through the driver, which is the only writer of the worker's file."""

    def store(offsets: Offsets) -> None:
        _ask(client, "store", encoded_entries(connector, offsets))

    return store


class DriverOffsetCopier:
    """An :class:`OffsetCopier` over the channel. Raises ``StaleTokenError`` when the token was withdrawn."""

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
