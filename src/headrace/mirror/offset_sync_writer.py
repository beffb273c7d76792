"""Writes offset syncs to the source cluster, as MirrorMaker does: after the commit, and without waiting for them."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from typing import Final

from headrace.connect.errors import ConnectError
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.loose_producer import LooseProducer
from headrace.kafka.wire.cluster import Cluster
from headrace.mirror.client_settings import ClientKind, ClientRole, Side
from headrace.mirror.formats import OffsetSync
from headrace.mirror.settings import MirrorSourceConfig

_log = logging.getLogger(__name__)

_LOOK_SECONDS: Final = 5.0
_LOOK_AGAIN_SECONDS: Final = 60.0
_END_SECONDS: Final = 5.0
# As Java's producer; the queue must not grow for ever.
_DELIVERY: Final = ("delivery.timeout.ms", "120000")


class OffsetSyncWriter:
    """Writes for one task. One thread owns it; *cluster* is a client of the source.

    The driver creates the topic. While it is not there, nothing is written: brokers would create one that forgets.
    """

    def __init__(
        self,
        config: MirrorSourceConfig,
        cluster: Cluster,
        *,
        task: int,
        clock: Clock = time.monotonic,
    ) -> None:
        self._config = config
        self._topic = config.offset_syncs_topic
        self._cluster = cluster
        self._task = task
        self._clock = clock
        self._look_at = clock()
        self._producer: LooseProducer | None = None

    def write(self, syncs: Sequence[OffsetSync]) -> None:
        """Hand *syncs* over; they are lost if that is not possible."""
        producer = self._opened()
        if producer is not None:
            producer.send(self._topic, 0, (each.encoded() for each in syncs))

    def close(self) -> None:
        """Wait a moment for what is on its way."""
        if self._producer is not None:
            self._producer.close(_END_SECONDS)

    def _opened(self) -> LooseProducer | None:
        if self._producer is None and self._clock() >= self._look_at:
            self._look_at = self._clock() + _LOOK_AGAIN_SECONDS
            try:
                if self._is_there():
                    self._producer = self._made()
            except ConnectError as error:
                _log.warning("Offset syncs are not written for now: %s", error)
        return self._producer

    def _is_there(self) -> bool:
        deadline = Deadline.after(_LOOK_SECONDS, self._clock)
        found = self._cluster.metadata([self._topic], deadline).topics.get(self._topic)
        return found is not None and found.error is None

    def _made(self) -> LooseProducer:
        role = ClientRole.OFFSET_SYNCS_SOURCE_PRODUCER
        settings = self._config.client(Side.SOURCE, ClientKind.PRODUCER, role, task=self._task)
        settings.setdefault(*_DELIVERY)
        return LooseProducer(producer_config(settings), what="offset syncs")
