"""The two ways in which records and their offsets become permanent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from headrace.connect.errors import TaskFailedError
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.storage.offset_codec import encoded_entries

_OWN_OFFSETS = (
    "Source tasks may not produce to their own offsets topics when exactly-once support is enabled. A record of "
    "connector {connector} is for topic {topic!r}, which holds its source offsets: change the topic, or the "
    "transformation that names it, or name another topic for its offsets (offsets.storage.topic)."
)

StoreOffsets = Callable[[Sequence[OffsetEntry]], None]
"""Hands acknowledged offsets to the driver, and returns when it has stored them."""


class Commits(Protocol):
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
