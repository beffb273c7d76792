"""Topics of connectors' own, in memory."""

from __future__ import annotations

from dataclasses import replace

from headrace.config.client_settings import ConnectorOffsetsTopic
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.store import LockedOffsetStore
from headrace.storage.memory import MemoryOffsetStore

OWN = ConnectorOffsetsTopic(
    topic="own",
    partitions=1,
    replication=1,
    reader={"client.id": "r"},
    writer={"client.id": "w"},
    admin={"bootstrap.servers": "127.0.0.1:1"},
)
OTHER = replace(OWN, writer={"client.id": "other"})


class Topic:
    """A topic in memory; *same* says whether it is the worker's, or what asking for that raises."""

    def __init__(self, *, same: bool | Exception = False) -> None:
        self.store = LockedOffsetStore(MemoryOffsetStore())
        self.same = same
        self.is_closed = False

    def is_worker_topic(self) -> bool:
        """As the test says."""
        if isinstance(self.same, Exception):
            raise self.same
        return self.same

    def existing(self) -> LockedOffsetStore:
        """It is there."""
        return self.store

    def ensured(self) -> LockedOffsetStore:
        """It is there."""
        return self.store

    def close(self) -> None:
        """Note it."""
        self.is_closed = True


class OpenedStores:
    """OpenedStores with a worker's store in memory, and the topics that were opened, in order."""

    def __init__(self) -> None:
        self.opened: list[Topic] = []
        self.same: bool | Exception = False
        self.stores = ConnectorOffsetStores(
            LockedOffsetStore(MemoryOffsetStore()), open_topic=self._open
        )

    def _open(self, _: ConnectorOffsetsTopic) -> Topic:
        self.opened.append(Topic(same=self.same))
        return self.opened[-1]

    def closed(self) -> list[bool]:
        """Which are closed."""
        return [each.is_closed for each in self.opened]
