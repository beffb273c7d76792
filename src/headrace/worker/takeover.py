"""What a worker would take over from its group, read from the brokers; and offsets made safe for a Java worker."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from headrace.config.distributed_config import DistributedConfig
from headrace.connect.errors import ConfigError, ConnectError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.compacted_topic import CompactedLog, LogRecord
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.group_requests import GroupDescription
from headrace.kafka.wire.settings import wire_settings
from headrace.offsets.codec import Unreadable, decoded_key, decoded_value
from headrace.offsets.index import LogPosition, OffsetIndex
from headrace.plugins import PluginConnectorValidator
from headrace.storage.config_topic import ConfigTopic
from headrace.storage.protocols import StoredConnector
from headrace.storage.status_topic import StatusTopic
from headrace.storage.topic_records import UnreadableRecordError
from headrace.worker.distributed import group_topics
from headrace.worker.services import kafka_offsets, reach_kafka

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTopic:
    """One of the group's topics; without *partitions* it does not exist, and is created. It has no *policies* where they are not known."""

    setting: str
    name: str
    partitions: int = 0
    policies: Sequence[str] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundOffset:
    """A committed *offset*, ``None`` for none.

    *aborted* is a later record of the same key that was not committed: a Java worker without exactly-once would go on from there, or begin
    anew where that record *is_removed*, a tombstone. With *other_key* the fields of its key are not in Java's order, so that a Java worker
    does not find it.
    """

    partition: SourcePartition
    offset: SourceOffset | None
    aborted: SourceOffset | None = None
    is_removed: bool = False
    other_key: bool = False

    @property
    def is_unsafe(self) -> bool:
        """Whether a Java worker may go on from elsewhere."""
        return self.aborted is not None or self.is_removed or self.other_key


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConnector:
    """A connector, and what would keep it from running: its *problems*, with the key of each. *state* is ``None`` for none."""

    name: str
    class_name: str
    target_state: str
    state: str | None
    tasks: int
    offsets: Sequence[FoundOffset]
    problems: Sequence[str]

    @property
    def outcome(self) -> str:
        """The state that it has when a worker has taken it over."""
        return "FAILED" if self.problems and self.target_state == "RUNNING" else self.target_state


@dataclass(frozen=True, slots=True, kw_only=True)
class Takeover:
    """All that was found; *skipped* are records that could not be read."""

    group_id: str
    group: GroupDescription
    topics: Sequence[FoundTopic]
    connectors: Sequence[FoundConnector]
    skipped: Sequence[str]

    @property
    def is_as_it_is(self) -> bool:
        """Whether a worker that is started now goes on with everything."""
        problems = [each.problem for each in self.topics if each.problem]
        return not (
            self.group.members or problems or any(each.problems for each in self.connectors)
        )


def settled(config: DistributedConfig, found: Takeover) -> int:
    """Write the offsets of *found* again that a Java worker would not find as they are; returns how many.

    Raises ``ConnectError`` while the group has members, which may write meanwhile, and when Kafka does not take them in time.
    """
    if found.group.members:
        raise ConnectError(
            f"The group {config.group_id!r} has members, which may commit offsets meanwhile. Stop them first."
        )
    count = 0
    with closing(kafka_offsets(config, config.offset_storage_topic)) as store:
        for connector in found.connectors:
            unsafe = {each.partition: each.offset for each in connector.offsets if each.is_unsafe}
            if unsafe:
                store.put(connector.name, unsafe)
                count += len(unsafe)
    return count


def once(tell: Callable[[str], None]) -> Callable[[str], None]:
    """*tell*, which is called with each sentence only once: a command's output has all of them in view."""
    told = set[str]()

    def tell_new(sentence: str) -> None:
        if sentence not in told:
            told.add(sentence)
            tell(sentence)

    return tell_new


def found_takeover(config: DistributedConfig) -> Takeover:
    """Look at the group of *config*; raises ``ConnectError`` when Kafka does not answer in time."""
    reach_kafka(config, once(_log.warning))
    deadline = Deadline.after(config.start_deadline_ms / 1e3, time.monotonic)
    looking = _Looking(config, deadline)
    topics = [looking.topic(each) for each in group_topics(config)]
    looking.read({each.name for each in topics if each.partitions})
    with closing(Cluster(wire_settings(client_config(config.connection()).settings))) as cluster:
        group = cluster.describe_group(config.group_id, deadline)
    return Takeover(
        group_id=config.group_id,
        group=group,
        topics=topics,
        connectors=list(looking.connectors()),
        skipped=looking.skipped,
    )


