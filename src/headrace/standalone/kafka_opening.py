"""What a serving worker opens once Kafka is there: the offset store, the channel, and what runs stand on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from headrace.connect.errors import RetriableError
from headrace.observe.events import Tell
from headrace.runtime.engine import Engine
from headrace.runtime.offset_changes.changes import OffsetChanges
from headrace.runtime.running.dead_letter_topic import ensure_dead_letters
from headrace.runtime.running.processes import LocalProcesses, Processes
from headrace.runtime.services import RunSpec
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.runtime.standalone.lazy_engine import LazyEngine
from headrace.runtime.standalone.parts import KafkaParts, LocalParts
from headrace.standalone.data_plane import foreign_modules
from headrace.standalone.foundation import reach_kafka
from headrace.standalone.opened_services import opened_services
from headrace.storage.sqlite import SqliteStorage


class KafkaOpening:
    """Opened by a thread that waits for Kafka, closed by the one that ends the worker, in any order."""

    def __init__(
        self,
        config: WorkerConfig,
        local: LocalParts,
        storage: SqliteStorage,
        *,
        group_id: str,
        tell: Tell,
        engine: Engine,
        processes: Processes | None = None,
    ) -> None:
        self._config = config
        self._local = local
        self._storage = storage
        self._group_id = group_id
        self._tell = tell
        self._engine = engine
        self._processes = processes or LocalProcesses()
        # What is opened after the end is closed at once.
        self._guard = threading.Lock()
        self._opened = ExitStack()
        self._is_closed = False

    def open(self) -> KafkaParts:
        """Wait for Kafka, and open everything; raises ``ConnectError`` when it is not there in time."""
        cluster_id = reach_kafka(self._config)
        services = opened_services(
            self._config,
            self._storage,
            group_id=self._group_id,
            worker_id=self._local.worker_id,
            tell=self._tell,
            engine=lambda: self._engine,
            close_later=self._close_later,
        )
        changes = OffsetChanges(services, self._storage.changes)
        ready = replace(
            services,
            processes=self._processes,
            prepare=_preparing(changes, services.engine),
        )
        return KafkaParts(services=ready, changes=changes, cluster_id=cluster_id)

    def close(self) -> None:
        """Close what was opened, the last first; called when nothing runs any more."""
        with self._guard:
            self._is_closed = True
        self._opened.close()

    def _close_later(self, close: Callable[[], None]) -> None:
        with self._guard:
            if not self._is_closed:
                self._opened.callback(close)
                return
        close()
        raise RetriableError("The worker is shutting down.")


def _preparing(changes: OffsetChanges, engine: Engine) -> Callable[[RunSpec], None]:
    """What is done before each start of a connector, on its run's thread."""

    def prepare(spec: RunSpec) -> None:
        # A connector of its own: the hook uses it up.
        changes.settle(replace(spec, connector=type(spec.connector)()))
        ensure_dead_letters(spec)
        if isinstance(engine, LazyEngine):
            names = (each.class_name for each in spec.plugins)
            engine.require(foreign_modules(spec.connector, names))

    return prepare
