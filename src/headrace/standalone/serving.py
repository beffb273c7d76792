"""A worker that answers requests, with connectors that come and go."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from headrace.admission import ConnectorAdmission, SqlJudge, no_judge
from headrace.observe.events import Tell, told_to
from headrace.runtime.active_topics import ActiveTopics
from headrace.runtime.engine import Engine
from headrace.runtime.running.processes import Processes
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.runtime.standalone.herder import StandaloneHerder
from headrace.runtime.standalone.lazy_engine import LazyEngine
from headrace.runtime.standalone.parts import LocalParts
from headrace.standalone.data_plane import spark_engine
from headrace.standalone.foundation import identity, own_worker_id, timing
from headrace.standalone.kafka_opening import KafkaOpening
from headrace.storage.sqlite import SqliteStorage


@contextmanager
def serving(
    config: WorkerConfig,
    *,
    state_file: Path,
    tell: Tell,
    storage: SqliteStorage | None = None,
    worker_id: str | None = None,
    engine: Engine | None = None,
    processes: Processes | None = None,
) -> Generator[StandaloneHerder]:
    """A herder over *state_file* that has not been started; closed at the end, with all that it opened.

    Nothing waits for Kafka here, and there is no JVM before a connector runs, on an *engine* of Spark's
    unless one is given. *worker_id* is the worker's name in statuses. *storage* is the state file when its
    caller has opened it already, who closes it then. Raises :class:`~headrace.connect.errors.ConfigError`
    when another process has the state file.
    """
    data_plane = engine or LazyEngine(lambda: spark_engine(config, ()), slots=config.slots)
    with ExitStack() as opened:
        if storage is None:
            storage = SqliteStorage(state_file)
            opened.callback(storage.close)
        group_id = identity(config, storage, state_file)
        admission = ConnectorAdmission(config, group_id, sql=_sql_judge(data_plane))
        local = _local_parts(config, storage, admission, worker_id or own_worker_id())
        kafka = KafkaOpening(
            config,
            local,
            storage,
            group_id=group_id,
            tell=told_to(tell, *_topic_listeners(config, storage)),
            engine=data_plane,
            processes=processes,
        )
        opened.callback(kafka.close)
        herder = StandaloneHerder(local, kafka.open)
        opened.callback(herder.close)
        yield herder


def _local_parts(
    config: WorkerConfig, storage: SqliteStorage, admission: ConnectorAdmission, worker_id: str
) -> LocalParts:
    return LocalParts(
        configs=storage.configs,
        statuses=storage.statuses,
        topics=storage.topics,
        admission=admission,
        worker_id=worker_id,
        slots=config.slots,
        grace=timing(config).grace,
        masks_passwords=config.rest_mask_passwords,
        tracks_topics=config.topic_tracking_enable,
        may_reset_topics=config.topic_tracking_allow_reset,
        together=storage.together,
        unsettled=partial(_unsettled, storage),
    )


def _sql_judge(data_plane: Engine) -> SqlJudge:
    """Spark, as soon as it runs; nobody where the data plane is another one."""
    return data_plane.sql_problems if isinstance(data_plane, LazyEngine) else no_judge


def _topic_listeners(config: WorkerConfig, storage: SqliteStorage) -> list[Tell]:
    if not config.topic_tracking_enable:
        return []
    return [ActiveTopics(storage.topics, storage.configs)]


def _unsettled(storage: SqliteStorage) -> list[str]:
    return [each.entry.connector for each in storage.changes.open_intents()]
