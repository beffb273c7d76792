"""Where leaders' epochs end in the logs of partitions: tells a log that was cut back from the one that was read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final, NamedTuple

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster, LeaderQuery
from headrace.kafka.wire.connection import Message
from headrace.kafka.wire.error_codes import Reaction
from headrace.kafka.wire.group_requests import by_topic

# Before it, brokers asked for the rights of a cluster's own.
_VERSIONS: Final = (2, 4)
_CONSUMER: Final = -1


class EpochEnd(NamedTuple):
    """The last epoch up to the one asked for that the log knows, and the offset where it ends; -1 where it knows none."""

    epoch: int
    end: int


class EpochEnds(NamedTuple):
    """The ends that were *found*, and the partitions whose leaders have not *answered* in time.

    In neither are partitions about which this client may not ask, those that do not exist, and all of brokers older than
    Kafka 2.0.
    """

    found: Mapping[TopicPartition, EpochEnd]
    unanswered: frozenset[TopicPartition] = frozenset()


def epoch_ends(
    cluster: Cluster, wanted: Mapping[TopicPartition, int], deadline: Deadline
) -> EpochEnds:
    """The end of the epoch that *wanted* has for each partition, as its leader knows it.

    Leaders are waited for as by :meth:`~headrace.kafka.wire.cluster.Cluster.ask_leaders`. Raises
    :class:`~headrace.connect.errors.RetriableError` when none has answered.
    """
    if not wanted:
        return EpochEnds({})
    query = LeaderQuery(
        wanted,
        OffsetForLeaderEpochRequest,
        _VERSIONS,
        request=partial(_request, wanted),
        parts=_parts,
    )
    doing = f"where the leader epochs of {min(wanted)} end"
    cluster.ask_leaders(query, doing, deadline, is_optional=True)
    leaderless = (
        place for place, error in query.refused.items() if error.reaction is not Reaction.FAIL
    )
    return EpochEnds(query.found, frozenset((*query.left, *leaderless)))


def _request(
    wanted: Mapping[TopicPartition, int], places: Mapping[TopicPartition, int], _version: int
) -> OffsetForLeaderEpochRequest:
    topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition_class = topic_class.OffsetForLeaderPartition
    return OffsetForLeaderEpochRequest(
        replica_id=_CONSUMER,
        topics=[
            topic_class(
                topic=topic,
                partitions=[
                    partition_class(
                        partition=each.partition,
                        current_leader_epoch=-1,
                        leader_epoch=wanted[each],
                    )
                    for each in of_topic
                ],
            )
            for topic, of_topic in by_topic(places).items()
        ],
    )


def _parts(answer: Message) -> Iterator[tuple[TopicPartition, int, EpochEnd]]:
    for topic in answer.topics:
        for each in topic.partitions:
            place = TopicPartition(topic.topic, each.partition)
            yield place, each.error_code, EpochEnd(each.leader_epoch, each.end_offset)
