"""A place of objects that the files connector reads, whatever the store."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from connectors.stores.s3_proxy import Proxy
from headrace.connect import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.stores.store import Store
from headrace.testing.store_suite import Put, TagsOf
from headrace.testing.task_runs import Delivered, LocalRun

Stored = dict[SourcePartition, SourceOffset]


class FilesPlace(ABC):
    """A bucket or a container behind *proxy*.

    All addresses in it begin with *root*, and *settings* are the connector's settings of the store.
    """

    root: str
    settings: Mapping[str, str]
    proxy: Proxy

    @abstractmethod
    def put(self, key: str, data: bytes) -> object:
        """Write an object."""

    @abstractmethod
    def listed(self) -> list[str]:
        """The keys in it, as they rise."""

    @abstractmethod
    def tags(self, key: str) -> Mapping[str, str]:
        """An object's tags."""

    def address(self, key: str = "") -> str:
        """What a configuration and offsets call an object or a prefix."""
        return f"{self.root}{key}"

    def partition(self, key: str) -> SourcePartition:
        """The source partition of an object."""
        return SourcePartition(filename=self.address(key))

    def props(self, *selected: str, **more: str) -> dict[str, str]:
        """The connector's configuration; *selected* are prefixes or globs, and all by default."""
        paths = ",".join(map(self.address, selected or ("",)))
        given = {key.replace("_", "."): text for key, text in more.items()}
        return {"files.path": paths, "topic": "t", **self.settings, **given}

    def local_run(
        self, stored: Stored, *selected: str, stop_after: int | None = None, **more: str
    ) -> LocalRun:
        """A run against *stored*, in two slots."""
        given = self.props(*selected, **more)
        return LocalRun(FilesConnector(), given, stored, slots=2, stop_after=stop_after)

    def run(
        self, stored: Stored, *selected: str, stop_after: int | None = None, **more: str
    ) -> list[Delivered]:
        """What a run commits until it is idle, or until *stop_after* records."""
        return self.local_run(stored, *selected, stop_after=stop_after, **more).until_idle()

    def read_all(self, *selected: str, **more: str) -> Stored:
        """What is stored when a process dies right after its last commit."""
        stored: Stored = {}
        local = self.local_run(stored, *selected, **more)
        local._connector.start(local._props)
        for task in list(local._tasks()):
            local._drain(task)
        return stored


@dataclass(frozen=True, kw_only=True)
class StoreFileOpener(FilesPlace):
    """One that *store* shows; *written* makes its objects and *tags_of* knows their tags, where it has some."""

    store: Store
    settings: Mapping[str, str]
    proxy: Proxy
    written: Put
    tags_of: TagsOf | None = None

    @property
    def root(self) -> str:
        """See :class:`FilesPlace`."""
        return f"{self.store.name}/"

    def put(self, key: str, data: bytes) -> object:
        """See :class:`FilesPlace`."""
        return self.written(key, data)

    def listed(self) -> list[str]:
        """See :class:`FilesPlace`."""
        return [each.key for each in self.store.list()]

    def tags(self, key: str) -> Mapping[str, str]:
        """See :class:`FilesPlace`."""
        return self.tags_of(key) if self.tags_of else {}


def values(delivered: list[Delivered]) -> list[object]:
    """Just the values."""
    return [each.value for each in delivered]
