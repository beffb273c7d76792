"""A join that ends while no one waits for it, with the loop of kafka-python's coordinator and no broker."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from kafka.coordinator.base import BaseCoordinator, Generation
from kafka.errors import CoordinatorLoadInProgressError, KafkaError, KafkaTimeoutError

from headrace.kafka import membership
from headrace.kafka.client_config import client_config
from headrace.kafka.membership import GroupMembership, Joined, JoinedMember
from headrace.kafka.wire.settings import wire_settings

SETTINGS = wire_settings(client_config({"bootstrap.servers": "localhost:1"}).settings)


@dataclass
class Task:
    """What the library began, which ends when the test says so."""

    begun: Callable[[], Coroutine[Any, Any, bytes]]
    answer: bytes = b""
    failure: KafkaError | None = None
    is_done: bool = False

    def end(self) -> None:
        """The broker has answered."""
        self.is_done = True
        try:
            self.answer = ended(self.begun())
        except KafkaError as error:
            self.failure = error


def ended(coroutine: Coroutine[Any, Any, Any]) -> Any:  # noqa: ANN401 (what the coroutine says)
    """The answer of one that waits for nothing."""
    with pytest.raises(StopIteration) as found:
        coroutine.send(None)
    return found.value.value


@dataclass
class Network:
    """The library's client, its network and its manager of connections, on the thread that calls."""

    begun: list[Task] = field(default_factory=list[Task])
    answers_in_time: bool = True
    cluster: None = None

    @property
    def _net(self) -> Network:
        return self

    @property
    def _manager(self) -> Network:
        return self

    def start(self) -> None:
        """There is no thread."""

    def get_broker_version(self, timeout_ms: float) -> tuple[int, int]:
        """Of any broker that is new enough."""
        return (4, 0)

    def call_soon_threadsafe(self, called: object) -> None:
        """What runs again and again does not run here."""

    def run(self, called: Callable[..., Coroutine[Any, Any, bool]], *given: object) -> bool:
        """At once."""
        return bool(ended(called(*given)))

    async def sleep(self, seconds: float) -> None:
        """No one has to wait."""

    def call_soon(self, called: Callable[[], Coroutine[Any, Any, bytes]]) -> Task:
        """Only a join is begun in this way."""
        self.begun.append(Task(called))
        return self.begun[-1]

    async def wait_for(self, task: Task, timeout_ms: float | None) -> bytes:
        """For as long as the test says."""
        if not task.is_done:
            if not self.answers_in_time:
                raise KafkaTimeoutError
            task.end()
        if task.failure is not None:
            raise task.failure
        return task.answer


class Role:
    """It decides nothing."""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """None."""
        return []

    def assign(
        self, generation: int, protocol: str, leader: str, members: Sequence[JoinedMember]
    ) -> Mapping[str, bytes]:
        """Nothing."""
        return {}


@dataclass
class Group:
    """A membership, and a broker that gives each of its joins the next generation."""

    network: Network = field(default_factory=Network)
    joins: int = 0
    failures: list[KafkaError] = field(default_factory=list[KafkaError])
    membership: GroupMembership = field(init=False)

    def __post_init__(self) -> None:
        self.membership = GroupMembership(SETTINGS, "g", Role(), wake=lambda: None)

    def joined(self, *, in_time: bool) -> int | None:
        """The generation that a call of ``join`` ends with, if it does."""
        self.network.answers_in_time = in_time
        found: Joined | None = self.membership.join(0.1)
        if found is None:
            return None
        assert (b"given in %d" % found.generation, "me") == (found.assignment, found.member_id)
        return found.generation

    def removes_it(self) -> None:
        """The broker says that it does not know the member any more."""
        coordinator = self.membership._coordinator
        assert coordinator is not None
        coordinator.reset_generation()


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Group:
    """One whose broker is near."""
    group = Group()

    async def join_and_sync(coordinator: Any) -> bytes:  # noqa: ANN401 (the library's own)
        group.joins += 1
        if group.failures:
            raise group.failures.pop()
        coordinator._generation = Generation(group.joins, "me", "sessioned")
        return b"given in %d" % group.joins

    async def ready(coordinator: object, timeout_ms: float | None = None) -> bool:
        return True

    monkeypatch.setattr(membership, "KafkaNetClient", lambda **_settings: group.network)
    monkeypatch.setattr(BaseCoordinator, "_do_join_and_sync_async", join_and_sync)
    monkeypatch.setattr(BaseCoordinator, "ensure_coordinator_ready_async", ready)
    monkeypatch.setattr(BaseCoordinator, "_maybe_start_heartbeat_loop", lambda _self: None)
    return group


def test_a_join_that_ends_between_two_calls_is_the_next_ones_answer(group: Group) -> None:
    """Joined again, the member would never know of that generation, and the others would have to join once more."""
    assert group.joined(in_time=False) is None
    group.network.begun[0].end()

    assert (1, 1) == (group.joined(in_time=True), group.joins)
    assert not group.membership.needs_join


def test_each_answer_counts_once(group: Group) -> None:
    """A join that is asked for after it is another one, whether the last ended in a call or between two."""
    assert 1 == group.joined(in_time=True)
    group.membership.request_join()
    assert group.joined(in_time=False) is None
    group.network.begun[1].end()
    assert 2 == group.joined(in_time=True)
    group.membership.request_join()

    assert (3, 3) == (group.joined(in_time=True), group.joins)


def test_an_answer_to_a_member_that_was_removed_since_is_none(group: Group) -> None:
    """It joins again, rather than take what others have by now."""
    assert group.joined(in_time=False) is None
    group.network.begun[0].end()
    group.removes_it()

    assert (2, 2) == (group.joined(in_time=True), group.joins)


def test_a_join_that_fails_between_two_calls_is_tried_again(group: Group) -> None:
    """There is no answer to be taken."""
    group.failures.append(CoordinatorLoadInProgressError())
    assert group.joined(in_time=False) is None
    group.network.begun[0].end()

    assert (2, 2) == (group.joined(in_time=True), group.joins)
