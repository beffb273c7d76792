"""Groups whose workers join, go, come back and miss answers: who has what after each rebalance, and what waits."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from headrace.herder.assignor import AssignorMemory, ConnectorLoad, Member
from herder.test_assignor import DELAY_MS, Group, loads


def group_of(connectors: int, *workers: str) -> Group:
    """So many connectors of one task, divided among *workers*."""
    group = Group({f"c{number:02}": ConnectorLoad(tasks=1) for number in range(connectors)})
    group.join(*workers)
    group.settle()
    return group


def sizes(group: Group) -> dict[str, int]:
    """How many connectors each worker has."""
    return {name: len(member.owned) for name, member in group.members.items()}


def change_leader(group: Group) -> None:
    """The next one remembers nothing."""
    group.memory = AssignorMemory()


def test_workers_may_join_while_others_are_being_given_work() -> None:
    """Each rebalance gives out what the last one took off, also to those who have come since, and takes off the rest of what they are due."""
    group = group_of(12, "w1")
    found = list[dict[str, int]]()
    for newest in ("w2", "w3", "w4", "w5", "w6"):
        group.join(newest)
        group.rebalance()
        found.append(sizes(group))
    group.settle()

    assert {"w1": 6, "w2": 0} == found[0]
    assert {"w1": 4, "w2": 4, "w3": 2} == found[1]
    assert {"w1": 3, "w2": 3, "w3": 3, "w4": 1} == found[2]
    assert {2} == set(sizes(group).values())


def test_a_leader_that_is_lost_is_not_waited_for_and_is_new_when_it_is_back() -> None:
    """The others share what it had, and give up a part when it joins again."""
    group = group_of(6, "w1", "w2", "w3")
    had = group.members.pop("w1").owned
    change_leader(group)
    answer = group.rebalance()
    assert (0, frozenset()) == (answer.delay_ms, answer.waiting)
    assert had == answer.assigned["w2"] | answer.assigned["w3"]
    assert {"w2": 3, "w3": 3} == sizes(group)
    answer = group.rebalance()
    assert not any([*answer.assigned.values(), *answer.revoked.values()])

    group.join("w1")
    answer = group.rebalance()
    assert {"w1": 0, "w2": 2, "w3": 2} == sizes(group)
    group.settle()
    assert {"w1": 2, "w2": 2, "w3": 2} == sizes(group)


def test_the_next_leader_gives_out_what_no_one_has_any_more() -> None:
    """The last one was lost between taking it off and giving it to another worker."""
    group = group_of(6, "w1", "w2")
    group.join("w3")
    taken = frozenset().union(*group.rebalance().revoked.values())
    group.members["leader"] = group.members.pop("w2")
    change_leader(group)
    answer = group.rebalance()

    assert taken == answer.assigned["w3"]
    assert {2} == set(sizes(group).values())


def test_all_that_is_lost_in_a_delay_waits_for_its_end() -> None:
    """It neither begins anew with the next loss, nor is there a second one."""
    group = group_of(6, "w1", "w2", "w3")
    lost = group.members.pop("w2").owned
    assert DELAY_MS == group.rebalance().delay_ms
    group.now_ms += 4_000
    lost |= group.members.pop("w3").owned
    answer = group.rebalance()
    assert (lost, DELAY_MS - 4_000) == (answer.waiting, answer.delay_ms)

    group.now_ms += 1_000
    answer = group.rebalance()
    assert (lost, 0) == (answer.assigned["w1"], answer.delay_ms)


def test_who_is_back_and_lost_again_before_it_takes_anything_does_not_prolong_the_delay() -> None:
    """What it had goes to the others then."""
    group = group_of(4, "w1", "w2")
    lost = group.members.pop("w2").owned
    group.rebalance()
    group.now_ms += 2_000
    group.members["again"] = Member(slots=4, url="http://w2/", takes_nothing=True)
    assert DELAY_MS - 2_000 == group.rebalance().delay_ms
    del group.members["again"]
    assert (DELAY_MS - 2_000, lost) == (group.rebalance().delay_ms, group.rebalance().waiting)

    group.now_ms += DELAY_MS - 2_000
    assert lost == group.rebalance().assigned["w1"]


def test_a_worker_that_was_given_its_work_back_is_waited_for_anew() -> None:
    """As for any other that is lost."""
    group = group_of(4, "w1", "w2")
    lost = group.members.pop("w2").owned
    group.rebalance()
    group.now_ms += 4_000
    group.members["again"] = Member(slots=4, url="http://w2/")
    assert (lost, 0) == (group.rebalance().assigned["again"], group.rebalance().delay_ms)

    del group.members["again"]
    answer = group.rebalance()
    assert (lost, DELAY_MS) == (answer.waiting, answer.delay_ms)


def test_what_was_lost_goes_to_those_who_have_come_meanwhile() -> None:
    """They have the least; only then do the others give up a part of theirs."""
    group = group_of(12, "w1", "w2", "w3")
    lost = group.members.pop("w2").owned
    group.rebalance()
    group.join("w4")
    group.rebalance()
    group.join("w5")
    group.rebalance()
    assert {"w1": 4, "w3": 4, "w4": 0, "w5": 0} == sizes(group)
    group.now_ms += DELAY_MS
    answer = group.rebalance()

    assert lost == answer.assigned["w4"] | answer.assigned["w5"]
    group.settle()
    assert {3} == set(sizes(group).values())
    assert not lost & group.moved.keys()


def test_several_workers_may_be_replaced_at_once() -> None:
    """By ones at other URLs; in the end each has its part."""
    group = group_of(12, "w1", "w2", "w3")
    lost = group.members.pop("w2").owned | group.members.pop("w3").owned
    group.rebalance()
    group.join("w4", "w5")
    assert lost == group.rebalance().waiting
    group.now_ms += DELAY_MS
    group.settle()

    assert {"w1": 4, "w4": 4, "w5": 4} == sizes(group)
    assert not group.moved


def test_a_connector_that_is_created_in_a_delay_does_not_wait() -> None:
    """Only what was lost does."""
    group = group_of(4, "w1", "w2")
    lost = group.members.pop("w2").owned
    group.rebalance()
    group.configured |= loads(new=1)
    answer = group.rebalance()

    assert {"new"} == answer.assigned["w1"]
    assert lost == answer.waiting


def test_a_connector_that_is_deleted_while_it_waits_is_waited_for_no_more() -> None:
    """Where others were lost with it, these go on waiting."""
    group = group_of(4, "w1", "w2")
    first, second = sorted(group.members.pop("w2").owned)
    group.rebalance()
    del group.configured[first]
    assert {second} == group.rebalance().waiting
    del group.configured[second]
    answer = group.rebalance()

    assert (0, frozenset()) == (answer.delay_ms, answer.waiting)


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_first_answer_that_no_one_got_is_given_again(attempts: int) -> None:
    """No one was lost, so nothing waits."""
    group = Group(loads(a=4, b=4))
    group.join("w1", "w2")
    for _ in range(attempts):
        group.rebalance(followed_by=frozenset())
    answer = group.rebalance()

    assert 0 == answer.delay_ms
    assert {"w1": ["a"], "w2": ["b"]} == group.owned()


def test_who_missed_an_answer_and_takes_nothing_any_more_is_not_waited_for() -> None:
    """It is there, and says that it has nothing: the others go on at once."""
    group = Group(loads(a=1, b=1))
    group.join("w1", "w2")
    group.rebalance(followed_by=frozenset({"w1"}))
    group.members["w2"] = replace(group.members["w2"], takes_nothing=True)
    answer = group.rebalance()

    assert (0, frozenset()) == (answer.delay_ms, answer.waiting)
    assert {"w1": ["a", "b"], "w2": []} == group.owned()


@pytest.mark.parametrize("completed", [True, False])
def test_a_revocation_that_no_one_got_is_asked_for_again_at_once(completed: bool) -> None:  # noqa: FBT001 (a case)
    """Whether the leader has completed that generation or not."""
    group = group_of(6, "w1", "w2")
    group.join("w3")
    first = group.rebalance(followed_by=frozenset())
    group.generation += 0 if completed else 1
    second = group.rebalance()

    assert first.revoked == second.revoked
    assert (1, frozenset()) == (second.delay_ms, second.waiting)
    group.settle()
    assert {"w1": 2, "w2": 2, "w3": 2} == sizes(group)


@pytest.mark.parametrize(
    ("owned", "created", "expected"),
    [
        ([2, 2, 2], 5, [4, 4, 3]),
        ([2, 3, 4, 0], 15, [6, 6, 6, 6]),
        ([0, 0], 1, [1, 0]),
    ],
)
def test_connectors_that_are_created_go_where_there_is_least(
    owned: list[int], created: int, expected: list[int]
) -> None:
    """So that nothing has to move for them."""
    group = Group({})
    for worker, count in enumerate(owned):
        names = frozenset(f"w{worker}-{number}" for number in range(count))
        group.configured |= {name: ConnectorLoad(tasks=1) for name in names}
        group.members[f"w{worker}"] = Member(slots=4, owned=names, url=f"http://w{worker}/")
    group.configured |= {f"new-{number}": ConnectorLoad(tasks=1) for number in range(created)}
    answer = group.rebalance()

    assert expected == list(sizes(group).values())
    assert not any(answer.revoked.values())


def test_a_connector_that_two_workers_have_may_be_deleted() -> None:
    """Both give it up, and it is given to no one; what is left is shared."""
    group = group_of(3, "w1")
    group.members["w2"] = Member(slots=4, owned=frozenset({"c00"}), url="http://w2/")
    del group.configured["c00"]
    first = group.rebalance()
    assert "c00" in first.revoked["w1"] & first.revoked["w2"]
    group.settle()

    assert Counter({"c01": 1, "c02": 1}) == Counter(
        name for member in group.members.values() for name in member.owned
    )
    assert {"w1": 1, "w2": 1} == sizes(group)


def test_who_leaves_while_others_wait_gives_its_work_to_those_who_stay() -> None:
    """Only what was lost waits; what is handed over does not (KIP-995)."""
    group = group_of(6, "w1", "w2", "w3")
    lost = group.members.pop("w3").owned
    group.rebalance()
    handed = group.members["w2"].owned
    group.members["w2"] = replace(group.members["w2"], leaving=True)
    assert 1 == group.rebalance().delay_ms
    del group.members["w2"]
    answer = group.rebalance()

    assert (handed, lost) == (answer.assigned["w1"], answer.waiting)
    assert DELAY_MS == answer.delay_ms
