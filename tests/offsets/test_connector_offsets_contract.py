"""All places for a connector's offsets keep one contract; in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from doubles.copied_positions import GROUP
from doubles.memory_group import MemoryGroup
from headrace.offsets.connector_stores import ConnectorOffsets, NamedConnector, WorkerOffsets
from headrace.offsets.consumer_group import GroupOffsets
from headrace.offsets.secondary import SecondaryOffsetWriter
from headrace.offsets.store import LockedOffsetStore
from headrace.storage.memory import MemoryOffsetStore
from offsets.connector_offsets_suite import ConnectorOffsetsSuite
from offsets.own_topics import OWN, OpenedStores


class TestTheWorkerStore(ConnectorOffsetsSuite):
    """The worker's store, which all its connectors share."""

    @pytest.fixture
    def offsets(self) -> Iterator[ConnectorOffsets]:
        """Of one connector."""
        worker = LockedOffsetStore(MemoryOffsetStore())
        copies = SecondaryOffsetWriter(worker.put)
        yield WorkerOffsets(worker, "c", copies)
        copies.close()


class TestATopic(ConnectorOffsetsSuite):
    """A topic of the connector's own."""

    @pytest.fixture
    def offsets(self) -> Iterator[ConnectorOffsets]:
        """Over the worker's store."""
        opened = OpenedStores()
        yield opened.stores.of(NamedConnector(name="c", offsets_topic=OWN))
        opened.stores.close()


class TestAGroup(ConnectorOffsetsSuite):
    """A consumer group."""

    @pytest.fixture
    def offsets(self) -> ConnectorOffsets:
        """With nothing in the worker's store."""
        worker = LockedOffsetStore(MemoryOffsetStore())
        group = MemoryGroup()
        return GroupOffsets(GROUP, "c", lambda: group, worker=worker, worker_topic="w")
