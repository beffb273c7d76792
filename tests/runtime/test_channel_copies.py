"""Copies over the channel while the store that they go to is away."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.connect.partition import SourcePartition
from headrace.kafka.sender import OffsetEntry
from headrace.runtime.channel_server import Channel
from headrace.runtime.micro_batch import MicroBatch
from headrace.task import channel as slot_channel
from headrace.task.channel import ChannelClient
from headrace.task.slot_work import SlotTicket
from headrace.task.transactions import DriverOffsetCopier
from runtime.test_micro_batch import micro_batch
from waiting import until

A = SourcePartition(file="a")
Entries = list[OffsetEntry]


class Away:
    """A store that blocks until it is back."""

    def __init__(self) -> None:
        self.is_asked = threading.Event()
        self.is_back = threading.Event()
        self.written: list[Entries] = []

    def write(self, entries: Sequence[OffsetEntry]) -> None:
        """Write, once it is back."""
        self.is_asked.set()
        assert self.is_back.wait(20)
        self.written.append(list(entries))


@pytest.fixture
def away() -> Away:
    """The worker's store."""
    return Away()


@pytest.fixture
def batch() -> MicroBatch:
    """Two slots."""
    return micro_batch(2)


@pytest.fixture
def tickets(away: Away, batch: MicroBatch) -> Iterator[list[SlotTicket]]:
    """Of the two."""
    channel = Channel(
        lambda _: None,
        copy_first=away.write,
        copy_later=lambda entries: away.written.append(list(entries)),
    )
    yield channel.open(batch)
    away.is_back.set()
    channel.close()


def _remove(client: ChannelClient) -> str:
    try:
        DriverOffsetCopier(client, "c").first({A: None})
    except (RetriableError, StaleTokenError) as error:
        return type(error).__name__
    return "stored"


@pytest.mark.parametrize("slot", [0, 1])
def test_heartbeats_are_answered_while_a_removal_waits_for_its_store(
    away: Away, tickets: list[SlotTicket], slot: int
) -> None:
    """Of the slot that removes, which has another connection for them, and of others."""
    with (
        ThreadPoolExecutor(1) as pool,
        ChannelClient(tickets[0]) as client,
        ChannelClient(tickets[slot]) as lease,
    ):
        removal = pool.submit(_remove, client)
        assert away.is_asked.wait(20)
        answer = lease.ask("beat", progress={})
        before = removal.done()
        away.is_back.set()

        assert (True, False, "stored") == (answer["valid"], before, removal.result(20))


def test_whoever_loses_the_token_meanwhile_hears_of_it(
    away: Away, tickets: list[SlotTicket], batch: MicroBatch
) -> None:
    """So it does not remove the offset where it counts: its successor may have a newer one there."""
    with ThreadPoolExecutor(2) as pool, ChannelClient(tickets[0]) as client:
        removal = pool.submit(_remove, client)
        assert away.is_asked.wait(20)
        withdrawal = pool.submit(batch.withdraw)
        until(lambda: not batch.is_valid(tickets[0].token))
        away.is_back.set()

        assert "StaleTokenError" == removal.result(20)
        assert 2 == len(withdrawal.result(20))


def test_a_copy_that_arrives_behind_a_removal_is_not_taken(
    away: Away, tickets: list[SlotTicket]
) -> None:
    """Its slot heard no answer in time and continued, on another connection."""
    away.is_back.set()
    with ChannelClient(tickets[0]) as client:
        late = {"entries": [["key", "value"]], "number": 1}
        DriverOffsetCopier(client, "c").later({A: {"at": 1}})
        DriverOffsetCopier(client, "c").first({A: None})
        answer = client.ask("copy_later", **late)

    assert not answer["stored"]
    assert [b'{"at":1}', None] == [entries[0][1] for entries in away.written]


def test_a_slot_waits_for_a_removal_for_longer_than_for_an_answer(
    away: Away, tickets: list[SlotTicket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the store says about being away is worth more than that no one answered."""
    monkeypatch.setattr(slot_channel, "_ANSWER_SECONDS", 0.2)
    with ThreadPoolExecutor(1) as pool, ChannelClient(tickets[0]) as client:
        removal = pool.submit(_remove, client)
        assert away.is_asked.wait(20)
        with pytest.raises(TimeoutError):
            removal.result(0.6)
        away.is_back.set()

        assert "stored" == removal.result(20)
