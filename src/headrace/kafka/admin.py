"""The admin client: queries and topic creation, each with a deadline."""

# The library re-exports its own names in a way that the type checker takes for private.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeVar, cast

from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType

from headrace.connect.errors import ConfigError, ConnectError, RetriableError, TaskFailedError
from headrace.kafka.client_config import ClientConfig, connection_settings
from headrace.kafka.client_log import CLIENT_LOG, LastClientError
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import Context, is_retriable, kafka_error, translated
from headrace.kafka.refused_settings import refused_settings
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.settings import wire_settings

_log = logging.getLogger(__name__)

T = TypeVar("T")

# One request; the client itself retries within it while its connection is being established.
_STEP_SECONDS = 5.0
_PAUSE_SECONDS = 0.2
_WHY_SECONDS = 5.0

ANSWER_SECONDS: Final = 15.0
"""How long a worker waits for Kafka's answer to a request; a late one is reported, and the request retried."""

UNREACHABLE: Final = (
    "Failed to connect to and describe Kafka cluster. "
    "Check worker's broker connection and security properties."
)
"""Kafka Connect's sentence about a cluster that cannot be reached."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactedTopic:
    """A topic for state, as Kafka Connect makes it. -1 leaves a number to the broker.

    *settings* are further ones for its creation; it is compacted whatever they say. The user has given them with *prefix*
    before their names. With *is_single* a topic that exists must
    have one partition, too. *setting* is the key under which the user named the topic, in the configuration of *whose*, and
    *keeps* says what it stores: they are for the error about a topic that is not as it has to be.
    """

    name: str
    partitions: int = 25
    replication: int = 3
    setting: str = "offset.storage.topic"
    keeps: str = "source connector offsets"
    whose: Literal["worker", "connector"] = "worker"
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    prefix: str = "offset.storage."
    is_single: bool = False


class CreationForbiddenError(TaskFailedError):
    """The topic does not exist, and this client may not create it."""


class KafkaAdmin:
    """An admin client. *config* may be any client's: only its connection settings are used.

    Raises :class:`~headrace.connect.errors.ConfigError` for settings that the client refuses.

    Every method retries while that can help. It raises :class:`~headrace.connect.errors.RetriableError`
    after its deadline, and :class:`~headrace.connect.errors.TaskFailedError` for errors that no retry
    can resolve. Any thread may call.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._last_error = LastClientError()
        self._settings = config.settings
        settings: dict[str, Any] = {
            **connection_settings(config.settings),
            "error_cb": self._last_error,
            "logger": CLIENT_LOG,
            # Critical only: everything else that it would log goes to its error_cb.
            "log_level": 2,
        }
        try:
            self._client = AdminClient(settings)
        except KafkaException as error:
            raise refused_settings(error, config.settings) from error

    @property
    def last_error(self) -> str | None:
        """The client's last error, such as a refused connection; ``None`` since the last successful request."""
        self._client.poll(0)
        return self._last_error.text

    def check_reachable(self, deadline: Deadline) -> str:
        """The cluster's id, once a broker has answered.

        The client keeps trying whatever the cause, and of some it only says that brokers are down. So a broker that has
        not answered is asked once more by other means, for a few seconds beyond *deadline*.
        """
        seconds = deadline.remaining(_WHY_SECONDS)
        try:
            return self.cluster_id(deadline)
        except RetriableError as error:
            refusal = self._why_unanswered(seconds)
            raise type(refusal or error)(f"{UNREACHABLE} {refusal or error}") from error
        except ConnectError as error:
            raise type(error)(f"{UNREACHABLE} {error}") from error

    def _why_unanswered(self, seconds: float) -> TaskFailedError | None:
        """Why no broker answers, if that is for good. A cause that the client has not told is its last error from then on."""
        try:
            cluster = Cluster(wire_settings(self._settings))
        except ConfigError:
            # The client library has ways to log in that our own connections do not have.
            return None
        try:
            failure = cluster.failure(Deadline.after(seconds))
        finally:
            cluster.close()
        if failure is not None:
            self._last_error.explain(str(failure))
        return failure if isinstance(failure, TaskFailedError) else None

    def cluster_id(self, deadline: Deadline) -> str:
        """The cluster's id; empty if its brokers do not report one."""
        return self._answered(self._describe_cluster, "a description of the cluster", deadline)

    def partitions(self, topic: str, deadline: Deadline) -> list[int]:
        """The partitions of *topic*; a missing topic fails and is not created."""

        def ask(seconds: float) -> list[int]:
            topics = TopicCollection([topic])
            answer = self._client.describe_topics(topics, request_timeout=seconds)
            return [one.id for one in answer[topic].result().partitions]

        return self._answered(ask, "a description of", deadline, topic=topic)

    def topic_id(self, topic: str, deadline: Deadline) -> str:
        """What a topic keeps for as long as it exists, and no other one has; the same for all where brokers have no ids."""

        def ask(seconds: float) -> str:
            topics = TopicCollection([topic])
            answer = self._client.describe_topics(topics, request_timeout=seconds)
            return str(answer[topic].result().topic_id)

        return self._answered(ask, "a description of", deadline, topic=topic)

    def exists(self, topic: str, deadline: Deadline) -> bool:
        """Whether a topic of that name exists and this client may see it."""

        def ask(seconds: float) -> bool:
            topics = TopicCollection([topic])
            try:
                self._client.describe_topics(topics, request_timeout=seconds)[topic].result()
            except KafkaException as error:
                if kafka_error(error).name() == "UNKNOWN_TOPIC_OR_PART":
                    return False
                raise
            return True

        return self._answered(ask, "a description of", deadline, topic=topic)

    def ensure_compacted_topic(self, topic: CompactedTopic, deadline: Deadline) -> bool:
        """Create *topic* unless it exists; returns whether it was created.

        When it exists, it is checked as by :meth:`check_compacted_topic`.
        """
        new = NewTopic(
            topic.name,
            topic.partitions,
            topic.replication,
            config={**topic.settings, _CLEANUP_POLICY: "compact"},
        )
        try:
            created = self._create(new, deadline)
        except TaskFailedError as error:
            named = [f"{topic.prefix}{key}" for key in topic.settings if key in str(error)]
            if not named:
                raise
            raise TaskFailedError(
                f"{error} The {topic.whose}'s configuration sets {', '.join(named)}."
            ) from error
        if not created:
            self.check_compacted_topic(topic, deadline)
        return created

    def check_compacted_topic(self, topic: CompactedTopic, deadline: Deadline) -> None:
        """Check that *topic* loses no data: at a start, and again while it is used, because others may change it.

        Raises :class:`~headrace.connect.errors.ConfigError` when it is not compacted, or has not the one partition that it must
        have. When this client may not read the topic's settings, that is logged and they are not checked.
        """
        policies = self.cleanup_policies(topic.name, deadline)
        if not policies:
            _log.info(_UNVERIFIED, topic.name)
        elif policies != _ONLY_COMPACT:
            raise ConfigError([(topic.setting, _forgets(topic, policies))])
        if topic.is_single and (found := len(self.partitions(topic.name, deadline))) > 1:
            raise ConfigError([(topic.setting, _has_many_partitions(topic, found))])

    def ensure_topic(
        self,
        name: str,
        deadline: Deadline,
        *,
        partitions: int,
        replication: int,
        settings: Mapping[str, str] | None = None,
    ) -> bool:
        """Create the topic unless it exists; returns whether it was created.

        -1 leaves a number to the broker; settings that are not in *settings* have the broker's defaults.
        Raises :class:`CreationForbiddenError` when it does not exist and this client may not create it.
        """
        if self.exists(name, deadline):
            return False
        new = NewTopic(name, partitions, replication, config=dict(settings or {}))
        return self._create(new, deadline)

    def _create(self, new: NewTopic, deadline: Deadline) -> bool:
        def ask(seconds: float) -> bool:
            answer = self._client.create_topics([new], request_timeout=seconds)
            try:
                answer[new.topic].result()
            except KafkaException as error:
                code = kafka_error(error).name()
                # The controller knows the topic; the broker that is asked may not know it yet.
                if code == _ALREADY_EXISTS:
                    return False
                # Without the right to create, a topic that already exists will do.
                if code not in _FORBIDDEN:
                    raise
                if not self.exists(new.topic, deadline):
                    raise _forbidden(error, new.topic) from error
                return False
            return True

        created = self._answered(ask, "the creation of", deadline, topic=new.topic)
        # Also after another client has created it, perhaps just now.
        self._await_known(new.topic, deadline)
        return created

    def _await_known(self, topic: str, deadline: Deadline) -> None:
        # Only the controller is sure to know the topic by then; another broker may report it as unknown.
        while not self.exists(topic, deadline):
            if deadline.expired:
                raise _unanswered("brokers do not know it yet", "the creation of", topic)
            time.sleep(deadline.remaining(_PAUSE_SECONDS))

    def cleanup_policies(self, topic: str, deadline: Deadline) -> frozenset[str]:
        """Those of *topic*; none where this client may not read them."""
        resource = ConfigResource(ResourceType.TOPIC, topic)

        def ask(seconds: float) -> str:
            answer = self._client.describe_configs([resource], request_timeout=seconds)
            try:
                return cast("str | None", answer[resource].result()[_CLEANUP_POLICY].value) or ""
            except KafkaException as error:
                if kafka_error(error).name() in _UNREADABLE:
                    return ""
                raise

        found = self._answered(ask, "a description of", deadline, topic=topic)
        return frozenset(each.strip().lower() for each in found.split(",") if each.strip())

    def _describe_cluster(self, seconds: float) -> str:
        answer: Future[object] = self._client.describe_cluster(request_timeout=seconds)
        return getattr(answer.result(), "cluster_id", None) or ""

    def _answered(
        self,
        ask: Callable[[float], T],
        doing: str,
        deadline: Deadline,
        *,
        topic: str | None = None,
    ) -> T:
        while True:
            try:
                answer = ask(max(0.2, deadline.remaining(_STEP_SECONDS)))
            except KafkaException as error:
                inner = kafka_error(error)
                if not is_retriable(inner):
                    raise translated(inner, Context(doing=doing, topic=topic)) from error
                if deadline.expired:
                    reason = self.last_error if inner.name() in _NO_ANSWER else None
                    raise _unanswered(reason or inner.str(), doing, topic) from error
                time.sleep(deadline.remaining(_PAUSE_SECONDS))
            else:
                # Errors from before a successful request do not explain later failures.
                self._client.poll(0)
                self._last_error.forget()
                return answer


