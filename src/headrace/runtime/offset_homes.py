"""Where each connector's offsets are: the worker's store, and topics of connectors' own over it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from headrace.connect.errors import TaskFailedError
from headrace.runtime.connector_offsets import (
    ConnectorOffsets,
    OwnTopic,
    OwnTopicOffsets,
    WorkerOffsets,
)
from headrace.runtime.global_copies import GlobalCopies
from headrace.runtime.offset_desk import OffsetDesk
from headrace.runtime.settings.own_offsets import OwnOffsets


class Housed(Protocol):
    """A connector, as far as its offsets go."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def own_offsets(self) -> OwnOffsets | None:
        """Its own topic of source offsets, if it has one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A connector of which no more is known."""

    name: str
    own_offsets: OwnOffsets | None = None


class OpenedTopic(OwnTopic, Protocol):
    """One that is closed in the end."""

    def close(self) -> None:
        """Release what it holds."""
        ...


class OffsetHomes:
    """All of a worker's. Any thread may call. *worker* is the worker's own store, which its caller closes.

    *open_topic* makes the reader of a connector's own topic, which stays open until :meth:`close`, because
    another thread may be reading it; connectors that name the same topic in the same way share it.
    """

    def __init__(
        self,
        worker: OffsetDesk,
        *,
        copies: GlobalCopies | None = None,
        open_topic: Callable[[OwnOffsets], OpenedTopic] | None = None,
    ) -> None:
        self.worker = worker
        self.copies = copies or GlobalCopies(worker.put)
        self._open_topic = open_topic
        self._lock = threading.Lock()
        self._topics: dict[object, OpenedTopic] = {}
        self._offsets: dict[object, OwnTopicOffsets] = {}

    def of(self, connector: Housed) -> ConnectorOffsets:
        """The connector's; asks no broker by itself."""
        own = connector.own_offsets
        if own is None:
            return WorkerOffsets(self.worker, connector.name, self.copies)
        with self._lock:
            key = (connector.name, _place(own))
            if key not in self._offsets:
                self._offsets[key] = OwnTopicOffsets(
                    connector.name, self._topic(own), worker=self.worker, copies=self.copies
                )
            return self._offsets[key]

    def close(self) -> None:
        """Write copies that wait, and release what was opened here."""
        self.copies.close()
        with self._lock:
            opened, self._topics, self._offsets = list(self._topics.values()), {}, {}
        for each in opened:
            each.close()

    def _topic(self, own: OwnOffsets) -> OpenedTopic:
        if self._open_topic is None:
            raise TaskFailedError(
                f"This worker opens no topic besides its own, such as {own.topic}."
            )
        key = _place(own)
        if key not in self._topics:
            self._topics[key] = self._open_topic(own)
        return self._topics[key]


def _place(own: OwnOffsets) -> object:
    return own.topic, _pairs(own.reader), _pairs(own.writer), _pairs(own.admin)


def _pairs(settings: Mapping[str, str]) -> frozenset[tuple[str, str]]:
    return frozenset(settings.items())
