"""What headrace uses of kafka-python's coordinator, against a broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from uuid import uuid4

import pytest
from confluent_kafka import Consumer

from doubles.cut_connections import Side, side
from headrace.broker import Broker
from headrace.connect.errors import TaskFailedError
from headrace.kafka.client_config import client_config
from headrace.kafka.membership import (
    GroupMembership,
    GroupTiming,
    Joined,
    JoinedMember,
)
from headrace.kafka.wire.settings import wire_settings
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow]

TIMING = GroupTiming(session=6.0, heartbeat=0.5, rebalance=20.0)


@dataclass
class Member:
    """A member that says its name, and as a leader gives everyone the names of all."""

    membership: GroupMembership = field(init=False)
    name: str = "a"
    woken: threading.Event = field(default_factory=threading.Event)
    joined: Joined | None = None
    joins: bool = True
    led: list[int] = field(default_factory=list[int])
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """Two of them, the preferred one first."""
        return [("second", self.name.encode()), ("first", b"old " + self.name.encode())]

    def assign(
        self, generation: int, protocol: str, leader: str, members: Sequence[JoinedMember]
    ) -> Mapping[str, bytes]:
        """The names of all, in the order of the names."""
        self.led.append(generation)
        names = b",".join(sorted(each.metadata for each in members))
        return {each.member_id: names for each in members}

    def start(self) -> None:
        """Join whenever that is needed, on a thread, as a herder does; also again after ``stop``."""
        self._stop.clear()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self.joins and self.membership.needs_join:
                self.joined = self.membership.join(0.5) or self.joined
            else:
                self.membership.keep_alive()
                self.woken.wait(0.2)
                self.woken.clear()

    def stop(self) -> None:
        """Call no more; nothing is said to the group."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(30)

    @property
    def said(self) -> bytes | None:
        """What it was given last."""
        return None if self.joined is None else self.joined.assignment


@pytest.fixture
def new_member(bootstrap: str) -> Iterator[Callable[..., Member]]:
    """Members of one group, which call by themselves."""
    group = f"workers-{uuid4().hex[:8]}"
    with ExitStack() as opened:

        def make(name: str, *, at: str = bootstrap, group: str = group) -> Member:
            member = Member(name=name)
            config = client_config({"bootstrap.servers": at, "client.id": f"worker-{name}"})
            member.membership = GroupMembership(
                wire_settings(config.settings), group, member, timing=TIMING, wake=member.woken.set
            )
            opened.enter_context(closing(member.membership))
            opened.callback(member.stop)
            return member

        yield make


def start_in_order(first: Member, second: Member) -> None:
    """Have *first* lead: when it joins again a rebalance begins, also when it says nothing new."""
    first.start()
    until(lambda: b"a" == first.said)
    second.start()
    until(lambda: b"a,b" == first.said == second.said, seconds=30)


def test_members_agree_and_one_leads(new_member: Callable[..., Member]) -> None:
    """In the protocol that they prefer; the others are given what the leader says, in the same generation."""
    members = [new_member(name) for name in "abc"]
    assert not any(each.membership.holds() for each in members)
    for each in members:
        each.start()
    until(lambda: {b"a,b,c"} == {each.said for each in members}, seconds=30)

    generations = {each.joined.generation for each in members if each.joined}
    assert 1 == len(generations)
    assert {"second"} == {each.joined.protocol for each in members if each.joined}
    assert 1 == len([each for each in members if generations & set(each.led)])
    assert all(each.membership.holds() for each in members)
    found = members[0].membership.described(10)
    assert {each.membership.member_id for each in members} == {each.member_id for each in found}
    assert [b"a,b,c"] * 3 == [each.assignment for each in found]
    assert all(each.metadata for each in found)


def test_a_member_that_leaves_is_missed_at_once_and_a_silent_one_after_its_session(
    new_member: Callable[..., Member],
) -> None:
    """The others join again by themselves."""
    members = first, second, third = [new_member(name) for name in "abc"]
    for each in members:
        each.start()
    until(lambda: {b"a,b,c"} == {each.said for each in members}, seconds=30)

    second.stop()
    second.membership.leave("it is tested", 5)
    assert not second.membership.holds()
    until(lambda: b"a,c" == first.said == third.said, seconds=TIMING.session - 1)

    # Its heartbeats go on, but no one calls: it leaves by itself when a rebalance could have been over.
    third.stop()
    until(lambda: b"a" == first.said, seconds=TIMING.rebalance + TIMING.session)
    until(lambda: not third.membership.holds())


