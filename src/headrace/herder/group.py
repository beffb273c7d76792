"""A group of workers, as each of them knows it: how it was set up, the topics that it shares, and its members."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from headrace.connect.errors import ConnectError
from headrace.herder.group_protocol import MemberNotes, ProtocolVersion


def worker_name(url: str) -> str:
    """The id of the worker that others reach at *url*, as statuses have it. Pure."""
    return urlsplit(url).netloc


class GroupStorage(Protocol):
    """The topics that the workers of a group share, as far as this worker has read them."""

    def take_lead(self) -> None:
        """Keep an earlier leader from writing, also one that has begun to; raises :class:`~headrace.connect.errors.RetriableError`."""
        ...

    def refresh(self, seconds: float | None = None) -> None:
        """See everything committed before this call, which gives up after *seconds* if they are given; raises ``RetriableError``."""
        ...

    def take_arrived(self) -> None:
        """See what has arrived by now, without waiting."""
        ...

    def follow_configs(self, on_record: Callable[[], object]) -> None:
        """From now on call *on_record* after each record of the config topic, once ``config_offset`` counts it, on whatever thread reads it."""
        ...

    @property
    def descriptors(self) -> Collection[int]:
        """File descriptors that are readable when records have arrived; none while nothing is connected."""
        ...

    def flush(self) -> bool:
        """Wait until the states that were put are written, for some seconds at most; returns whether they are."""
        ...

    @property
    def failure(self) -> ConnectError | None:
        """Why Kafka has not taken states that were put; ``None`` while all is well."""
        ...

    @property
    def config_offset(self) -> int:
        """The offset after the last record of the config topic that was applied: what was stored up to there is found."""
        ...

    def published_tasks(self, connector: str) -> int | None:
        """How many tasks it has that were made from its present configuration; ``None`` while it has none."""
        ...

    def is_fenced(self, connector: str) -> bool:
        """Whether it was stored how many of the connector's present tasks may write (KIP-618)."""
        ...

    def start_number(self, connector: str) -> int:
        """Another number each time a configuration of that connector has been read, also the same one again, or that it is stopped."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What a worker says when it joins *group*: its *url*, with a slash at the end, and how many tasks it runs at once.

    *protocol* is the highest version that it speaks; it speaks those below as well. *max_delay_ms* is
    ``scheduled.rebalance.max.delay.ms``; *hand_over* is how long its connectors may take to be taken over when it leaves, *session*
    ``session.timeout.ms``, both in seconds. With *is_mixed* workers of Kafka Connect may be in the
    group, and *tells_java_leader* has one of them that leads give away at once what this worker has when it leaves.
    """

    group: str
    url: str
    slots: int
    max_delay_ms: int
    hand_over: float = 20.0
    session: float = 10.0
    protocol: ProtocolVersion = ProtocolVersion.SESSIONED
    is_mixed: bool = False
    tells_java_leader: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member of a generation, as its leader knows it: at *url*, with the *connectors* that it has or is given.

    *notes* are ``None`` for a worker of Kafka Connect.
    """

    url: str
    connectors: frozenset[str]
    notes: MemberNotes | None
