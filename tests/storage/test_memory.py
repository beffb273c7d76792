"""The stores in memory keep the contracts of stores."""

from __future__ import annotations

import pytest

from headrace.offsets.store import OffsetRecordStore
from headrace.storage.memory import (
    MemoryConfigStore,
    MemoryOffsetStore,
    MemorySettingStore,
    MemoryStatusStore,
    MemoryTopicStore,
)
from headrace.storage.protocols import (
    ConfigStore,
    SettingStore,
    StatusStore,
    TopicStore,
)
from headrace.testing.storage_suites import (
    ConfigStoreSuite,
    OffsetRecordStoreSuite,
    SettingStoreSuite,
    StatusStoreSuite,
    TopicStoreSuite,
)


class TestMemoryOffsets(OffsetRecordStoreSuite):
    """Offsets in memory."""

    @pytest.fixture
    def store(self) -> OffsetRecordStore:
        """An empty store."""
        return MemoryOffsetStore()


class TestMemoryConfigs(ConfigStoreSuite):
    """Configs in memory."""

    @pytest.fixture
    def store(self) -> ConfigStore:
        """An empty store."""
        return MemoryConfigStore()


class TestMemorySettings(SettingStoreSuite):
    """Facts about a worker in memory."""

    @pytest.fixture
    def store(self) -> SettingStore:
        """An empty store."""
        return MemorySettingStore()


class TestMemoryStatuses(StatusStoreSuite):
    """Statuses in memory."""

    @pytest.fixture
    def store(self) -> StatusStore:
        """An empty store."""
        return MemoryStatusStore()


class TestMemoryTopics(TopicStoreSuite):
    """Topics in memory."""

    @pytest.fixture
    def store(self) -> TopicStore:
        """An empty store."""
        return MemoryTopicStore()
