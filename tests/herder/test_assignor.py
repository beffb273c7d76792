"""Connectors are shared evenly among workers, move one by one, and are never two workers' at a time."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field, replace
from math import lcm

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.herder.assignor import (
    AssignorMemory,
    ConnectorLoad,
    GroupAssignment,
    Member,
    Rebalance,
    assign,
)

DELAY_MS = 5_000


def loads(**tasks: int) -> dict[str, ConnectorLoad]:
    """Planned connectors with so many tasks."""
    return {name: ConnectorLoad(tasks=count) for name, count in tasks.items()}


@dataclass
class Group:
    """Workers that do as they are told, and their leader."""

    configured: dict[str, ConnectorLoad]
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    memory: AssignorMemory = field(default_factory=AssignorMemory)
    generation: int = 0
    now_ms: int = 0
    max_delay_ms: int = DELAY_MS
    moved: Counter[str] = field(default_factory=Counter[str])

    def join(self, *names: str, slots: int = 4) -> None:
        """New workers, which have nothing yet."""
        self.members.update({name: Member(slots=slots, url=f"http://{name}/") for name in names})

    def rebalance(self, *, followed_by: frozenset[str] | None = None) -> GroupAssignment:
        """One rebalance; only those whom *followed_by* names get the answer, or all."""
        self.generation += 1
        self.memory, answer = assign(
            self.memory,
            Rebalance(
                generation=self.generation,
                last_generation=self.generation - 1,
                now_ms=self.now_ms,
                configured=self.configured,
                members=self.members,
                max_delay_ms=self.max_delay_ms,
            ),
        )
        reported = frozenset().union(*(each.owned for each in self.members.values()))
        for name, member in self.members.items():
            assert not answer.assigned[name] & reported, "someone has it"
            assert answer.revoked[name] <= member.owned
            if followed_by is None or name in followed_by:
                owned = (member.owned - answer.revoked[name]) | answer.assigned[name]
                self.moved.update(answer.revoked[name])
                self.members[name] = replace(member, owned=owned)
        return answer

    def settle(self) -> GroupAssignment:
        """Rebalance until nothing has to follow, and return the last answer."""
        for _ in range(10):
            answer = self.rebalance()
            if not answer.delay_ms:
                return answer
            self.now_ms += answer.delay_ms
        raise AssertionError("it does not end")

    def owned(self) -> dict[str, list[str]]:
        """What each worker has."""
        return {name: sorted(member.owned) for name, member in self.members.items()}


def test_connectors_are_dealt_by_their_tasks_and_the_workers_slots() -> None:
    """The heaviest first; one without tasks counts as one."""
    group = Group(loads(a=4, b=2, c=1, d=0))
    group.join("large", slots=8)
    group.join("small", slots=4)
    group.settle()

    assert {"large": ["a", "c"], "small": ["b", "d"]} == group.owned()


def test_a_new_worker_is_given_what_others_have_given_up() -> None:
    """In two rebalances; nothing else moves."""
    group = Group({f"c{number}": ConnectorLoad(tasks=1) for number in range(6)})
    group.join("w1")
    group.settle()
    group.join("w2")
    first = group.rebalance()

    assert (3, 1) == (len(first.revoked["w1"]), first.delay_ms)
    assert not first.assigned["w2"]
    second = group.rebalance()
    assert (first.revoked["w1"], 0) == (second.assigned["w2"], second.delay_ms)
    assert 3 == sum(group.moved.values())


def test_what_a_lost_worker_had_waits_for_it() -> None:
    """It comes back without anything, and gets its connectors once the delay is over."""
    group = Group(loads(a=1, b=1, c=1, d=1))
    group.join("w1", "w2")
    group.settle()
    had = group.members.pop("w2").owned
    answer = group.rebalance()

    assert (had, DELAY_MS) == (answer.waiting, answer.delay_ms)
    group.now_ms += 1_000
    group.join("w3")
    answer = group.rebalance()
    assert (had, DELAY_MS - 1_000) == (answer.waiting, answer.delay_ms), "the delay began anew"
    assert not group.members["w3"].owned
    group.now_ms += DELAY_MS
    group.settle()
    assert had == group.members["w3"].owned
    assert not group.moved


def test_a_worker_that_comes_back_is_not_waited_for_any_longer() -> None:
    """It has another id by then; what others have lost goes on waiting, and it is not given away before it takes any."""
    group = Group(loads(a=1, b=1, c=1, d=1, e=1, f=1))
    group.join("w1", "w2", "w3")
    group.settle()
    had = {name: group.members.pop(name).owned for name in ("w2", "w3")}
    assert had["w2"] | had["w3"] == group.rebalance().waiting
    group.join("back")
    group.members["back"] = Member(slots=4, url="http://w2/", takes_nothing=True)
    assert had["w2"] | had["w3"] == group.rebalance().waiting

    group.members["back"] = replace(group.members["back"], takes_nothing=False)
    answer = group.rebalance()
    assert had["w3"] == answer.waiting
    assert had["w2"] == group.members["back"].owned
    assert not group.moved


def test_without_a_delay_nothing_waits() -> None:
    """``scheduled.rebalance.max.delay.ms=0``."""
    group = Group(loads(a=1, b=1), max_delay_ms=0)
    group.join("w1", "w2")
    group.settle()
    del group.members["w2"]

    assert 0 == group.rebalance().delay_ms
    assert {"w1": ["a", "b"]} == group.owned()


def test_what_a_leaving_worker_had_goes_to_others_at_once() -> None:
    """It gives up everything, leaves, and nothing waits (KIP-995); it gets nothing new."""
    group = Group(loads(a=1, b=1, c=1, d=1))
    group.join("w1", "w2", "w3")
    group.settle()
    had = group.members["w2"].owned
    group.members["w2"] = replace(group.members["w2"], leaving=True)
    first = group.rebalance()

    assert (had, 1) == (first.revoked["w2"], first.delay_ms)
    del group.members["w2"]
    second = group.rebalance()
    assert had == second.assigned["w1"] | second.assigned["w3"]
    assert 0 == second.delay_ms
    assert had == group.moved.keys()


def test_a_leaving_worker_that_dies_meanwhile_is_not_waited_for() -> None:
    """Its connectors were taken off it before."""
    group = Group(loads(a=1, b=1))
    group.join("w1", "w2")
    group.settle()
    group.members["w2"] = replace(group.members["w2"], leaving=True)
    group.rebalance(followed_by=frozenset({"w1"}))
    del group.members["w2"]

    assert 0 == group.rebalance().delay_ms
    assert {"w1": ["a", "b"]} == group.owned()


def test_a_new_leader_knows_nothing_of_what_was_lost() -> None:
    """So what no one has is given out at once."""
    group = Group(loads(a=1, b=1))
    group.join("w1", "w2")
    group.settle()
    del group.members["w2"]
    group.memory = AssignorMemory()

    assert 0 == group.rebalance().delay_ms
    assert {"w1": ["a", "b"]} == group.owned()


def test_a_worker_that_missed_its_answer_gets_it_again() -> None:
    """No one is gone, so nothing waits."""
    group = Group(loads(a=1, b=1))
    group.join("w1", "w2")
    group.rebalance(followed_by=frozenset({"w1"}))

    assert 0 == group.rebalance().delay_ms
    assert {"w1": ["a"], "w2": ["b"]} == group.owned()


def test_what_two_workers_have_is_taken_off_both() -> None:
    """One was thought to be dead; then one of them gets it."""
    group = Group(loads(a=1, b=1))
    group.members = {
        name: Member(slots=1, owned=frozenset("ab"[:size])) for name, size in (("w1", 2), ("w2", 1))
    }
    first = group.rebalance()

    assert {"a"} == first.revoked["w1"] == first.revoked["w2"]
    group.settle()
    assert {"w1": ["b"], "w2": ["a"]} == group.owned()


def test_a_deleted_connector_is_revoked() -> None:
    """Also by a leader that has never known it."""
    group = Group(loads(a=1, b=1))
    group.join("w1")
    group.settle()
    del group.configured["b"]
    group.memory = AssignorMemory()
    group.settle()

    assert {"w1": ["a"]} == group.owned()


def test_a_worker_that_takes_nothing_keeps_what_it_has() -> None:
    """While it warms up, or is maintained."""
    group = Group(loads(a=1, b=1))
    group.members = {
        "w1": Member(slots=4, owned=frozenset({"a"}), takes_nothing=True),
        "w2": Member(slots=4),
    }
    group.settle()
    group.configured |= loads(c=1)
    group.settle()

    assert {"w1": ["a"], "w2": ["b", "c"]} == group.owned()


def test_a_polled_connector_goes_where_its_tasks_fit() -> None:
    """Or nowhere, which the answer says; it is placed as soon as a worker has the slots."""
    group = Group({"polled": ConnectorLoad(tasks=6, must_fit=True)})
    group.join("w1", slots=4)
    assert {"polled"} == group.settle().unplaced

    group.join("w2", slots=6)
    assert not group.settle().unplaced
    assert {"w1": [], "w2": ["polled"]} == group.owned()


def test_a_polled_connector_is_moved_when_its_tasks_turn_out_not_to_fit() -> None:
    """How many it has, only its run knows; if they fit nowhere, no one has it."""
    group = Group({"a": ConnectorLoad(tasks=0, must_fit=True), "b": ConnectorLoad(tasks=3)})
    group.join("small", slots=2)
    group.join("large", slots=4)
    group.settle()
    [owner] = [name for name, owned in group.owned().items() if "a" in owned]
    group.configured["a"] = ConnectorLoad(tasks=3, must_fit=True)
    group.settle()
    assert "a" in group.members["large"].owned

    assert owner == "small"
    group.configured["a"] = ConnectorLoad(tasks=5, must_fit=True)
    assert {"a"} == group.settle().unplaced
    assert {"large": ["b"], "small": []} == group.owned()


def test_who_leaves_goes_on_until_someone_who_arrives_takes_over() -> None:
    """If no one arrives, there is nothing to wait for."""
    group = Group(loads(a=1, b=1))
    group.join("w1")
    group.settle()
    group.members["w2"] = Member(slots=4, takes_nothing=True)
    group.members["w1"] = replace(group.members["w1"], leaving=True)
    group.settle()
    assert {"w1": ["a", "b"], "w2": []} == group.owned()

    group.members["w2"] = Member(slots=4)
    group.settle()
    assert {"w1": [], "w2": ["a", "b"]} == group.owned()
    group.members["w2"] = replace(group.members["w2"], leaving=True)
    group.settle()
    assert {"w1": [], "w2": []} == group.owned()


def test_a_group_in_which_no_one_takes_anything_waits() -> None:
    """All are leaving: the connectors are there for whoever comes next."""
    group = Group(loads(a=1))
    group.join("w1")
    group.settle()
    group.members["w1"] = replace(group.members["w1"], leaving=True)
    group.rebalance()

    assert {"a"} == group.rebalance().unplaced
    group.join("w2")
    group.settle()
    assert ["a"] == group.owned()["w2"]


def is_even(group: Group) -> bool:
    """Whether no move from the worker with the highest load to that with the lowest lowers the higher of both."""
    takers = {
        name: member
        for name, member in group.members.items()
        if not member.leaving and not member.takes_nothing
    }
    if len(takers) < 2:
        return True
    common = lcm(*(each.slots for each in takers.values()))

    def load(name: str, change: int = 0) -> int:
        weight = sum(group.configured[each].weight for each in takers[name].owned)
        return (weight + change) * (common // takers[name].slots)

    high = max(takers, key=lambda name: (load(name), name))
    low = min(takers, key=lambda name: (load(name), name))
    moves = (
        group.configured[each].weight
        for each in takers[high].owned
        if not group.configured[each].must_fit or group.configured[each].tasks <= takers[low].slots
    )
    return all(max(load(high, -weight), load(low, weight)) >= load(high) for weight in moves)


@settings(max_examples=1000, deadline=None)
@given(events=st.lists(st.integers(0, 9), max_size=25), seed=st.integers(0, 2**32))
def test_whatever_happens_the_load_is_even_in_the_end(events: list[int], seed: int) -> None:
    """No connector has two owners on the way (``rebalance`` asserts it), and in the end each has one."""
    chance = random.Random(seed)
    group = Group({f"c{number}": some_load(chance) for number in range(chance.randrange(12))})
    group.join("w0", slots=chance.randrange(1, 9))
    for event in events:
        EVENTS[event](group, chance)
        group.rebalance()
    group.now_ms += DELAY_MS
    answer = group.settle()

    owners = Counter(name for member in group.members.values() for name in member.owned)
    assert {1} >= set(owners.values())
    assert group.configured.keys() == owners.keys() | answer.unplaced
    assert not answer.waiting
    assert is_even(group)
    for name in answer.unplaced:
        assert not any(
            group.configured[name].tasks <= member.slots or not group.configured[name].must_fit
            for member in group.members.values()
            if not member.leaving and not member.takes_nothing
        )
    moved = sum(group.moved.values())
    group.rebalance()
    assert moved == sum(group.moved.values()), "a connector moved, though nothing had happened"


def some_load(chance: random.Random) -> ConnectorLoad:
    """Mostly small ones."""
    return ConnectorLoad(tasks=chance.choice([0, 1, 1, 2, 3, 8]), must_fit=chance.random() < 0.2)


def joins(group: Group, chance: random.Random) -> None:
    """One more worker."""
    group.join(f"w{group.generation}", slots=chance.randrange(1, 9))


def crashes(group: Group, chance: random.Random) -> None:
    """One worker less."""
    if len(group.members) > 1:
        del group.members[someone(group, chance)]


def leaves(group: Group, chance: random.Random) -> None:
    """A worker hands its work over and goes, unless it is the only one."""
    leaver = someone(group, chance)
    group.members[leaver] = replace(group.members[leaver], leaving=True)
    group.rebalance()
    if len(group.members) > 1:
        del group.members[leaver]


def rests(group: Group, chance: random.Random) -> None:
    """A worker takes nothing more."""
    name = someone(group, chance)
    group.members[name] = replace(group.members[name], takes_nothing=True)


def returns(group: Group, chance: random.Random) -> None:
    """A worker takes connectors again."""
    name = someone(group, chance)
    group.members[name] = replace(group.members[name], takes_nothing=False, leaving=False)


def creates(group: Group, chance: random.Random) -> None:
    """A connector is created, or reconfigured."""
    group.configured[f"c{chance.randrange(20)}"] = some_load(chance)


def deletes(group: Group, chance: random.Random) -> None:
    """A connector is deleted."""
    group.configured.pop(f"c{chance.randrange(20)}", None)


def changes_leader(group: Group, _: random.Random) -> None:
    """The next leader remembers nothing."""
    group.memory = AssignorMemory()


def misses(group: Group, chance: random.Random) -> None:
    """An answer does not reach a worker."""
    group.rebalance(followed_by=frozenset(group.members) - {someone(group, chance)})


def waits(group: Group, chance: random.Random) -> None:
    """Time passes."""
    group.now_ms += chance.randrange(2 * DELAY_MS)


def someone(group: Group, chance: random.Random) -> str:
    """Any worker."""
    return chance.choice(sorted(group.members))


EVENTS = (
    joins,
    crashes,
    leaves,
    rests,
    returns,
    creates,
    deletes,
    changes_leader,
    misses,
    waits,
)


@pytest.mark.parametrize("seed", range(200))
def test_one_rebalance_revokes_what_moves(seed: int) -> None:
    """The next gives it to whom it was meant for; dealt out without regard to that, the load may be uneven again."""
    chance = random.Random(seed)
    group = Group(
        {
            f"c{number}": ConnectorLoad(tasks=chance.choice([1, 2, 3, 5, 7, 13]))
            for number in range(12)
        }
    )
    for number in range(3):
        group.join(f"w{number}", slots=chance.choice([2, 4, 8]))
    group.settle()
    group.join("w3", slots=chance.choice([2, 4, 8]))
    answers = [group.rebalance() for _ in range(4)]

    assert not any(names for answer in answers[1:] for names in answer.revoked.values())


def test_an_answer_that_never_counted_is_forgotten() -> None:
    """Another member joined meanwhile: what it gave out no one has, and it is not waited for."""
    group = Group(loads(a=1, b=1))
    group.join("w1", "w2")
    group.settle()
    group.configured |= loads(c=1)
    group.rebalance(followed_by=frozenset())
    gone = group.members.pop("w2").owned
    group.generation += 1
    answer = group.rebalance()

    assert (0, frozenset()) == (answer.delay_ms, answer.waiting)
    assert gone | {"c"} == answer.assigned["w1"]


def test_a_revocation_that_was_missed_is_asked_for_again() -> None:
    """What a member still has is not given to another."""
    group = Group({f"c{number}": ConnectorLoad(tasks=1) for number in range(4)})
    group.join("w1")
    group.settle()
    group.join("w2")
    first = group.rebalance(followed_by=frozenset({"w2"}))
    second = group.rebalance()

    assert first.revoked == second.revoked
    assert not second.waiting


def test_many_connectors_are_moved_no_more_than_needed() -> None:
    """When one of fifty workers joins, it is given its part, and no one else anything."""
    connectors = 1_000
    group = Group({f"c{number:05}": ConnectorLoad(tasks=4) for number in range(connectors)})
    group.join(*(f"w{number:02}" for number in range(49)))
    group.settle()
    group.join("w49")
    group.settle()

    assert connectors // 50 == len(group.members["w49"].owned) == sum(group.moved.values())
