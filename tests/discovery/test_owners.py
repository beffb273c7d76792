"""Which task reads a partition."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discovery.cluster_double import T0, T1, ClusterDouble, Log, Source
from headrace.connect.errors import TaskFailedError
from headrace.discovery.owners import balanced_owners, checked_owner, flink_owner
from headrace.kafka.topic_partition import TopicPartition
from project.sampling import drawn

# Of Flink's own code: for 3, 4 and 10 readers, the owners of partitions 0 to 4.
VECTORS = {
    "topic1": ("20120", "23012", "01234"),
    "topic2": ("01201", "12301", "12345"),
    "orders": ("01201", "30123", "90123"),
    "test-topic": ("01201", "01230", "67890"),
    "a": ("12012", "30123", "78901"),
    "my.topic_with-long.name": ("12012", "01230", "45678"),
    "payments.events.v1": ("20120", "12301", "78901"),
}
PLACES = st.sets(
    st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 30)), max_size=40
)


@pytest.mark.parametrize("topic", VECTORS)
def test_flinks_formula_has_its_vectors(topic: str):
    """For a choice of topics and numbers of readers."""
    found = tuple(
        "".join(str(flink_owner(TopicPartition(topic, number), tasks)) for number in range(5))
        for tasks in (3, 4, 10)
    )

    assert VECTORS[topic] == found


@settings(max_examples=drawn(100))
@given(before=PLACES, added=PLACES, tasks=st.integers(1, 7))
def test_no_partition_moves_when_others_are_added(
    before: set[TopicPartition], added: set[TopicPartition], tasks: int
):
    """And the tasks stay as even as they can be."""
    first = balanced_owners(before, tasks)
    second = balanced_owners(before | added, tasks, first)
    loads = Counter(dict.fromkeys(range(tasks), 0))
    loads.update(second.values())

    assert first == {place: second[place] for place in first}
    assert before | added == set(second)
    assert max(loads.values()) - min(loads.values()) <= 1


def test_each_topic_is_spread_over_the_tasks():
    """Not one topic for each task."""
    places = [TopicPartition(topic, number) for topic in "abc" for number in range(2)]

    owners = balanced_owners(places, 2)

    assert {"a": {0, 1}, "b": {0, 1}, "c": {0, 1}} == {
        topic: {owners[each] for each in places if each.topic == topic} for topic in "abc"
    }


def test_e60_a_partition_that_came_back_keeps_its_task():
    """Nothing but what is known and the number of tasks decides."""
    owners = balanced_owners([T0, T1], 2)

    assert owners == balanced_owners([T1, T0], 2, owners)


@pytest.mark.parametrize("tasks", [1, 3])
def test_e61_with_another_number_of_tasks_each_partition_has_one(tasks: int):
    """What was not assigned before the restart is divided anew."""
    source = Source(ClusterDouble.of(*(Log() for _ in range(4))))
    source.discover()
    source.restart()
    places = [each.place for each in source.enumerator.unassigned()]

    before, after = balanced_owners(places, 2), balanced_owners(places, tasks)

    assert 4 == len(before) == len(after)
    assert set(range(tasks)) == set(after.values())


def test_an_owner_that_there_is_not_is_an_error():
    """Of a function of the user's own."""
    assert 1 == checked_owner(1, T0, 2)
    for owner in (-1, 2):
        with pytest.raises(TaskFailedError, match=rf"t-0 was given to task {owner},.*0 to 1"):
            checked_owner(owner, T0, 2)
