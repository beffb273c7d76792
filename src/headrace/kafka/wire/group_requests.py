"""Requests about consumer groups, and what their answers say. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from kafka.protocol.admin.groups import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer.group import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)

from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.connection import Message, Versions
from headrace.kafka.wire.messages import ConsumerGroupDescribeRequest

# Topics are named, up to the versions that have ids instead.
FETCH_VERSIONS: Final[Versions] = (1, 9)
"""Versions of OffsetFetch; since 7 what is in an open transaction is waited for, since 8 it asks for several groups."""
COMMIT_VERSIONS: Final[Versions] = (2, 9)
"""Versions of OffsetCommit."""
DELETE_VERSIONS: Final[Versions] = (0, 0)
"""Versions of OffsetDelete."""
# Version 6 answers with an error what earlier ones call dead.
DESCRIBE_VERSIONS: Final[Versions] = (0, 5)
"""Versions of DescribeGroups."""
LIST_VERSIONS: Final[Versions] = (0, 5)
"""Versions of ListGroups; since 4 the state is answered, since 5 which protocol a group has."""
SEVERAL_VERSION: Final = 8
"""The version of OffsetFetch since which it asks for several groups."""
DESCRIBE_NEWER_VERSIONS: Final[Versions] = (0, 0)
"""Versions of ConsumerGroupDescribe."""
DEAD: Final = "Dead"
"""The state of a group that does not exist, or not under this protocol."""
EMPTY: Final = "Empty"
"""The state of a group that has no members."""
_OF_CONSUMERS: Final = ("", "consumer")
_CONSUMERS: Final = ("", "classic", "consumer")

# The coordinator writes a request's entries as one batch, and its topic takes a megabyte.
_MOST_BYTES: Final = 500_000
_AROUND_ENTRY: Final = 100

_Place = TypeVar("_Place", TopicPartition, GroupEntry)


class GroupMember(NamedTuple):
    """A member of a group: what it calls itself, where it runs, as the broker sees it, and the id that the broker has given it.

    *metadata* is what it said when it joined, and *assignment* what it was given, both empty while a rebalance goes on, and with the newer
    protocol.
    """

    client_id: str
    host: str
    member_id: str = ""
    metadata: bytes = b""
    assignment: bytes = b""


class GroupDescription(NamedTuple):
    """A group's *state* in Kafka's words, :data:`DEAD` for one that does not exist, and its members."""

    state: str
    members: tuple[GroupMember, ...] = ()


class ListedGroup(NamedTuple):
    """A group in a list: its *state* in Kafka's words, what its members are, and which protocol they use.

    Old brokers leave *state* and *protocol* empty.
    """

    group_id: str
    member_type: str
    state: str = ""
    protocol: str = ""

    @property
    def is_of_consumers(self) -> bool:
        """Whether consumers are members, or nobody has ever been: no workers of Connect, no shared consumers."""
        return self.member_type in _OF_CONSUMERS and self.protocol.lower() in _CONSUMERS


def list_request() -> ListGroupsRequest:
    """Asks a broker which groups it coordinates."""
    return ListGroupsRequest(states_filter=[], types_filter=[])


def listed(answer: Message) -> Iterator[ListedGroup]:
    """The groups in an answer to :func:`list_request`."""
    for each in answer.groups:
        yield ListedGroup(
            each.group_id,
            each.protocol_type,
            getattr(each, "group_state", None) or "",
            getattr(each, "group_type", None) or "",
        )


def several_request(groups: Sequence[str]) -> OffsetFetchRequest:
    """Asks for all entries of *groups*, as they are, whatever is in an open transaction.

    Before version :data:`SEVERAL_VERSION` only the first group is asked for.
    """
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(
        group_id=groups[0],
        topics=None,
        groups=[group_class(group_id=each, topics=None) for each in groups],
        require_stable=False,
    )


def entries_by_group(answer: Message, first: str) -> Iterator[tuple[str, list[GroupEntry]]]:
    """The entries in an answer to :func:`several_request`, whose *first* group is the only one in old versions."""
    for level in getattr(answer, "groups", None) or (answer,):
        entries = (entry_of(place, part) for place, part in _parts_of(level))
        yield getattr(level, "group_id", first), sorted(each for each in entries if each)


def fetch_request(group: str, places: Collection[TopicPartition] | None) -> OffsetFetchRequest:
    """Asks for the entries of *places*; with ``None`` for all that are committed, and not those that are only pending."""
    # Version 8 and later ask for groups, earlier ones for topics of one.
    topic_class = OffsetFetchRequest.OffsetFetchRequestTopic
    group_class = OffsetFetchRequest.OffsetFetchRequestGroup
    named = None if places is None else by_topic(places).items()
    return OffsetFetchRequest(
        group_id=group,
        topics=None
        if named is None
        else [
            topic_class(name=topic, partition_indexes=[each.partition for each in of_topic])
            for topic, of_topic in named
        ],
        groups=[
            group_class(
                group_id=group,
                topics=None
                if named is None
                else [
                    group_class.OffsetFetchRequestTopics(
                        name=topic, partition_indexes=[each.partition for each in of_topic]
                    )
                    for topic, of_topic in named
                ],
            )
        ],
        require_stable=True,
    )


def commit_request(group: str, entries: Sequence[GroupEntry]) -> OffsetCommitRequest:
    """Commits *entries* for a group without members."""
    topic_class = OffsetCommitRequest.OffsetCommitRequestTopic
    partition_class = topic_class.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    partition_class(
                        partition_index=each.partition,
                        committed_offset=each.offset,
                        committed_leader_epoch=each.leader_epoch,
                        committed_metadata=each.metadata,
                    )
                    for each in of_topic
                ],
            )
            for topic, of_topic in by_topic(entries).items()
        ],
    )


def delete_request(group: str, places: Iterable[TopicPartition]) -> OffsetDeleteRequest:
    """Removes the entries of *places*."""
    topic_class = OffsetDeleteRequest.OffsetDeleteRequestTopic
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            topic_class(
                name=topic,
                partitions=[
                    topic_class.OffsetDeleteRequestPartition(partition_index=each.partition)
                    for each in of_topic
                ],
            )
            for topic, of_topic in by_topic(places).items()
        ],
    )


def describe_request(group: str) -> DescribeGroupsRequest:
    """Asks who the members are of a group of the classic protocol."""
    return DescribeGroupsRequest(groups=[group], include_authorized_operations=False)


def describe_newer_request(group: str) -> ConsumerGroupDescribeRequest:
    """As :func:`describe_request`, for a group of the newer protocol (KIP-848)."""
    return ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=False)


def described(answer: Message) -> GroupDescription:
    """What the answer to either of these two requests says."""
    [group] = answer.groups
    return GroupDescription(group.group_state, tuple(map(_member, group.members)))


def _member(part: Message) -> GroupMember:
    return GroupMember(
        part.client_id,
        part.client_host,
        part.member_id,
        bytes(getattr(part, "member_metadata", None) or b""),
        bytes(getattr(part, "member_assignment", None) or b""),
    )


def entry_of(place: TopicPartition, part: Message) -> GroupEntry | None:
    """The entry in one partition's *part* of an answer to OffsetFetch; ``None`` if there is none."""
    if part.committed_offset < 0:
        return None
    epoch = getattr(part, "committed_leader_epoch", None)
    return GroupEntry(
        place.topic,
        place.partition,
        part.committed_offset,
        # librdkafka commits text with the zero that ends it in C.
        (part.metadata or "").rstrip("\0"),
        -1 if epoch is None else epoch,
    )


