"""Puts a standalone worker together from its configuration: the composition root."""

from __future__ import annotations

import logging
import os
import platform
import secrets
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.admission import Admitted
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.reaching import wait_for_kafka
from headrace.observe.events import Tell
from headrace.observe.form import form_in_use
from headrace.runtime.capacity import Capacity
from headrace.runtime.channel import Channel
from headrace.runtime.connector_config import ConnectorConfig
from headrace.runtime.dead_letter_topic import ensure_dead_letters
from headrace.runtime.driver_commits import DriverCommits, fence_owners
from headrace.runtime.local_master import shortage
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.processes import LocalProcesses, Processes
from headrace.runtime.services import RunSpec, Services, Timing
from headrace.runtime.state_file import new_identity
from headrace.runtime.worker import Worker
from headrace.runtime.worker_config import WorkerConfig
from headrace.slot.work import BoundaryKind
from headrace.spark.reasons import in_short
from headrace.storage.kafka_offsets import KafkaOffsetStore
from headrace.storage.protocols import OffsetStore, StoredConnector
from headrace.storage.sqlite import SqliteStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headrace.runtime.engine import Engine

_log = logging.getLogger(__name__)
_OFFSETS_HOME = "offsets.home"
_GROUP_ID = "group.id"
# A read that is late is told and tried again from where it was, so this is how soon it is told.
_REFRESH_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """A worker that is ready to be started, and what it will run."""

    worker: Worker
    specs: Sequence[RunSpec] = field(repr=False)


@contextmanager
def standalone(
    config: WorkerConfig,
    connectors: Sequence[Admitted],
    *,
    state_file: Path,
    tell: Tell,
    once: bool = False,
    engine: Engine | None = None,
    processes: Processes | None = None,
) -> Generator[Standalone]:
    """Everything a worker needs, opened, and closed again at the end.

    Without an *engine* it runs on Spark as *config* says. Raises
    :class:`~headrace.connect.errors.ConnectError` when Kafka cannot be reached before the start's
    deadline, or another process has the state file.
    """
    with ExitStack() as opened:
        storage = SqliteStorage(state_file)
        opened.callback(storage.close)
        group_id = _identity(config, storage, state_file)
        _wait_for_kafka(config)
        desk = OffsetDesk(_offset_store(config, group_id, storage))
        opened.callback(desk.close)
        channel = _channel(config, desk)
        opened.callback(channel.close)
        data_plane = engine or spark_engine(config, connectors)
        opened.callback(data_plane.close)
        services = Services(
            engine=data_plane,
            channel=channel,
            capacity=Capacity(data_plane.slots),
            offsets=desk,
            configs=storage.configs,
            statuses=storage.statuses,
            group_id=group_id,
            worker_id=f"{platform.node()}:{os.getpid()}",
            run_id=secrets.token_hex(8),
            timing=_timing(config),
            tell=tell,
            fence=fence_owners,
            commit_offsets=DriverCommits(desk, group_id).commit,
            processes=processes or LocalProcesses(),
            prepare=ensure_dead_letters,
            once=once,
        )
        for each in connectors:
            storage.configs.put_connector(StoredConnector(name=each.name, config=each.props))
        worker = Worker(services)
        # However the caller leaves, nobody may use what is closed after this.
        opened.callback(worker.stop)
        specs = [run_spec(each, config, group_id) for each in connectors]
        yield Standalone(worker=worker, specs=specs)


def spark_engine(
    config: WorkerConfig, connectors: Sequence[Admitted], session: SparkSession | None = None
) -> Engine:
    """The engine that *config* asks for, or one on somebody's own *session*, which stays theirs.

    The modules of *connectors* that are not headrace's own are shipped to Spark. Raises
    :class:`~headrace.connect.errors.TaskFailedError` for a local *session* with fewer cores than slots, and
    for one that has ended.
    """
    if session is not None:
        _refuse_small(session, config.slots)
    # Spark takes a second to import, and a JVM to start: only when something is to run.
    from headrace.spark.engine import SparkEngine  # noqa: PLC0415
    from headrace.spark.session import SparkSettings  # noqa: PLC0415

    keys = config.spark()
    settings = SparkSettings(
        master=keys.pop("spark.master", None), remote=keys.pop("spark.remote", None), conf=keys
    )
    modules = {each.connector.task_class.__module__.partition(".")[0] for each in connectors}
    return SparkEngine(
        settings, slots=config.slots, session=session, modules=sorted(modules - {"headrace"})
    )


