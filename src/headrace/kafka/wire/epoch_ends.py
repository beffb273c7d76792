"""Where leaders' epochs end in the logs of partitions: tells a log that was cut back from the one that was read."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from kafka.protocol.consumer.offsets import OffsetForLeaderEpochRequest

from headrace.connect.errors import RetriableError
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    Message,
    UnsupportedApiError,
    unresolvable,
)
from headrace.kafka.wire.error_codes import Reaction, error_code

# Before it, brokers asked for the rights of a cluster's own.
_VERSIONS: Final = (2, 4)
_CONSUMER: Final = -1
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0


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

    Leaders that do not answer are waited for until half of the time is over. Raises
    :class:`~headrace.connect.errors.RetriableError` when none has answered.
    """
    query, pause = _Query(cluster, wanted), _FIRST_PAUSE
    until = Deadline.after(deadline.remaining() / 2, deadline.clock)
    while query.left:
        query.ask(until)
        if not query.left or until.expired:
            break
        time.sleep(until.remaining(pause))
        pause = min(2 * pause, _LONGEST_PAUSE)
        cluster.metadata({place.topic for place in query.left}, deadline)
    if query.left and query.left.keys() == wanted.keys():
        place = min(query.left)
        raise RetriableError(
            f"Kafka did not answer where the leader epochs of {place} end in time: {query.reasons.get(place, 'no leader')}."
        )
    return EpochEnds(query.found, frozenset(query.left))


class _Query:
    """What is still to be asked, and what was answered."""

    def __init__(self, cluster: Cluster, wanted: Mapping[TopicPartition, int]) -> None:
        self._cluster = cluster
        self.left = dict(wanted)
        self.found: dict[TopicPartition, EpochEnd] = {}
        self.reasons: dict[TopicPartition, str] = {}

    def ask(self, deadline: Deadline) -> None:
        """Ask each leader that is known once."""
        for leader, places in self._by_leader().items():
            try:
                self._take(self._answer(leader, places, deadline))
            except UnsupportedApiError:
                for place in places:
                    self.left.pop(place, None)
            except (OSError, LoginRefusedError, AnswerTooLargeError) as error:
                final = unresolvable(error, "the ends of leader epochs", self._cluster.settings)
                if final is not None:
                    raise final from error
                self.reasons |= dict.fromkeys(places, str(error) or type(error).__name__)

    def _by_leader(self) -> Mapping[int, list[TopicPartition]]:
        topics = self._cluster.known.topics
        found = defaultdict[int, list[TopicPartition]](list)
        for place in list(self.left):
            topic = topics.get(place.topic)
            if topic is not None and topic.error is not None and not topic.partitions:
                if topic.error.reaction is Reaction.FAIL:
                    del self.left[place]
                continue
            partition = topic and topic.partitions.get(place.partition)
            if partition and partition.leader is not None:
                found[partition.leader].append(place)
        return found

    def _answer(self, leader: int, places: list[TopicPartition], deadline: Deadline) -> Message:
        share = Deadline.after(
            deadline.remaining(self._cluster.settings.request_seconds), deadline.clock
        )
        connection = self._cluster.connect(leader, share)
        try:
            return connection.ask(self._request(places), share, versions=_VERSIONS)
        finally:
            connection.close()

    def _request(self, places: list[TopicPartition]) -> Message:
        topic_class = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
        partition_class = topic_class.OffsetForLeaderPartition
        by_topic = defaultdict[str, list[TopicPartition]](list)
        for place in places:
            by_topic[place.topic].append(place)
        return OffsetForLeaderEpochRequest(
            replica_id=_CONSUMER,
            topics=[
                topic_class(
                    topic=topic,
                    partitions=[
                        partition_class(
                            partition=each.partition,
                            current_leader_epoch=-1,
                            leader_epoch=self.left[each],
                        )
                        for each in of_topic
                    ],
                )
                for topic, of_topic in by_topic.items()
            ],
        )

    def _take(self, answer: Message) -> None:
        for topic in answer.topics:
            for each in topic.partitions:
                place = TopicPartition(topic.topic, each.partition)
                error = error_code(each.error_code)
                if error is None:
                    self.left.pop(place, None)
                    self.found[place] = EpochEnd(each.leader_epoch, each.end_offset)
                elif error.reaction is Reaction.FAIL:
                    self.left.pop(place, None)
                else:
                    self.reasons[place] = error.name
