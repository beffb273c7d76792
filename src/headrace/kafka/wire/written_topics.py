"""What a producer has to know of the topics that it writes to: how many partitions they have, and what a batch may have."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TypeVar, cast

from confluent_kafka import KafkaError
from kafka.protocol.admin.configs import DescribeConfigsRequest
from kafka.protocol.metadata.metadata import MetadataRequest

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.errors import Context, translated
from headrace.kafka.wire import error_codes
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.error_codes import NONE, ErrorCode, Reaction

_FIRST_STEP_SECONDS: Final = 1.0
_LONGEST_STEP_SECONDS: Final = 8.0
_PAUSE_SECONDS: Final = 0.1
# As long as Java's producer believes what it was told (metadata.max.age.ms).
_BELIEVED_SECONDS: Final = 300.0
_ASKED_AGAIN_SECONDS: Final = 10.0
_TOLD_SECONDS: Final = 1.0
_CREATING_VERSIONS: Final = (4, 12)
_CONFIG_VERSIONS: Final = (1, 4)
_TOPIC: Final = 2
_LIMIT: Final = "max.message.bytes"
_Answer = TypeVar("_Answer")


class WrittenTopics:
    """Asks *cluster* for topics, once each in five minutes. One thread uses it.

    Brokers that are away, and topics without leaders, are waited for up to *seconds*, and a topic that is not there up to
    *creation_seconds*; *waiting* is called about once a second meanwhile. What was known goes on to count while no broker answers.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        seconds: float,
        creation_seconds: float,
        waiting: Callable[[str], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._seconds = seconds
        self._creation_seconds = creation_seconds
        self._waiting = waiting
        self._clock = clock
        self._counts: dict[str, tuple[int, float]] = {}
        self._limits: dict[str, tuple[int | None, float]] = {}

    def partitions(self, topic: str) -> int:
        """How many partitions *topic* has, or had less than five minutes ago; raises as :meth:`asked_partitions`.

        For records whose partition is to be chosen: a topic that is not there is asked for in a way that makes brokers create it,
        if they are set up so.
        """
        return self._believed(
            self._counts, topic, lambda seconds: self._asked(topic, seconds, creates=True)
        )

    def asked_partitions(self, topic: str) -> int:
        """How many partitions *topic* has now.

        For records that name their partition: whoever knows that has made the topic, and one that is gone, as a mirror's remote topic, must
        not be there again without being noticed. Raises :class:`~headrace.connect.errors.TaskFailedError` for a topic that is not there, or
        which this client may not see, and :class:`~headrace.connect.errors.RetriableError` when no broker has answered in time.
        """
        count = self._asked(topic, self._seconds, creates=False)
        self._counts[topic] = count, self._clock() + _BELIEVED_SECONDS
        return count

    def max_bytes(self, topic: str) -> int | None:
        """How many bytes a batch may have in *topic*; ``None`` when this client may not know.

        Raises :class:`~headrace.connect.errors.RetriableError` when no broker has answered in time.
        """
        return self._believed(
            self._limits, topic, lambda seconds: self._asked_limit(topic, seconds)
        )

    def _believed(
        self,
        known: dict[str, tuple[_Answer, float]],
        topic: str,
        ask: Callable[[float], _Answer],
    ) -> _Answer:
        """What is *known* of *topic* until some time; *ask* is given the seconds that it may take."""
        before, until = known.get(topic, (None, 0.0))
        if topic in known and self._clock() < until:
            return cast("_Answer", before)
        believed = _BELIEVED_SECONDS
        try:
            found = ask(_FIRST_STEP_SECONDS if topic in known else self._seconds)
        except RetriableError:
            if topic not in known:
                raise
            found, believed = cast("_Answer", before), _ASKED_AGAIN_SECONDS
        known[topic] = found, self._clock() + believed
        return found

    def _asked(self, topic: str, seconds: float, *, creates: bool) -> int:
        doing = f"the partitions of topic {topic!r}"
        until = Deadline.after(seconds, self._clock)
        told_at = self._clock()
        known_by: Deadline | None = None
        while True:
            found, error = self._waited(doing, until, lambda step: self._metadata(topic, step))
            if error is None:
                return found
            if error == error_codes.UNKNOWN_TOPIC_OR_PARTITION:
                if known_by is None:
                    known_by = Deadline.after(self._creation_seconds, self._clock)
                    if creates:
                        self._waited(doing, until, lambda step: self._create(topic, step))
            elif error.reaction is Reaction.FAIL:
                known_by = until = Deadline.after(0, self._clock)
            if until.expired or (known_by is not None and known_by.expired):
                context = Context(doing="writing to", topic=topic)
                raise translated(KafkaError(error.code), context)
            if self._clock() >= told_at + _TOLD_SECONDS:
                self._waiting(f"{doing} ({error.name})")
                told_at = self._clock()
            time.sleep(until.remaining(_PAUSE_SECONDS))

    def _metadata(self, topic: str, deadline: Deadline) -> tuple[int, ErrorCode | None]:
        found = self._cluster.metadata([topic], deadline).topics.get(topic)
        if found is None:
            return 0, error_codes.UNKNOWN_TOPIC_OR_PARTITION
        return len(found.partitions), found.error

    def _create(self, topic: str, deadline: Deadline) -> None:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=topic)],
            allow_auto_topic_creation=True,
            include_cluster_authorized_operations=False,
            include_topic_authorized_operations=False,
        )
        doing = f"the creation of topic {topic!r}"
        self._cluster.ask_any(request, doing, deadline, versions=_CREATING_VERSIONS)

    def _asked_limit(self, topic: str, seconds: float) -> int | None:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=_TOPIC, resource_name=topic, configuration_keys=[_LIMIT]
        )
        request = DescribeConfigsRequest(
            resources=[resource], include_synonyms=False, include_documentation=False
        )
        doing = f"the settings of topic {topic!r}"
        until = Deadline.after(seconds, self._clock)
        try:
            answer = self._waited(
                doing,
                until,
                lambda step: self._cluster.ask_any(request, doing, step, versions=_CONFIG_VERSIONS),
            )
        except TaskFailedError:
            return None
        for each in answer.results:
            if each.error_code == NONE:
                return next((int(one.value) for one in each.configs if one.name == _LIMIT), None)
        return None

    def _waited(self, doing: str, until: Deadline, ask: Callable[[Deadline], _Answer]) -> _Answer:
        """What *ask* returns, tried for some seconds at a time, so that whoever waits hears of it."""
        seconds = _FIRST_STEP_SECONDS
        while True:
            try:
                return ask(Deadline.after(until.remaining(seconds), self._clock))
            except RetriableError as error:
                if until.expired:
                    raise
                self._waiting(f"{doing} ({error})")
                # A broker may need longer for an answer, or for a login.
                seconds = min(2 * seconds, _LONGEST_STEP_SECONDS)