@dataclass(slots=True)
class _Looking:
    """What the topics say."""

    config: DistributedConfig
    deadline: Deadline
    skipped: list[str] = field(default_factory=list[str])
    _configs: ConfigTopic = field(default_factory=ConfigTopic)
    _statuses: StatusTopic = field(default_factory=StatusTopic)
    _offsets: OffsetIndex = field(default_factory=OffsetIndex)
    _committed: dict[bytes, bytes | None] = field(default_factory=dict[bytes, bytes | None])
    _written: dict[bytes, bytes | None] = field(default_factory=dict[bytes, bytes | None])

    def topic(self, topic: CompactedTopic) -> FoundTopic:
        """One of the group's topics."""
        admin = KafkaAdmin(client_config(self.config.connection()))
        if not admin.exists(topic.name, self.deadline):
            return FoundTopic(setting=topic.setting, name=topic.name)
        problem = None
        try:
            admin.check_compacted_topic(topic, self.deadline)
        except ConfigError as error:
            [(_, problem)] = error.problems
        return FoundTopic(
            setting=topic.setting,
            name=topic.name,
            partitions=len(admin.partitions(topic.name, self.deadline)),
            policies=sorted(admin.cleanup_policies(topic.name, self.deadline)),
            problem=problem,
        )

    def read(self, existing: set[str]) -> None:
        """Read the topics of configurations, statuses and offsets to their ends, as far as they are among *existing*."""
        config = self.config
        for topic, apply in (
            (config.config_storage_topic, self._configs.apply),
            (config.status_storage_topic, self._statuses.apply),
        ):
            if topic in existing:
                self._replay(topic, self._noting(topic, apply))
        if config.offset_storage_topic in existing:
            partitions = self._replay(config.offset_storage_topic, self._offset)
            self._offsets.replayed(partitions)
            self._replay(config.offset_storage_topic, self._any_offset, uncommitted=True)

    def connectors(self) -> Iterator[FoundConnector]:
        """The connectors, sorted by name."""
        validator = PluginConnectorValidator(self.config, self.config.group_id)
        aborted = self._aborted()
        for name, stored in sorted(self._configs.connectors().items()):
            status = self._statuses.statuses(name).get(None)
            yield FoundConnector(
                name=name,
                class_name=stored.config.get("connector.class") or "",
                target_state=stored.target_state,
                state=None if status is None else status.state,
                tasks=len(self._configs.records(name).tasks),
                offsets=list(self._offsets_of(name, aborted.get(name, {}))),
                problems=_problems(validator, stored),
            )

    def _offsets_of(
        self, name: str, aborted: dict[SourcePartition, SourceOffset | None]
    ) -> Iterator[FoundOffset]:
        known, others = self._offsets.known(name), self._offsets.differently_encoded(name)
        for partition in {**dict(known), **aborted}:
            yield FoundOffset(
                partition=partition,
                offset=known.get(partition),
                aborted=aborted.get(partition),
                is_removed=partition in aborted and aborted[partition] is None,
                other_key=partition in others,
            )

    def _aborted(self) -> dict[str, dict[SourcePartition, SourceOffset | None]]:
        """The offsets that were written last, and not committed, by connector; ``None`` for a tombstone."""
        found: dict[str, dict[SourcePartition, SourceOffset | None]] = {}
        for key, value in self._written.items():
            named, offset = decoded_key(key), decoded_value(value)
            if isinstance(named, Unreadable) or isinstance(offset, Unreadable):
                continue
            if self._committed.get(key) != value:
                found.setdefault(named.connector, {})[named.partition] = offset
        return found

    def _offset(self, record: LogRecord) -> None:
        place = LogPosition(
            partition=record.partition, offset=record.offset, timestamp=record.timestamp
        )
        self._offsets.apply(record.key, record.value, place)
        if record.key is not None:
            self._committed[record.key] = record.value

    def _any_offset(self, record: LogRecord) -> None:
        if record.key is not None:
            self._written[record.key] = record.value

    def _noting(
        self, topic: str, apply: Callable[[bytes | None, bytes | None], None]
    ) -> Callable[[LogRecord], None]:
        def take(record: LogRecord) -> None:
            try:
                apply(record.key, record.value)
            except UnreadableRecordError as error:
                place = f"topic {topic!r}, partition {record.partition}, offset {record.offset}"
                self.skipped.append(f"{place}: {error}")

        return take

    def _replay(
        self, topic: str, take: Callable[[LogRecord], None], *, uncommitted: bool = False
    ) -> int:
        """Read the topic; returns how many partitions it has."""
        client = client_config(self.config.connection())
        with closing(CompactedLog(topic, client, on_record=take, uncommitted=uncommitted)) as log:
            log.read_to_end(self.deadline)
            return log.partitions


def _problems(validator: PluginConnectorValidator, stored: StoredConnector) -> Sequence[str]:
    """What a start would raise; stored values that are null, which no new configuration may have, are left out there, too."""
    try:
        validator.run_spec(validator.resolved(stored.config))
    except ConfigError as error:
        return [f"{key}: {sentence}" for key, sentence in error.problems]
    except ConnectError as error:
        return [str(error)]
    return ()
