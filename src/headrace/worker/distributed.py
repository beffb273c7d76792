"""A worker of a group, put together: what it shares with the others is in Kafka's topics, and nothing on this machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Final, cast

from headrace.config.distributed_config import DistributedConfig
from headrace.config.internal_topics import CONFIGS, OFFSETS, STATUSES
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.herder.coordination import HerderParts
from headrace.herder.distributed import Distributed
from headrace.herder.errors import ForbiddenError, ServerError
from headrace.herder.group import GroupSettings
from headrace.herder.group_admission import topics_in_words
from headrace.herder.group_protocol import ProtocolVersion
from headrace.herder.internal_requests import InternalRequest
from headrace.herder.request_signing import Peers, RequestSigning
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.worker_herder import WorkerHerder
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.membership import GroupMembership, GroupRole, GroupTiming
from headrace.kafka.wire.settings import wire_settings
from headrace.observe.events import EventListener, to_all
from headrace.observe.log_levels import Levels
from headrace.offsets.administration import OffsetChanges
from headrace.plugins import PluginConnectorValidator
from headrace.runtime.engine import DataPlane
from headrace.runtime.services import RunSpec
from headrace.storage.kafka import KafkaStorage, StorageClients, StorageTopics
from headrace.storage.protocols import (
    ConfigStore,
    SessionKey,
    StatusStore,
    TaskCount,
    TopicStore,
)
from headrace.worker.data_plane import lazy_engine, started_ahead
from headrace.worker.services import (
    Closing,
    Opening,
    kafka_offsets,
    opened_services,
    prepared,
    reach_kafka,
    sql_check,
    timing,
    topic_listeners,
)

_log = logging.getLogger(__name__)
_WAIT_SECONDS: Final = 60.0
_CHECK_SECONDS: Final = 10.0
# Longer than Spark takes to start on a small machine; one that has no cores yet is waited for where connectors run.
_ARRIVING_SECONDS: Final = 90.0
# A transaction's time-out, unless it is set otherwise, and how often brokers look for those that are over.
_OPEN_TRANSACTION_SECONDS: Final = 75.0


@contextmanager
def serving_group(
    config: DistributedConfig,
    *,
    url: str,
    worker_id: str,
    emit: EventListener,
    peers: Peers,
    levels: Levels | None = None,
    data_plane: DataPlane | None = None,
) -> Generator[WorkerHerder]:
    """A herder of a worker of a group that has not been started; closed at the end, with everything that it opened.

    The other workers reach it at *url*, and it reaches them through *peers*; *worker_id* is its name in statuses. Nothing waits for Kafka
    here. The data plane is started once Kafka has been reached. Without *data_plane*, connectors run on Spark. *levels* are those of this
    process's loggers, which any worker of the group may have set.
    """
    with ExitStack() as opened:
        worker = _Worker(
            config=config,
            url=url,
            worker_id=worker_id,
            emit=emit,
            peers=peers,
            levels=levels or Levels(),
            data_plane=data_plane or DataPlane.of(lazy_engine(config)),
        )
        opened.callback(worker.closing.close)
        herder = worker.herder()
        opened.callback(herder.close)
        yield herder


def group_topics(config: DistributedConfig) -> Sequence[CompactedTopic]:
    """The topics that the workers of a group share, as they are created."""
    given = config.originals
    of_configs = config.config_storage_replication_factor
    configs = CONFIGS.described(
        given, name=config.config_storage_topic, partitions=1, replication=of_configs
    )
    changes = replace(
        CONFIGS.described(given, name=config.changes_topic, partitions=1, replication=of_configs),
        setting="headrace.changes.storage.topic",
        keeps="changes of offsets",
    )
    offsets = OFFSETS.described(
        given,
        name=config.offset_storage_topic,
        partitions=config.offset_storage_partitions,
        replication=config.offset_storage_replication_factor,
    )
    statuses = STATUSES.described(
        given,
        name=config.status_storage_topic,
        partitions=config.status_storage_partitions,
        replication=config.status_storage_replication_factor,
    )
    return configs, changes, offsets, statuses


class _Later:
    """Stands for a store that is there once Kafka has been reached: each use waits for it, as requests do."""

    def __init__(self, found: Callable[[], object]) -> None:
        self._found = found

    def __getattr__(self, name: str) -> object:
        return getattr(self._found(), name)


class _Peers:
    """The other workers, asked and believed by the session key that is in the config topic (KIP-507)."""

    def __init__(
        self,
        signing: RequestSigning,
        peers: Peers,
        storage: Future[KafkaStorage],
        *,
        may_be_unsigned: bool,
    ) -> None:
        self._signing = signing
        self._may_be_unsigned = may_be_unsigned
        self._peers = peers
        self._storage = storage

    def ask(self, url: str, request: InternalRequest) -> None:
        try:
            self._ask(url, request)
        except ForbiddenError:
            # The leader has made a new key.
            self._storage.result().refresh()
            self._ask(url, request)

    def _ask(self, url: str, request: InternalRequest) -> None:
        key = self._key()
        # A leader of Kafka Connect makes none where the group does not speak the protocol that needs it.
        is_unsigned = self._may_be_unsigned and key is None
        signed = {} if is_unsigned else self._signing.signed(request.body, key)
        self._peers.put(
            request.method,
            f"{url.rstrip('/')}{request.path}",
            request.body,
            signed,
            seconds=request.seconds,
        )

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        self._signing.verify(body, signature, algorithm, self._key())

    def told(self, who: str, request: bytes) -> str | None:
        return self._signing.told_requester(who, request, self._key())

    def believed(self, header: str, request: bytes) -> str | None:
        return self._signing.believed_requester(header, request, self._key())

    def renew_key(self) -> None:
        storage, now_ms = self._storage.result(), time.time_ns() // 1_000_000
        if self._signing.needs_new_key(storage.session_key, now_ms=now_ms):
            storage.put_session_key(self._signing.new_key(now_ms=now_ms))

    def _key(self) -> SessionKey | None:
        # No one who is not known yet is to wait for Kafka here.
        return self._storage.result().session_key if self._storage.done() else None


class _TaskCounts:
    """Task counts as of now, which only the leader writes: an older and smaller one would leave some writers unfenced."""

    def __init__(self, storage: KafkaStorage, herder: WorkerHerder) -> None:
        self._storage = storage
        self._herder = herder

    def task_count(self, connector: str) -> TaskCount | None:
        with _waiting_for_topics():
            self._storage.refresh()
        return self._storage.configs.task_count(connector)

    def put_task_count(self, connector: str, count: TaskCount) -> None:
        self._herder.have_task_count_stored(connector, count)


@contextmanager
def _waiting_for_topics() -> Generator[None]:
    """Have a run wait while something is wrong with the group's topics, which the worker's health says: it has not failed."""
    try:
        yield
    except TaskFailedError as error:
        raise RetriableError(str(error)) from error


def _waiting_for(changes: OffsetChanges) -> Callable[[RunSpec], None]:
    """Has the run of a connector wait until no change of its offsets is under way: the leader is at it, or finishes it."""

    def wait(spec: RunSpec) -> None:
        with _waiting_for_topics():
            names = changes.open_changes()
        if spec.name in names:
            raise RetriableError(
                f"Connector {spec.name} waits until the leader of the group has finished a change of its offsets."
            )

    return wait


@dataclass(kw_only=True)
class _Worker:
    """What a herder is made of."""

    config: DistributedConfig
    url: str
    worker_id: str
    emit: EventListener
    peers: Peers
    levels: Levels
    data_plane: DataPlane
    closing: Closing = field(default_factory=Closing)
    _storage: Future[KafkaStorage] = field(default_factory=Future[KafkaStorage])
    _group: Distributed | None = None
    _herder: WorkerHerder | None = None

    def herder(self) -> WorkerHerder:
        self._herder = WorkerHerder(
            self._local_services(), self._open, coordinate=self._coordination
        )
        return self._herder

    def _local_services(self) -> LocalServices:
        config = self.config
        return LocalServices(
            configs=cast("ConfigStore", _Later(lambda: self._wait().configs)),
            statuses=cast("StatusStore", _Later(lambda: self._wait().statuses)),
            topics=cast("TopicStore", _Later(lambda: self._wait().topics)),
            validator=PluginConnectorValidator(
                config, config.group_id, sql=sql_check(self.data_plane.engine)
            ),
            worker_id=self.worker_id,
            grace=timing(config).grace,
            masks_passwords=config.rest_mask_passwords,
            tracks_topics=config.topic_tracking_enable,
            may_reset_topics=config.topic_tracking_allow_reset,
            place=f"the topic {config.config_storage_topic}",
            share_level=lambda logger, level: self._wait().put_level(logger, level),
            requesters=self._signed_peers(),
        )

    def _signed_peers(self) -> _Peers:
        return _Peers(
            RequestSigning.of(self.config),
            self.peers,
            self._storage,
            may_be_unsigned=self.config.group_mixed,
        )

    def _coordination(self, parts: HerderParts) -> Distributed:
        config = self.config
        settings = GroupSettings(
            group=config.group_id,
            url=self.url,
            slots=config.slots,
            max_delay_ms=config.scheduled_rebalance_max_delay_ms,
            hand_over=config.relinquish_timeout_ms / 1e3,
            session=config.session_timeout_ms / 1e3,
            protocol=ProtocolVersion.named(config.connect_protocol),
            is_mixed=config.group_mixed,
            tells_java_leader=config.relinquish_java_leader,
        )
        self._group = Distributed(
            parts,
            settings,
            self._storage.result,
            self._member,
            peers=self._signed_peers(),
            check=self._check_topics,
        )
        return self._group

    def _member(self, role: GroupRole, wake: Callable[[], None]) -> GroupMembership:
        config = self.config
        return GroupMembership(
            wire_settings(client_config(config.connection()).settings),
            config.group_id,
            role,
            timing=GroupTiming(
                session=config.session_timeout_ms / 1e3,
                heartbeat=config.heartbeat_interval_ms / 1e3,
                rebalance=config.rebalance_timeout_ms / 1e3,
            ),
            wake=wake,
        )

    def _wait(self) -> KafkaStorage:
        """The storage, for a request that came early; raises ``ServerError`` when it takes too long."""
        try:
            return self._storage.result(_WAIT_SECONDS)
        except TimeoutError as error:
            raise ServerError(
                "The worker is still starting up: Kafka has not been reached yet. Retry later."
            ) from error

    def _open(self) -> KafkaServices:
        """Wait for Kafka, create the topics that are missing, read them, and open everything."""
        config, group, herder = self.config, self._group, self._herder
        assert group is not None
        assert herder is not None
        cluster_id = reach_kafka(config)
        self._ensure_topics()
        storage = KafkaStorage(
            StorageTopics(
                configs=config.config_storage_topic,
                statuses=config.status_storage_topic,
                changes=config.changes_topic,
            ),
            self._clients(),
            may_lead=group.require_writer,
            generation=lambda: group.generation if group.holds() else None,
        )
        self.closing.later(storage.close)
        self._read(storage)
        storage.follow_levels(self.levels.change)
        opening = Opening(
            config=config,
            group_id=config.group_id,
            worker_id=self.worker_id,
            task_counts=_TaskCounts(storage, herder),
            statuses=storage.statuses,
            emit=to_all(self.emit, *topic_listeners(config, storage)),
            data_plane=self.data_plane,
            close_later=self.closing.later,
            holds=group.holds,
            published_tasks=storage.configs.published_tasks,
        )
        services = opened_services(opening, kafka_offsets(config, config.offset_storage_topic))
        self.closing.later(self.data_plane.close)
        changes = OffsetChanges(services, storage.changes)
        group.uses(self._topics_in_words())
        group.arrives(_ARRIVING_SECONDS)
        configs = [each.config for each in storage.configs.connectors().values()]
        # After an error, too: connectors then show it.
        started_ahead(services.engine, configs).add_done_callback(lambda _: group.has_arrived())
        self._storage.set_result(storage)
        return KafkaServices(
            services=prepared(services, _waiting_for(changes)),
            changes=changes,
            cluster_id=cluster_id,
        )

    def _read(self, storage: KafkaStorage) -> None:
        """Read the topics to their ends; a leader that was killed may have left a transaction open, which Kafka ends in time."""
        deadline = Deadline.after(_OPEN_TRANSACTION_SECONDS, time.monotonic)
        while True:
            try:
                storage.refresh()
            except RetriableError as error:
                if deadline.expired:
                    raise
                _log.warning("The group's topics are read again: %s", error)
            else:
                return

    def _ensure_topics(self) -> None:
        for kind in (CONFIGS, OFFSETS, STATUSES):
            for sentence in kind.ignored(self.config.originals):
                _log.warning("%s", sentence)
        admin, deadline = self._admin(), self._start_deadline()
        for topic in group_topics(self.config):
            admin.ensure_compacted_topic(topic, deadline)

    def _start_deadline(self) -> Deadline:
        return Deadline.after(self.config.start_deadline_ms / 1e3, time.monotonic)

    def _topics_in_words(self) -> str:
        """The group's topics, that of configurations with its id, which another one of its name does not have."""
        deadline = self._start_deadline()
        made = self._admin().topic_id(self.config.config_storage_topic, deadline)
        topics = {each.setting: each.name for each in group_topics(self.config)}
        return topics_in_words(topics, str(made))

    def _check_topics(self) -> None:
        """Raise ``ConfigError`` when one of the topics has been changed so that it loses data."""
        deadline = Deadline.after(_CHECK_SECONDS, time.monotonic)
        admin = self._admin()
        for topic in group_topics(self.config):
            admin.check_compacted_topic(topic, deadline)

    def _admin(self) -> KafkaAdmin:
        return KafkaAdmin(client_config(self.config.connection()))

    def _clients(self) -> StorageClients:
        config = self.config
        leader = f"connect-cluster-{config.group_id}" if config.fences_leaders else None
        return StorageClients(
            reader=client_config(config.connection()),
            leader=producer_config(config.connection(), transactional_id=leader),
            worker=producer_config(config.connection()),
        )
