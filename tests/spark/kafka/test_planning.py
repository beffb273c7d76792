"""How much a batch reads, and which task reads what."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from headrace.discovery.state import EnumeratorState, PartitionState, Status
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka.planning import (
    FEW_TASKS,
    SMALL_RECORDS,
    OffsetRange,
    limited,
    ranges,
    tasks,
)

Backlog = dict[TopicPartition, tuple[int, int]]

_BACKLOGS = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 40)),
    st.tuples(st.integers(0, 1000), st.integers(0, 500)).map(lambda pair: (pair[0], sum(pair))),
    min_size=1,
    max_size=30,
)


def _places(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]


@given(_BACKLOGS, st.integers(1, 2000))
def test_a_limit_is_reached_and_never_passed(backlog: Backlog, most: int) -> None:
    """Whatever the backlog."""
    ends = limited(backlog, most)
    total = sum(end - start for start, end in backlog.values())
    assert all(backlog[place][0] <= end <= backlog[place][1] for place, end in ends.items())
    assert sum(ends[place] - start for place, (start, _) in backlog.items()) == min(total, most)


@given(_BACKLOGS, st.integers(1, 100))
def test_a_limit_that_is_at_least_the_number_of_partitions_moves_each(
    backlog: Backlog, more: int
) -> None:
    """A small one does not wait for the large ones."""
    ends = limited(backlog, len(backlog) + more)
    assert all(ends[place] > start for place, (start, end) in backlog.items() if end > start)


def test_shares_are_in_proportion_to_the_backlog() -> None:
    """So all partitions catch up at the same time."""
    one, two, three = _places(3)
    ends = limited({one: (0, 9_000), two: (500, 1_500), three: (7, 8)}, 1_000)
    assert sum(ends.values()) == 1_000 + 500 + 7
    assert ends[three] == 8
    assert abs(ends[one] - 899) <= 1


def test_partitions_take_turns_where_the_limit_is_less_than_their_number() -> None:
    """Which follows from the offsets alone."""
    backlog = dict.fromkeys(_places(4), (0, 3))
    seen = set[TopicPartition]()
    for _ in range(4):
        ends = limited(backlog, 1)
        seen |= {place for place, (start, _) in backlog.items() if ends[place] > start}
        backlog = {place: (ends[place], end) for place, (_, end) in backlog.items()}
    assert seen == set(backlog)


_SIZES = st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), max_size=100)


@given(_SIZES, st.integers(0, 120), st.none() | st.integers(10_000, 10**6))
def test_tasks_read_each_offset_once_and_in_order(
    sizes: list[tuple[int, int]], at_least: int, most: int | None
) -> None:
    """However ranges are split and put together."""
    whole = [
        OffsetRange(TopicPartition("t", number), start, start + size)
        for number, (start, size) in enumerate(sizes)
    ]
    planned = tasks(whole, at_least=at_least, most_records=most)
    pieces = [each for task in planned for each in task]
    assert all(each.start < each.end for each in pieces)
    assert most is None or all(each.size <= most for each in pieces)
    joined = list[OffsetRange]()
    for each in pieces:
        if joined and joined[-1].place == each.place:
            assert joined[-1].end == each.start
            joined[-1] = joined[-1]._replace(end=each.end)
        else:
            joined.append(each)
    assert joined == whole
    assert len(planned) >= min(len(whole), FEW_TASKS)


_SMALL_SIZES = st.lists(st.tuples(st.integers(0, 99), st.integers(1, 400)), max_size=90)


@given(_SMALL_SIZES, st.integers(0, 200), st.none() | st.integers(1, 90))
def test_a_task_has_one_range_of_a_partition_and_no_more_than_is_allowed(
    sizes: list[tuple[int, int]], at_least: int, most: int | None
) -> None:
    """A task fetches each partition from one offset to another, also where pieces of it share the task."""
    whole = [
        OffsetRange(TopicPartition("t", number), start, start + size)
        for number, (start, size) in enumerate(sizes)
    ]
    planned = tasks(whole, at_least=at_least, most_records=most)
    for task in planned:
        assert len({each.place for each in task}) == len(task)
        assert most is None or sum(each.size for each in task) <= most
    read = [(each.place, at) for task in planned for each in task for at in range(*each[1:3])]
    assert read == [(each.place, at) for each in whole for at in range(*each[1:3])]


def test_many_small_ranges_share_tasks_and_few_do_not() -> None:
    """Starting a task costs more than reading ten records."""
    small = [OffsetRange(place, 0, 10) for place in _places(6_400)]
    assert len(tasks(small)) == FEW_TASKS
    assert len(tasks(small, at_least=500)) in range(450, 501)
    assert len(tasks(small[:FEW_TASKS])) == FEW_TASKS


def test_large_ranges_never_share() -> None:
    """They are worth a task each."""
    large = [OffsetRange(place, 0, SMALL_RECORDS) for place in _places(200)]
    assert len(tasks(large)) == 200


def test_a_large_range_is_split() -> None:
    """By either number."""
    (place,) = _places(1)
    assert tasks([OffsetRange(place, 5, 15)], at_least=3) == [
        (OffsetRange(place, 5, 8),),
        (OffsetRange(place, 8, 11),),
        (OffsetRange(place, 11, 15),),
    ]
    assert len(tasks([OffsetRange(place, 0, 10_001)], most_records=1_000)) == 11


def test_a_topic_that_has_an_id_since_brokers_were_upgraded_is_the_same_topic() -> None:
    """What was read of it is not read again."""
    (place,) = _places(1)
    known = PartitionState(Status.ASSIGNED, start=3, position=10)
    before = EnumeratorState(partitions={place: known}, initial_discovery_finished=True)
    end = EnumeratorState(
        partitions={place: known._replace(position=12)},
        topic_ids={"t": UUID(int=1)},
        initial_discovery_finished=True,
    )
    assert [OffsetRange(place, 10, 12, UUID(int=1))] == ranges(before, end)
