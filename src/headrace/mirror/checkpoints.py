"""Which checkpoints are written, and which offsets are committed on the target. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourcePartition
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.group_requests import DEAD, EMPTY
from headrace.mirror.filters import TopicFilter
from headrace.mirror.formats import Checkpoint
from headrace.mirror.translation import Translation

GROUP, TOPIC, PARTITION = "group", "topic", "partition"

Key = tuple[str, str, int]
"""Group, topic and partition of a checkpoint."""


def key_of(checkpoint: Checkpoint) -> Key:
    """What a checkpoint is of: a later one of the same replaces it."""
    return checkpoint[:3]


def source_partition(checkpoint: Checkpoint) -> SourcePartition:
    """The source partition of its record, as MirrorMaker's."""
    return SourcePartition(
        {GROUP: checkpoint.group, TOPIC: checkpoint.topic, PARTITION: checkpoint.partition}
    )


def translated(
    entries: Mapping[str, Iterable[GroupEntry]], translation: Translation, topics: TopicFilter
) -> Iterator[Checkpoint]:
    """The checkpoints of groups that have committed *entries* on the source, as far as offsets can be translated."""
    for group, committed in entries.items():
        for each in committed:
            if not topics.copies(each.topic):
                continue
            place = TopicPartition(each.topic, each.partition)
            downstream = translation.offset(place, each.offset)
            if downstream is not None:
                remote = translation.place(place)
                yield Checkpoint(group, *remote, each.offset, downstream, each.metadata)


def is_news(checkpoint: Checkpoint, last: Checkpoint | None) -> bool:
    """Whether *checkpoint* is to be written after the *last* one that is written of the same.

    A group that has gone back is followed; otherwise one that says less, by a worse translation, is not.
    """
    if last is None or checkpoint.upstream < last.upstream:
        return True
    return checkpoint.downstream > last.downstream


def entries_to_commit(
    checkpoints: Iterable[Checkpoint], committed: Sequence[GroupEntry]
) -> list[GroupEntry]:
    """What of one group's *checkpoints* is to be committed on the target, where it has *committed* that: never backwards."""
    offsets = {each.place: each.offset for each in committed}
    return [
        GroupEntry(each.topic, each.partition, each.downstream, each.metadata)
        for each in checkpoints
        if offsets.get((each.topic, each.partition), -1) < each.downstream
    ]


def may_be_moved(state: str) -> bool:
    """Whether offsets may be committed for a group in that *state* on the target: one that nobody consumes with."""
    return state in (EMPTY, DEAD)
