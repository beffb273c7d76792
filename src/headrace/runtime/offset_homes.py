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
from headrace.runtime.placed_offsets import PlacedOffsets
from headrace.runtime.settings.own_offsets import OwnOffsets

_Pairs = frozenset[tuple[str, str]]
_Place = tuple[str, _Pairs, _Pairs, _Pairs]


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

    def is_worker_s(self) -> bool:
        """Whether it is the worker's own after all. Blocks on brokers; raises what they do."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


class OffsetHomes:
    """All of a worker's. Any thread may call. *worker* is the worker's own store, which its caller closes.

    *open_topic* makes the reader of a connector's own topic, which stays open while a connector may need it:
    to begin anew is to read all of it. Connectors that name the same topic in the same way share it. Whoever still
    reads what is closed gets a :class:`~headrace.connect.errors.RetriableError`, and another reader when it asks again.
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
        self._topics: dict[_Place, OpenedTopic] = {}
        self._offsets: dict[tuple[str, _Place], ConnectorOffsets] = {}

    def of(self, connector: Housed) -> ConnectorOffsets:
        """The connector's; asks no broker by itself."""
        own = connector.own_offsets
        if own is None:
            return WorkerOffsets(self.worker, connector.name, self.copies)
        with self._lock:
            key = (connector.name, _place(own))
            if key not in self._offsets:
                self._offsets[key] = self._placed(connector.name, own)
            return self._offsets[key]

    def keep_only(self, connector: Housed) -> None:
        """Close what no connector needs now that *connector* is as it is; called when it starts, and when it is gone.

        Blocks while another thread is reading that.
        """
        own = connector.own_offsets
        kept = None if own is None else (connector.name, _place(own))
        with self._lock:
            for key in [each for each in self._offsets if each[0] == connector.name]:
                if key != kept:
                    del self._offsets[key]
            used = {place for _, place in self._offsets}
            unused = [self._topics.pop(place) for place in self._topics.keys() - used]
        for each in unused:
            each.close()

    def close(self) -> None:
        """Write copies that wait, and release what was opened here."""
        self.copies.close()
        with self._lock:
            opened, self._topics, self._offsets = list(self._topics.values()), {}, {}
        for each in opened:
            each.close()

    def _placed(self, name: str, own: OwnOffsets) -> ConnectorOffsets:
        topic = self._topic(own)
        both = OwnTopicOffsets(name, topic, worker=self.worker, copies=self.copies)
        if own.namesake is None:
            return both
        worker_s = WorkerOffsets(self.worker, name, self.copies)
        return PlacedOffsets(topic.is_worker_s, own=both, worker=worker_s)

    def _topic(self, own: OwnOffsets) -> OpenedTopic:
        if self._open_topic is None:
            raise TaskFailedError(
                f"This worker opens no topic besides its own, such as {own.topic}."
            )
        key = _place(own)
        if key not in self._topics:
            self._topics[key] = self._open_topic(own)
        return self._topics[key]


def _place(own: OwnOffsets) -> _Place:
    return own.topic, _pairs(own.reader), _pairs(own.writer), _pairs(own.admin)


def _pairs(settings: Mapping[str, str]) -> _Pairs:
    return frozenset(settings.items())
