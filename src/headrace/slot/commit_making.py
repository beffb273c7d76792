"""Which commits a slot makes: where its offsets are written, and who is told of them."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.connect.errors import StaleTokenError
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.slot.channel import ChannelClient
from headrace.slot.commits import (
    AcknowledgedCommits,
    Commits,
    StoreOffsets,
    TransactionalCommits,
    stored_in_topic,
)
from headrace.slot.copied_commits import CopiedCommits
from headrace.slot.work import Delivery, SlotWork
from headrace.storage.offset_codec import encoded_entries


def made_commits(work: SlotWork, sender: Sender, client: ChannelClient) -> Commits:
    """The commits that *work* asks for: records go by *sender*, what is the driver's business by *client*."""
    commits = _commits(work, sender, client)
    if not work.copies_offsets:
        return commits
    return CopiedCommits(commits, CopiesByDriver(client, work.connector), connector=work.connector)


def _commits(work: SlotWork, sender: Sender, client: ChannelClient) -> Commits:
    if work.delivery is Delivery.EXACTLY_ONCE and work.offsets_topic:
        return TransactionalCommits(sender, work.connector, work.offsets_topic)
    store = (
        stored_in_topic(sender, work.offsets_topic)
        if work.offsets_topic
        else stored_by_driver(client)
    )
    return AcknowledgedCommits(sender, work.connector, store)


def stored_by_driver(client: ChannelClient) -> StoreOffsets:
    """Offsets go to the driver, which is the only writer of the worker's file."""

    def store(entries: Sequence[OffsetEntry]) -> None:
        _ask(client, "store", entries)

    return store


class CopiesByDriver:
    """See :class:`~headrace.slot.copied_commits.Copies`. ``StaleTokenError`` when the token was withdrawn."""

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