def test_a_member_holds_while_it_waits_for_another(new_member: Callable[..., Member]) -> None:
    """The broker waits for as long as a rebalance may take, and without heartbeats."""
    first, second = new_member("a"), new_member("b")
    start_in_order(first, second)
    second.stop()
    first.membership.request_join()
    until(lambda: first.membership.needs_join)
    held = list[bool]()

    def is_over() -> bool:
        held.append(first.membership.holds())
        return first.said == b"a"

    until(is_over, seconds=TIMING.rebalance + TIMING.session)
    assert all(held)


def test_a_member_is_kept_for_longer_than_its_session_while_another_one_is_slow(
    new_member: Callable[..., Member],
) -> None:
    """It holds all the time, and is the same member after it."""
    first, second = new_member("a"), new_member("b")
    start_in_order(first, second)
    before = first.joined
    second.stop()
    first.membership.request_join()
    until(lambda: second.membership.needs_join)
    began, held = time.monotonic(), list[bool]()

    def is_waited_for() -> bool:
        held.append(first.membership.holds())
        return time.monotonic() > began + TIMING.session + 2

    def is_over() -> bool:
        held.append(first.membership.holds())
        return first.joined != before and not first.membership.needs_join

    until(is_waited_for)
    second.start()
    until(is_over)
    assert all(held)
    assert before is not None
    assert before.member_id == first.membership.member_id
    assert b"a,b" == first.said


def test_a_member_that_does_not_join_again_holds_until_the_group_goes_on_without_it(
    new_member: Callable[..., Member],
) -> None:
    """Its heartbeats are acknowledged up to that moment, and its caller is alive."""
    first, second = new_member("a"), new_member("b")
    start_in_order(first, second)
    second.joins = False
    first.membership.request_join()
    until(lambda: second.membership.needs_join)
    began = time.monotonic()

    until(
        lambda: not second.membership.holds() or first.said == b"a",
        seconds=TIMING.rebalance + TIMING.session,
    )
    assert not second.membership.holds(), "the group went on before it gave itself up"
    assert time.monotonic() > began + TIMING.session
    until(lambda: b"a" == first.said, seconds=TIMING.session)


@pytest.fixture(scope="module")
def linked_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """A broker of this module's own, with a link that stalls."""
    with side(tmp_path_factory.mktemp("linked-broker")) as made:
        yield made


@pytest.mark.timeout(120)
def test_a_member_that_is_cut_off_in_a_rebalance_does_not_hold_when_the_group_goes_on(
    new_member: Callable[..., Member], linked_broker: Side
) -> None:
    """The broker answers its join, and waits for it no more; the answer is lost. It joins again when the link is back."""
    first = new_member("a", at=linked_broker.bootstrap)
    second = new_member("b", at=linked_broker.broker.bootstrap)
    start_in_order(first, second)
    second.stop()
    first.membership.request_join()
    until(lambda: second.membership.needs_join)
    assert first.membership.holds()

    linked_broker.connections.stall()
    second.start()
    until(lambda: not first.membership.holds(), seconds=TIMING.session - TIMING.heartbeat + 1)
    assert b"b" != second.said
    until(lambda: b"b" == second.said, seconds=2 * TIMING.session)
    assert not first.membership.holds()

    linked_broker.connections.resume()
    until(lambda: b"a,b" == first.said == second.said and first.membership.holds(), seconds=60)


def test_a_group_of_consumers_is_not_joined(
    bootstrap: str, new_member: Callable[..., Member]
) -> None:
    """The error says what to choose."""
    group, topic = f"consumers-{uuid4().hex[:8]}", Topics(bootstrap).create("consumed")
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})

    def is_member() -> bool:
        consumer.poll(0.1)
        return bool(consumer.assignment())

    with closing(consumer):
        consumer.subscribe([topic])
        until(is_member, seconds=30)
        member = new_member("a", group=group)
        with pytest.raises(TaskFailedError, match=r"InconsistentGroupProtocol.*another group\.id"):
            until(lambda: member.membership.join(1), seconds=30)


@pytest.mark.timeout(180)
def test_an_outage_moves_nothing(new_member: Callable[..., Member], broker: Broker) -> None:
    """Members hold again after it; while their brokers are away longer than the session, they do not."""
    members = [new_member(name, at=broker.bootstrap) for name in "ab"]
    for each in members:
        each.start()
    until(lambda: {b"a,b"} == {each.said for each in members}, seconds=60)
    broker.kill()
    until(lambda: not any(each.membership.holds() for each in members), seconds=30)
    broker.start()

    until(lambda: all(each.membership.holds() for each in members), seconds=90)
    assert {b"a,b"} == {each.said for each in members}
