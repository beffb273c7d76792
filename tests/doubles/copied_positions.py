"""Positions of copied partitions in a group, as a mirror has them: the entry lies under the copy, and names its source."""

from __future__ import annotations

import json

from headrace.connect.encoded import EncodedBatches, EncodedHeader
from headrace.connect.errors import OffsetsError
from headrace.connect.group_offsets import GroupEntry, GroupOffsetCodec
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.target import TargetGroup

PATH = "doubles.copied_positions:CopiedPositions"
GROUP = TargetGroup(group_id="copies", codec=PATH, config={"alias": "a"})


class CopiedPositions(GroupOffsetCodec):
    """The copy of ``t`` is ``a.t``; an offset is that of the last record, and its entry that of the next one."""

    def entry(self, partition: SourcePartition, offset: SourceOffset) -> GroupEntry:
        """The metadata names the alias, which is how foreign entries are known."""
        last = offset.get("offset")
        if not isinstance(last, int):
            raise OffsetsError(f"The offset {dict(offset)!r} has no number under 'offset'.")
        return GroupEntry(*self.place(partition), last + 1, json.dumps(self.config["alias"]))

    def place(self, partition: SourcePartition) -> tuple[str, int]:
        """The copy's own partition."""
        topic, number = partition.get("topic"), partition.get("partition")
        if not isinstance(topic, str) or not isinstance(number, int):
            raise OffsetsError(f"{dict(partition)!r} has no topic and partition.")
        return f"{self.config['alias']}.{topic}", number

    def source(self, entry: GroupEntry) -> tuple[SourcePartition, SourceOffset] | None:
        """Only of entries with the same alias."""
        if entry.metadata != json.dumps(self.config["alias"]):
            return None
        topic = entry.topic.removeprefix(f"{self.config['alias']}.")
        return copied(topic, entry.partition), {"offset": entry.offset - 1}


def copied(topic: str = "t", partition: int = 0) -> SourcePartition:
    """A source partition."""
    return SourcePartition(topic=topic, partition=partition)


def encoded(
    *counts: int,
    start: int = 0,
    first: int = 0,
    partition: int = 0,
    nbytes: int = 100,
    known: bool = True,
) -> EncodedBatches:
    """Batches of so many records each, without gaps, from the offset *first* on; the bytes mean nothing."""
    headers, at = list[EncodedHeader](), first
    for count in counts:
        headers.append(EncodedHeader(at, at + count - 1, count if known else -1))
        at += count
    return EncodedBatches(
        topic="a.t",
        partition=partition,
        source_partition=copied(partition=partition),
        data=[memoryview(bytes(nbytes)) for _ in counts],
        headers=headers,
        start=max(start, first),
        next_offset=at,
        offset={"offset": at - 1},
    )
