"""An admin client that makes many topics, adds partitions, and reads and changes settings of topics and brokers."""

# The library re-exports its own names in a way that the type checker takes for private.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, cast

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.admin import KafkaAdmin
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import is_retriable, kafka_error
from headrace.kafka.sentences import counted

_STEP_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.2
# Larger requests would take brokers longer than a step.
_AT_ONCE: Final = 200
_FORBIDDEN: Final = ("TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED")
_NO_ANSWER: Final = ("_TIMED_OUT", "_TRANSPORT", "_ALL_BROKERS_DOWN")
_GONE: Final = "UNKNOWN_TOPIC_OR_PART"
# Of refusals for the same reason these are enough.
_SHOWN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedTopic:
    """A topic to be created. -1 leaves a number to the broker, and so are *settings* that are not given."""

    name: str
    partitions: int
    replication: int
    settings: Mapping[str, str] = field(default_factory=dict[str, str])


class TopicSetting(NamedTuple):
    """A setting of a topic, as the brokers have it; *value* is ``None`` for a secret.

    *is_own* says that it was set for this topic, *is_static* that it comes from a broker's own file, and *is_default* that it
    was set nowhere.
    """

    value: str | None
    is_own: bool
    is_static: bool = False
    is_read_only: bool = False
    is_sensitive: bool = False
    is_default: bool = False


class TopicConfigs(NamedTuple):
    """The settings that were *found*, by topic, and why others are *refused*. Topics that do not exist are in neither."""

    found: Mapping[str, Mapping[str, TopicSetting]]
    refused: Mapping[str, str]


def raise_refused(refused: Mapping[str, str]) -> None:
    """Raise :class:`~headrace.connect.errors.TaskFailedError` with the first reasons of *refused*, if there are any."""
    if not refused:
        return
    shown = [refused[name] for name in sorted(refused)[:_SHOWN]]
    more = len(refused) - len(shown)
    rest = f" The same is so for {counted(more, 'more topic')}." if more else ""
    raise TaskFailedError(f"{' '.join(shown)}{rest}")


