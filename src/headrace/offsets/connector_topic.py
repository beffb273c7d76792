"""A connector's own topic of source offsets, created when it is missing, and followed (KIP-618)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from headrace.config.client_settings import OFFSETS_TOPIC_KEY, ConnectorOffsetsTopic
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.admin import ANSWER_SECONDS, CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.offsets.kafka_store import KafkaOffsetStore
from headrace.offsets.store import (
    CLOSED,
    LockedOffsetStore,
)


class KafkaConnectorTopic:
    """An :class:`~headrace.offsets.secondary.ConnectorTopic`. Any thread may call.

    Raises :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time,
    :class:`~headrace.connect.errors.ConfigError` for a topic that is not compacted, and
    :class:`~headrace.connect.errors.TaskFailedError` for errors that no retry can resolve.
    """

    def __init__(self, own: ConnectorOffsetsTopic, *, refresh_seconds: float) -> None:
        self._own = own
        self._refresh_seconds = refresh_seconds
        self._lock = threading.Lock()
        self._store: LockedOffsetStore | None = None
        self._is_ensured = False
        self._is_worker_topic: bool | None = None
        self._is_closed = False

    def is_worker_topic(self) -> bool:
        """Whether it is the worker's own topic under other addresses: same name, and a cluster with the same id.

        Asks both clusters at each call until both have answered.
        """
        with self._lock:
            if self._is_worker_topic is None:
                self._is_worker_topic = self._is_in_worker_cluster()
            return self._is_worker_topic

    def existing(self) -> LockedOffsetStore | None:
        """The store on this topic, ``None`` while the topic does not exist."""
        with self._lock:
            self._refuse_closed()
            if self._store is None and self._asked(self._exists):
                self._store = self._opened()
            return self._store

    def ensured(self) -> LockedOffsetStore:
        """The store on this topic, which is created if it is missing."""
        with self._lock:
            self._refuse_closed()
            if not self._is_ensured:
                self._asked(self._ensure)
                self._is_ensured = True
            if self._store is None:
                self._store = self._opened()
            return self._store

    def close(self) -> None:
        """Release the clients; later calls raise ``RetriableError``."""
        with self._lock:
            self._is_closed = True
            store, self._store = self._store, None
        if store is not None:
            store.close()

    def _refuse_closed(self) -> None:
        if self._is_closed:
            raise RetriableError(CLOSED)

    def _is_in_worker_cluster(self) -> bool:
        if self._own.worker_connection is None:
            return False
        ids = [
            KafkaAdmin(client_config(each)).cluster_id(_deadline())
            for each in (self._own.admin, self._own.worker_connection)
        ]
        return ids[0] == ids[1] != ""

    def _exists(self, admin: KafkaAdmin) -> bool:
        return admin.exists(self._own.topic, _deadline())

    def _ensure(self, admin: KafkaAdmin) -> bool:
        return admin.ensure_compacted_topic(
            CompactedTopic(
                name=self._own.topic,
                partitions=self._own.partitions,
                replication=self._own.replication,
                setting=OFFSETS_TOPIC_KEY,
                whose="connector",
            ),
            _deadline(),
        )

    def _asked(self, ask: Callable[[KafkaAdmin], bool]) -> bool:
        try:
            return ask(KafkaAdmin(client_config(self._own.admin)))
        except TaskFailedError as error:
            raise TaskFailedError(
                f"{error} It is the connector's own topic of source offsets ({OFFSETS_TOPIC_KEY}). {RIGHTS}"
            ) from error

    def _opened(self) -> LockedOffsetStore:
        store = KafkaOffsetStore(
            self._own.topic,
            client=client_config(self._own.reader),
            producer=producer_config(self._own.writer),
            refresh_seconds=self._refresh_seconds,
        )
        return LockedOffsetStore(store)


RIGHTS = (
    "Its admin client (admin.override.*) needs Create, Describe and DescribeConfigs on it, its tasks' producers "
    "(producer.override.*) Describe and Write, and its reader (these, or consumer.override.*) Describe and Read."
)


def _deadline() -> Deadline:
    return Deadline.after(ANSWER_SECONDS, time.monotonic)