def _refuse_small(session: SparkSession, slots: int) -> None:
    try:
        master = session.conf.get("spark.master", None) or ""
    except Exception as error:
        raise TaskFailedError(
            f"The Spark session that was given does not answer: {in_short(error)}. Give a running one."
        ) from error
    # Its machine may be another one, so local[*] says nothing; slots that do not start are told then.
    problem = shortage(master, slots=slots, machine=None)
    if problem:
        raise TaskFailedError(f"The Spark session is too small. {problem}")


def run_spec(admitted: Admitted, worker: WorkerConfig, group_id: str) -> RunSpec:
    """A connector with every setting resolved."""
    config = ConnectorConfig.parse(admitted.props)
    return RunSpec(
        name=config.name,
        connector=admitted.connector,
        props=admitted.props,
        max_tasks=config.tasks_max,
        delivery=worker.delivery,
        producer=config.producer(worker),
        offsets_topic=worker.offsets_topic(group_id) if worker.offsets_in_topic else None,
        key_converter=config.converter("key", worker),
        value_converter=config.converter("value", worker),
        header_converter=config.converter("header", worker),
        boundary=config.boundary if worker.exactly_once else BoundaryKind.INTERVAL,
        commit_seconds=config.commit_seconds(worker),
        records_per_second=config.max_records_per_second,
        errors=config.errors,
    )


def _identity(config: WorkerConfig, storage: SqliteStorage, state_file: Path) -> str:
    known = config.group_id or storage.configs.setting(_GROUP_ID)
    group_id = known or f"headrace-{secrets.token_hex(4)}"
    has_begun = config.offsets_in_topic or storage.configs.setting(_OFFSETS_HOME) is not None
    if known is None:
        storage.configs.put_setting(_GROUP_ID, group_id)
    if known is None or not has_begun:
        _log.warning("%s", new_identity(config, group_id, state_file))
    return group_id


def _wait_for_kafka(config: WorkerConfig) -> None:
    deadline = Deadline.after(config.start_deadline_ms / 1e3, time.monotonic)
    try:
        wait_for_kafka(client_config(config.connection()), deadline, _log.warning)
    except RetriableError as error:
        seconds = config.start_deadline_ms / 1e3
        raise ConnectError(
            f"{error} Gave up after {seconds:g} s (headrace.start.deadline.ms)."
        ) from error


def _offset_store(config: WorkerConfig, group_id: str, storage: SqliteStorage) -> OffsetStore:
    topic = config.offsets_topic(group_id)
    home = f"the topic {topic}" if config.offsets_in_topic else "the state file"
    _refuse_other_home(storage, home)
    if config.offsets_in_topic:
        _ensure_offsets_topic(config, topic)
    # Not before it is there: nothing can lie in a topic that was mistyped or forbidden.
    storage.configs.put_setting(_OFFSETS_HOME, home)
    if not config.offsets_in_topic:
        return storage.offsets
    return KafkaOffsetStore(
        topic,
        client=client_config({**config.client("consumer"), **config.connection()}),
        producer=producer_config(config.connection()),
        refresh_seconds=_REFRESH_SECONDS,
    )


def _ensure_offsets_topic(config: WorkerConfig, topic: str) -> None:
    KafkaAdmin(client_config(config.connection())).ensure_compacted_topic(
        CompactedTopic(
            name=topic,
            partitions=config.offset_storage_partitions,
            replication=config.offset_storage_replication_factor,
        ),
        Deadline.after(config.start_deadline_ms / 1e3, time.monotonic),
    )


def _refuse_other_home(storage: SqliteStorage, home: str) -> None:
    """Offsets that were left elsewhere would be missed, and everything sent again."""
    stored = storage.configs.setting(_OFFSETS_HOME)
    if stored is not None and stored != home:
        raise TaskFailedError(
            f"This worker's source offsets are in {stored}, but its configuration now looks for them "
            f"in {home}; everything would be read again. Set exactly.once.source.support and "
            "offset.storage.topic as they were, or give it a new state.file to begin anew."
        )


def _channel(config: WorkerConfig, desk: OffsetDesk) -> Channel:
    host, _, port = config.channel_listener.rpartition(":")
    return Channel(desk.put_entries, host=host, port=int(port), log=form_in_use())


def _timing(config: WorkerConfig) -> Timing:
    return Timing(
        lease=config.lease_ms / 1e3,
        grace=config.task_shutdown_graceful_timeout_ms / 1e3,
        batch_budget=config.batch_budget_ms / 1e3,
        idle_poll=config.idle_poll_ms / 1e3,
        linger=config.poll_linger_ms / 1e3,
        flush_interval=config.offset_flush_interval_ms / 1e3,
    )