class TopicAdmin(KafkaAdmin):
    """See :class:`~headrace.kafka.admin.KafkaAdmin`. Requests for many topics go on when one of them is refused.

    Each method returns why, in a sentence, for each topic that the brokers have refused. It raises
    :class:`~headrace.connect.errors.RetriableError` when they have not answered before the deadline.
    """

    def create(self, wanted: Collection[WantedTopic], deadline: Deadline) -> dict[str, str]:
        """Create *wanted*; one that exists already is left as it is. Brokers may not know them all on return."""
        by_name = {each.name: each for each in wanted}

        def ask(names: Sequence[str], seconds: float) -> Mapping[str, Future[Any]]:
            new = [
                NewTopic(
                    name,
                    by_name[name].partitions,
                    by_name[name].replication,
                    config=dict(by_name[name].settings),
                )
                for name in names
            ]
            return self._client.create_topics(new, request_timeout=seconds)

        return self._each(
            ask,
            by_name,
            "the creation of",
            deadline,
            right="Create",
            done=("TOPIC_ALREADY_EXISTS",),
        )

    def grow(self, partitions: Mapping[str, int], deadline: Deadline) -> dict[str, str]:
        """Give topics more partitions, so that each has that many; one that has them already is left as it is."""

        def ask(names: Sequence[str], seconds: float) -> Mapping[str, Future[Any]]:
            more = [NewPartitions(name, partitions[name]) for name in names]
            return self._client.create_partitions(more, request_timeout=seconds)

        return self._each(
            ask,
            partitions,
            "more partitions of",
            deadline,
            right="Alter",
            done=("INVALID_PARTITIONS",),
        )

    def topic_names(self, deadline: Deadline) -> frozenset[str]:
        """The topics that there are, as far as this client may see them."""

        def ask(seconds: float) -> frozenset[str]:
            return frozenset(self._client.list_topics(timeout=seconds).topics)

        return self._answered(ask, "the list of topics", deadline)

    def topic_configs(self, topics: Collection[str], deadline: Deadline) -> TopicConfigs:
        """The settings of *topics*."""
        found = dict[str, dict[str, TopicSetting]]()

        def ask(names: Sequence[str], seconds: float) -> Mapping[str, Future[Any]]:
            resources = [ConfigResource(ResourceType.TOPIC, name) for name in names]
            answers = self._client.describe_configs(resources, request_timeout=seconds)
            return {each.name: answer for each, answer in answers.items()}

        def take(name: str, answer: Mapping[str, ConfigEntry]) -> None:
            found[name] = {key: _setting(entry) for key, entry in answer.items()}

        refused = self._each(
            ask,
            topics,
            "the settings of",
            deadline,
            right="DescribeConfigs",
            done=(_GONE,),
            take=take,
        )
        return TopicConfigs(found, refused)

    def set_topic_configs(
        self, changes: Mapping[str, Mapping[str, str | None]], deadline: Deadline
    ) -> dict[str, str]:
        """Set settings of topics, and leave the others as they are; ``None`` is the broker's default again.

        All of a topic's are refused together. Topics that do not exist are passed over.
        """

        def ask(names: Sequence[str], seconds: float) -> Mapping[str, Future[Any]]:
            resources = [
                ConfigResource(
                    ResourceType.TOPIC,
                    name,
                    incremental_configs=[_change(*each) for each in changes[name].items()],
                )
                for name in names
            ]
            answers = self._client.incremental_alter_configs(resources, request_timeout=seconds)
            return {each.name: answer for each, answer in answers.items()}

        return self._each(
            ask,
            changes,
            "a change of the settings of",
            deadline,
            right="AlterConfigs",
            done=(_GONE,),
        )

    def broker_setting(self, name: str, deadline: Deadline) -> str | None:
        """The setting *name* of one of the brokers; ``None`` where this client may not see it, or there is none."""

        def ask(seconds: float) -> str | None:
            cluster = self._client.describe_cluster(request_timeout=seconds).result()
            broker = str(cast("Any", cluster).nodes[0].id)
            resource = ConfigResource(ResourceType.BROKER, broker)
            answer = self._client.describe_configs([resource], request_timeout=seconds)
            try:
                found = answer[resource].result().get(name)
            except KafkaException as error:
                if kafka_error(error).name() in (*_FORBIDDEN, "UNSUPPORTED_VERSION"):
                    return None
                raise
            return None if found is None else cast("str | None", found.value)

        return self._answered(ask, "the settings of a broker", deadline)

    def _each(
        self,
        ask: Callable[[Sequence[str], float], Mapping[str, Future[Any]]],
        topics: Collection[str],
        doing: str,
        deadline: Deadline,
        *,
        right: str,
        done: tuple[str, ...] = (),
        take: Callable[[str, Any], None] = lambda _name, _answer: None,
    ) -> dict[str, str]:
        """Ask about each of *topics* until the answer is not one that a retry may change; why some were refused.

        *right* is the operation on a topic that it takes; errors named in *done* count as success.
        """
        left, refused = sorted(topics), dict[str, str]()
        while left:
            again = dict[str, KafkaError]()
            for begin in range(0, len(left), _AT_ONCE):
                answers = ask(
                    left[begin : begin + _AT_ONCE], max(0.5, deadline.remaining(_STEP_SECONDS))
                )
                for name, answer in answers.items():
                    try:
                        take(name, answer.result())
                    except KafkaException as raised:
                        error = kafka_error(raised)
                        if is_retriable(error):
                            again[name] = error
                        elif error.name() not in done:
                            refused[name] = _refusal(error, doing, name, right)
            left = sorted(again)
            if left and deadline.expired:
                raise self._late(again[left[0]], doing, left[0])
            if left:
                time.sleep(deadline.remaining(_PAUSE_SECONDS))
        return refused

    def _late(self, error: KafkaError, doing: str, topic: str) -> RetriableError:
        reason = (self.last_error if error.name() in _NO_ANSWER else None) or error.str()
        return RetriableError(
            f"Kafka did not answer a request for {doing} topic {topic!r} in time: {reason.rstrip('.')}."
        )


def _refusal(error: KafkaError, doing: str, topic: str, right: str) -> str:
    found = f"Kafka refused {doing} topic {topic!r}: {error.str().rstrip('.')} ({error.name()})."
    if error.name() not in _FORBIDDEN:
        return found
    return f"{found} Grant this client {right} on it."


def _setting(entry: ConfigEntry) -> TopicSetting:
    # The library gives its number, and has a class of its own for it.
    source = ConfigSource(entry.source)
    return TopicSetting(
        value=entry.value,
        is_own=source is ConfigSource.DYNAMIC_TOPIC_CONFIG,
        is_static=source is ConfigSource.STATIC_BROKER_CONFIG,
        is_read_only=entry.is_read_only,
        is_sensitive=entry.is_sensitive,
        is_default=source is ConfigSource.DEFAULT_CONFIG,
    )


def _change(name: str, value: str | None) -> ConfigEntry:
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    return ConfigEntry(name, value, incremental_operation=operation)