# There was no answer; the client reports the cause separately.
_NO_ANSWER = ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
_CLEANUP_POLICY: Final = "cleanup.policy"
_ONLY_COMPACT: Final = frozenset({"compact"})
# Kafka Connect's.
_UNVERIFIED: Final = (
    "Unable to use admin client to verify the cleanup policy of '%s' topic is 'compact', either because the broker is an older "
    "version or because the Kafka principal used for Connect internal topics does not have the required permission to "
    "describe topic configurations."
)
_ALREADY_EXISTS = "TOPIC_ALREADY_EXISTS"
_FORBIDDEN = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
_UNREADABLE = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION")


def _forbidden(error: KafkaException, topic: str) -> CreationForbiddenError:
    return CreationForbiddenError(
        f"Kafka refused the creation of topic {topic!r}: {kafka_error(error).str().rstrip('.')}. "
        "Grant this client Create on the topic, or create it yourself."
    )


def _unanswered(reason: str, doing: str, topic: str | None) -> RetriableError:
    target = f" topic {topic!r}" if topic else ""
    return RetriableError(
        f"Kafka did not answer a request for {doing}{target} in time: {reason.rstrip('.')}."
    )


def _forgets(topic: CompactedTopic, policies: Iterable[str]) -> str:
    where = {
        "worker": "in the Connect worker configurations",
        "connector": "in the connector's configuration",
    }
    # Java's set has both in this order, too.
    policy = ",".join(sorted(policies))
    return (
        f"Topic '{topic.name}' supplied via the '{topic.setting}' property is required to have "
        f"'cleanup.policy=compact' to guarantee consistency and durability of {topic.keeps}, but found "
        f"the topic currently has 'cleanup.policy={policy}'. Continuing would likely result in eventually "
        f"losing {topic.keeps} and problems restarting this Connect cluster in the future. Change the "
        f"'{topic.setting}' property {where[topic.whose]} to use a topic with "
        "'cleanup.policy=compact'."
    )


def _has_many_partitions(topic: CompactedTopic, found: int) -> str:
    return (
        f"Topic '{topic.name}' supplied via the '{topic.setting}' property is required to have a single "
        f"partition in order to guarantee consistency of {topic.keeps}, but found {found} partitions."
    )
