"""Changes of offsets that people ask for: what is kept of them, and what finishes one after a kill. Protocols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.protocols import StoredConnector


class Operation(StrEnum):
    """What was asked for."""

    ALTER = "alter"
    RESET = "reset"
    CREATE = "create"
    UNDO = "undo"


class Phase(StrEnum):
    """What is to become of a change that is not over."""

    WRITING = "writing"
    """Its offsets are being written: the change stands if the store shows them."""
    UNDOING = "undoing"
    """It failed, and was answered with an error: the offsets before it are put back."""
    WIPING = "wiping"
    """A creation that failed behind its offsets: the connector's name shall have none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """One change of a connector's offsets. *id* counts up, and is 0 before the entry is stored.

    *who* asked for it, if that is known, and when, in milliseconds since 1970. *before* and *after* hold
    the partitions that changed, and only these; ``None`` stands for no offset. *done* is false while it goes
    on, and for one that failed. *undoes* is the change that this one takes back. *of_deleted* says that the
    connector was deleted since: one of the same name is another.
    """

    id: int = 0
    connector: str
    operation: Operation
    who: str | None
    at_ms: int
    before: Offsets
    after: Offsets
    done: bool = False
    undoes: int | None = None
    of_deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """A change that is not over. *stored* is the connector that a creation stores with it."""

    entry: HistoryEntry
    stored: StoredConnector | None = None
    phase: Phase = Phase.WRITING


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much history is kept: so many changes of each connector, none older than *days*."""

    entries: int = 100
    days: int = 365

    def oldest_ms(self, now_ms: int) -> int:
        """The earliest time of a change that is kept."""
        return now_ms - self.days * 86_400_000


class HistoryStore(Protocol):
    """The changes of offsets that were asked for. Any thread may call."""

    def entries(self, connector: str) -> Sequence[HistoryEntry]:
        """The changes of *connector*, the newest first; they outlive the connector."""
        ...


class IntentStore(Protocol):
    """Changes that are not over, each with its entry in the history. Durable on return of each write.

    Any thread may call. Writes raise :class:`~headrace.connect.errors.RetriableError` when the disk
    refuses; nothing of them is stored then.
    """

    def open_intents(self) -> Sequence[Intent]:
        """Those that are not over, the oldest first."""
        ...

    def begin(self, intent: Intent, keep: Retention) -> Intent:
        """Store *intent* and its entry, which gets its number, and forget what *keep* does not keep."""
        ...

    def move(self, intent: Intent, phase: Phase) -> Intent:
        """Store what is to become of it."""
        ...

    def finish(self, intent: Intent, entries: Sequence[OffsetEntry] = ()) -> None:
        """In one transaction: mark the change done, store its connector, end the intent.

        And *entries* with them, where the offsets are in the same storage; the offset store knows of them.
        The caller keeps its other users away from the offset store meanwhile.
        """
        ...

    def abandon(self, intent: Intent) -> None:
        """End the intent; its entry stays as one that was not done."""
        ...


class ChangeStore(HistoryStore, IntentStore, Protocol):
    """Both, in one storage."""