def parts(answer: Message) -> Iterator[tuple[TopicPartition, Message]]:
    """The partitions' parts of an answer of a group's coordinator; since OffsetFetch 8 they are in groups."""
    for level in levels(answer):
        yield from _parts_of(level)


def _parts_of(level: Message) -> Iterator[tuple[TopicPartition, Message]]:
    for topic in getattr(level, "topics", None) or ():
        for each in topic.partitions:
            yield TopicPartition(topic.name, each.partition_index), each


def levels(answer: Message) -> Iterator[Message]:
    """The answer itself, and the groups in it: each may have an error."""
    yield answer
    yield from getattr(answer, "groups", None) or ()


def portions(entries: Iterable[GroupEntry]) -> Iterator[list[GroupEntry]]:
    """*entries* in portions that fit into one request each."""
    portion, nbytes = list[GroupEntry](), 0
    for each in entries:
        size = _AROUND_ENTRY + len(each.topic) + len(each.metadata.encode())
        if portion and nbytes + size > _MOST_BYTES:
            yield portion
            portion, nbytes = [], 0
        portion.append(each)
        nbytes += size
    if portion:
        yield portion


def by_topic(places: Iterable[_Place]) -> Mapping[str, list[_Place]]:
    """*places*, or entries for places, by topic."""
    found = defaultdict[str, list[_Place]](list)
    for each in places:
        found[each.topic].append(each)
    return found
