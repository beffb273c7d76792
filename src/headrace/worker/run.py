"""A worker that runs given connectors until it is stopped, or until all has been read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.config.worker_config import WorkerConfig
from headrace.observe.events import EventListener
from headrace.plugins import ValidatedConnector, run_spec
from headrace.runtime.engine import LocalProcesses, Processes
from headrace.runtime.runs import Worker
from headrace.runtime.services import RunSpec
from headrace.storage.protocols import StoredConnector
from headrace.storage.sqlite import SqliteStorage
from headrace.worker.data_plane import spark_engine
from headrace.worker.services import (
    ensure_dead_letters,
    identity,
    keep_identity,
    opened_services,
    own_worker_id,
    reach_kafka,
)

if TYPE_CHECKING:
    from headrace.runtime.engine import Engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Standalone:
    """A worker that is ready to be started, and what it will run."""

    worker: Worker
    specs: Sequence[RunSpec] = field(repr=False)


@contextmanager
def standalone(
    config: WorkerConfig,
    connectors: Sequence[ValidatedConnector],
    *,
    state_file: Path,
    emit: EventListener,
    once: bool = False,
    engine: Engine | None = None,
    processes: Processes | None = None,
) -> Generator[Standalone]:
    """A worker with everything that it needs, which is closed at the end.

    Without an *engine* it runs on Spark as *config* says. Raises
    :class:`~headrace.connect.errors.ConnectError` when Kafka cannot be reached before the start's
    deadline, or another process has the state file.
    """
    with ExitStack() as opened:
        storage = SqliteStorage(state_file)
        opened.callback(storage.close)
        group_id = identity(config, storage)
        reach_kafka(config)
        keep_identity(config, storage, group_id)
        services = opened_services(
            config,
            storage,
            group_id=group_id,
            worker_id=own_worker_id(),
            emit=emit,
            engine=lambda: engine or spark_engine(config, connectors),
            close_later=opened.callback,
        )
        for each in connectors:
            storage.configs.put_connector(StoredConnector(name=each.name, config=each.given))
        worker = Worker(
            replace(
                services,
                processes=processes or LocalProcesses(),
                prepare=ensure_dead_letters,
                once=once,
            )
        )
        # Whatever ends the block, the worker must stop before its services are closed.
        opened.callback(worker.stop)
        specs = [run_spec(each, config, group_id) for each in connectors]
        yield Standalone(worker=worker, specs=specs)
