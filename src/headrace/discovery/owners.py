"""Which task reads a partition."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

from headrace.connect.errors import TaskFailedError
from headrace.kafka.topic_partition import TopicPartition

Owners = Mapping[TopicPartition, int]


def balanced_owners(
    partitions: Iterable[TopicPartition], tasks: int, current: Owners | None = None
) -> Owners:
    """The task of each of *partitions*: those that have one in *current* keep it, the others go where there are fewest.

    No partition moves when others are added. From an empty *current* the tasks differ by one partition at most, and each
    topic is spread over them. A pure function: pass what it has answered before, but nothing when the number of tasks has
    changed, so that all tasks get their share.
    """
    everything = sorted(partitions)
    owners = {
        place: current[place]
        for place in everything
        if current and place in current and current[place] < tasks
    }
    loads = Counter(owners.values())
    fewest = [(loads[task], task) for task in range(tasks)]
    heapq.heapify(fewest)
    for place in everything:
        if place not in owners:
            load, task = fewest[0]
            owners[place] = task
            heapq.heapreplace(fewest, (load + 1, task))
    return owners


def flink_owner(place: TopicPartition, tasks: int) -> int:
    """Flink's default: by a hash of the topic, and consecutive tasks for consecutive partitions.

    Depends on nothing but *place*. Partitions of many small topics are spread by chance only.
    """
    start = (_java_string_hash(place.topic) * 31 & 0x7FFFFFFF) % tasks
    return (start + place.partition) % tasks


def checked_owner(owner: int, place: TopicPartition, tasks: int) -> int:
    """The task that a user's own function gave to *place*, if there is such a task."""
    if 0 <= owner < tasks:
        return owner
    raise TaskFailedError(
        f"{place} was given to task {owner}, and there are tasks 0 to {tasks - 1}: the function that chooses the owner of a "
        "partition must return one of these."
    )


def _java_string_hash(text: str) -> int:
    code = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        code = (31 * code + (units[at] << 8 | units[at + 1])) & 0xFFFFFFFF
    return code
