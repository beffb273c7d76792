"""Connectors and tasks are divided one by one among members of both kinds, as a leader of Kafka Connect does it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pytest

from headrace.herder.task_assignor import (
    Piece,
    PieceAnswer,
    PieceMemory,
    PieceRebalance,
    assign_pieces,
)

DELAY_MS = 5_000


def connectors(**tasks: int) -> frozenset[Piece]:
    """Connectors with so many tasks."""
    return frozenset((name, task) for name, count in tasks.items() for task in range(-1, count))


@dataclass
class Group:
    """Members that do as they are told, and their leader."""

    configured: frozenset[Piece]
    members: dict[str, frozenset[Piece]] = field(default_factory=dict[str, frozenset[Piece]])
    leaving: set[str] = field(default_factory=set[str])
    memory: PieceMemory = field(default_factory=PieceMemory)
    generation: int = 0
    now_ms: int = 0
    max_delay_ms: int = DELAY_MS

    def join(self, *names: str) -> None:
        """New members, which have nothing."""
        self.members.update(dict.fromkeys(names, frozenset[Piece]()))

    def rebalance(self, *, without: frozenset[str] = frozenset()) -> PieceAnswer:
        """One rebalance, whose answer is lost on its way to those *without* it."""
        self.generation += 1
        self.memory, answer = assign_pieces(
            self.memory,
            PieceRebalance(
                generation=self.generation,
                last_generation=self.generation - 1,
                now_ms=self.now_ms,
                configured=self.configured,
                reports=self.members,
                leaving=frozenset(self.leaving),
                takers=self.members.keys() - self.leaving,
                max_delay_ms=self.max_delay_ms,
            ),
        )
        reported = frozenset[Piece]().union(*self.members.values())
        given = [piece for pieces in answer.assigned.values() for piece in pieces]
        assert len(given) == len(set(given)), "given to two"
        assert not reported.intersection(given), "someone has it"
        for name, owned in self.members.items():
            assert not (name in self.leaving and answer.assigned[name]), "it leaves"
            assert answer.revoked[name] <= owned
            if name not in without:
                self.members[name] = (owned - answer.revoked[name]) | answer.assigned[name]
        return answer

    def settle(self, at_most: int = 30) -> None:
        """Rebalance as often as the leader asks for it."""
        for _ in range(at_most):
            delay_ms = self.rebalance().delay_ms
            if not delay_ms:
                return
            self.now_ms += delay_ms
        raise AssertionError("it does not end")

    def loads(self) -> set[tuple[int, int]]:
        """How many connectors and tasks members have, each pair once."""
        return {
            (sum(task < 0 for _, task in pieces), sum(task >= 0 for _, task in pieces))
            for pieces in self.members.values()
        }


def test_pieces_are_dealt_to_who_has_the_least_of_their_kind() -> None:
    """Connectors first, then tasks, each in their order."""
    group = Group(connectors(a=1, b=2))
    group.join("m1", "m2")
    answer = group.rebalance()

    assert {("a", -1), ("a", 0), ("b", 1)} == answer.assigned["m1"]
    assert {("b", -1), ("b", 0)} == answer.assigned["m2"]
    assert 0 == answer.delay_ms


def test_a_new_member_gets_in_the_next_rebalance_what_others_have_given_up() -> None:
    """That follows at once."""
    group = Group(connectors(a=1, b=1))
    group.join("m1")
    group.settle()
    group.join("m2")
    first = group.rebalance()
    assert {("a", -1), ("a", 0)} == first.revoked["m1"]
    assert (1, frozenset()) == (first.delay_ms, first.assigned["m2"])
    second = group.rebalance()

    assert first.revoked["m1"] == second.assigned["m2"]
    assert 0 == second.delay_ms


def test_what_a_member_had_that_is_gone_waits_and_goes_to_who_came_meanwhile() -> None:
    """Most likely it is the same one."""
    group = Group(connectors(a=1, b=1))
    group.join("m1", "m2")
    group.settle()
    had = group.members.pop("m2")
    assert DELAY_MS == group.rebalance().delay_ms
    group.now_ms += 1_000
    group.join("m3")
    assert DELAY_MS - 1_000 == group.rebalance().delay_ms
    group.now_ms += DELAY_MS - 1_000
    group.rebalance()

    assert had == group.members["m3"]


@pytest.mark.parametrize("max_delay_ms", [0, DELAY_MS])
def test_who_missed_an_answer_is_given_its_pieces_again(max_delay_ms: int) -> None:
    """No one is gone, so that nothing waits."""
    group = Group(connectors(a=1, b=1), max_delay_ms=max_delay_ms)
    group.join("m1", "m2")
    group.rebalance(without=frozenset(["m2"]))
    group.rebalance()

    assert {(1, 1)} == group.loads()


def test_nothing_waits_when_the_delay_is_zero_or_the_leader_another_one() -> None:
    """It does not know what was lost."""
    for max_delay_ms, last in ((0, None), (DELAY_MS, PieceMemory())):
        group = Group(connectors(a=1, b=1), max_delay_ms=max_delay_ms)
        group.join("m1", "m2")
        group.settle()
        del group.members["m2"]
        group.memory = last or group.memory
        group.rebalance()

        assert {(2, 2)} == group.loads()


def test_who_leaves_gives_everything_up_and_nothing_waits() -> None:
    """KIP-995: it is gone in the rebalance after."""
    group = Group(connectors(a=1, b=1))
    group.join("m1", "m2")
    group.settle()
    had = group.members["m2"]
    group.leaving.add("m2")
    assert had == group.rebalance().revoked["m2"]
    group.leaving.clear()
    del group.members["m2"]
    answer = group.rebalance()

    assert had == answer.assigned["m1"]
    assert 0 == answer.delay_ms


def test_what_is_not_configured_or_two_members_have_is_taken_away() -> None:
    """As after a leader was lost."""
    group = Group(connectors(a=1))
    group.members = {"m1": connectors(a=1, gone=1), "m2": connectors(a=1)}
    answer = group.rebalance()

    assert connectors(a=1, gone=1) == answer.revoked["m1"]
    assert connectors(a=1) == answer.revoked["m2"]
    group.settle()
    assert connectors(a=1) == frozenset().union(*group.members.values())


def test_a_second_round_that_would_revoke_is_put_off() -> None:
    """By 40 ms, then by 1,600 ms, as members come one after the other."""
    group = Group(connectors(**{f"c{number}": 0 for number in range(12)}))
    group.join("m1")
    group.settle()
    group.join("m2")
    assert 1 == group.rebalance().delay_ms
    group.join("m3")
    answer = group.rebalance()

    assert 40 == answer.delay_ms
    assert not frozenset().union(*answer.revoked.values())


@pytest.mark.parametrize("seed", range(400))
def test_whatever_happens_the_load_is_even_in_the_end(seed: int) -> None:
    """Members come, go, leave and miss answers; connectors come and go."""
    chance = random.Random(seed)
    group = Group(connectors(a=2), max_delay_ms=chance.choice([0, DELAY_MS]))
    group.join("m0")
    for step in range(12):
        what = chance.choice(["join", "die", "leave", "configure", "miss", "wait", "lead"])
        names = sorted(group.members)
        if what == "join":
            group.join(f"m{step + 1}")
        elif what == "die" and len(names) > 1:
            group.leaving.discard(gone := chance.choice(names))
            del group.members[gone]
        elif what == "leave" and len(names) - len(group.leaving) > 1:
            group.leaving.add(chance.choice(names))
        elif what == "configure":
            group.configured = connectors(
                **{name: chance.randrange(4) for name in "abcde" if chance.random() < 0.6}
            )
        elif what == "lead":
            group.memory = PieceMemory()
        group.now_ms += chance.choice([0, 40, DELAY_MS])
        missed = frozenset(chance.sample(names, 1)) if what == "miss" else frozenset[str]()
        group.rebalance(without=missed & group.members.keys())
    group.leaving.clear()
    # Until waiting and backing off are over.
    for _ in range(12):
        group.now_ms += DELAY_MS
        group.rebalance()

    owned = [piece for pieces in group.members.values() for piece in pieces]
    assert sorted(group.configured) == sorted(owned)
    for kind in (0, 1):
        counts = [load[kind] for load in group.loads()]
        assert max(counts) - min(counts) <= 1
