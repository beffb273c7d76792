"""A worker that runs given connectors until it is stopped, or until all has been read."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.admission import Admitted, run_spec
from headrace.observe.events import Tell
from headrace.runtime.running.dead_letter_topic import ensure_dead_letters
from headrace.runtime.running.processes import LocalProcesses, Processes
from headrace.runtime.services import RunSpec
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.runtime.worker import Worker
from headrace.standalone.data_plane import spark_engine
from headrace.standalone.foundation import identity, own_worker_id, reach_kafka
from headrace.standalone.opened_services import opened_services
from headrace.storage.protocols import StoredConnector
from headrace.storage.sqlite import SqliteStorage

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
        group_id = identity(config, storage, state_file)
        reach_kafka(config)
        services = opened_services(
            config,
            storage,
            group_id=group_id,
            worker_id=own_worker_id(),
            tell=tell,
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
        # However the caller leaves, nobody may use what is closed after this.
        opened.callback(worker.stop)
        specs = [run_spec(each, config, group_id) for each in connectors]
        yield Standalone(worker=worker, specs=specs)
