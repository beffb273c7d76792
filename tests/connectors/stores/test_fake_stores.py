"""Google's and Azure's stores against fakes of them, which run everywhere and honour every condition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from connectors.stores.after_commit_suite import DELETE, AfterCommitSuite, settings_of
from connectors.stores.fake_azure import FakeAzure
from connectors.stores.fake_google import FakeGoogle
from connectors.stores.fake_objects import FakeStore
from connectors.stores.files_place import FilesPlace, StoreFileOpener
from connectors.stores.odd_keys import AZURE_REFUSES, GOOGLE_REFUSES
from connectors.stores.s3_proxy import running
from headrace.stores.azure.config import AzureConfig
from headrace.stores.azure.store import azure_store
from headrace.stores.errors import ObjectChangedError
from headrace.stores.gcs.config import GcsConfig
from headrace.stores.gcs.store import gcs_store
from headrace.stores.store import Store
from headrace.testing.store_suite import OTHER_KEYS, PATH_KEYS, Put, StoreSuite, TagsOf


@dataclass(frozen=True)
class Kind:
    """A store: its fake, the adapter, and the settings with which that reaches a fake at an address."""

    fake: Callable[[str], FakeStore]
    store: Callable[[dict[str, str]], Store]
    settings: Callable[[str], dict[str, str]]
    bucket: str


GOOGLE = Kind(
    FakeGoogle,
    lambda props: gcs_store(GcsConfig.parse(props)),
    lambda address: {"gcs.endpoint": address, "gcs.anonymous": "true"},
    "gcs.bucket",
)
AZURE = Kind(
    FakeAzure,
    lambda props: azure_store(AzureConfig.parse(props)),
    lambda address: {
        "azure.account": "account",
        "azure.endpoint": f"{address}/account",
        "azure.anonymous": "true",
    },
    "azure.container",
)


class Fakes:
    """What the suites need of one kind of store; a subclass says which."""

    kind: Kind

    @pytest.fixture
    def fake(self) -> FakeStore:
        """An empty one."""
        return self.kind.fake("bucket")

    @pytest.fixture
    def settings(self, fake: FakeStore) -> Iterator[dict[str, str]]:
        """Of the connector, while the fake runs."""
        store = self.kind.bucket.partition(".")[0]
        quick = {"page.size": "3", "retries": "2", "retry.backoff.ms": "0"}
        with running(fake) as address:
            common = {f"{store}.{key}": text for key, text in quick.items()}
            yield {**self.kind.settings(address), **common}

    @pytest.fixture
    def store(self, settings: dict[str, str]) -> Store:
        """The adapter."""
        return self.kind.store({**settings, self.kind.bucket: "bucket"})

    @pytest.fixture
    def put(self, fake: FakeStore) -> Put:
        """Makes objects."""
        return fake.put

    @pytest.fixture
    def tags_of(self, fake: FakeStore, store: Store) -> TagsOf | None:
        """Knows an object's tags."""
        return fake.tags if store.capabilities.has_tags else None

    @pytest.fixture
    def place(
        self, store: Store, settings: dict[str, str], fake: FakeStore, tags_of: TagsOf | None
    ) -> FilesPlace:
        """The fake, with what the connector needs to read it."""
        return StoreFileOpener(
            store=store, settings=settings, proxy=fake, written=fake.put, tags_of=tags_of
        )


class Races:
    """What another writer does between two requests, which only conditions can tell."""

    def test_a_new_version_between_the_look_and_the_deletion_stays(
        self, store: Store, fake: FakeStore
    ) -> None:
        """The deletion itself asks for the version."""
        old = fake.put("a", b"one").version
        fake.before("DELETE", lambda: fake.put("a", b"another"))

        with pytest.raises(ObjectChangedError, match="'a'"):
            store.delete("a", old)
        assert b"another" == fake.kept["a"].data

    def test_a_new_version_between_the_look_and_the_copy_is_not_copied(
        self, store: Store, fake: FakeStore
    ) -> None:
        """Nor does anything lie under the copy's key."""
        old = fake.put("a", b"one").version
        copying = "POST" if isinstance(fake, FakeGoogle) else "PUT"
        fake.before(copying, lambda: fake.put("a", b"another"))

        with pytest.raises(ObjectChangedError, match="'a'"):
            store.copy("a", old, "copy")
        assert ["a"] == list(fake.kept)

    def test_what_goes_between_the_look_and_the_deletion_is_gone(
        self, store: Store, fake: FakeStore
    ) -> None:
        """Which is a success, and whose it was no one knows."""
        old = fake.put("a", b"one").version
        fake.before("DELETE", fake.kept.clear)

        assert not store.delete("a", old)

    def test_a_version_that_came_behind_the_copy_is_not_deleted(
        self, place: FilesPlace, fake: FakeStore
    ) -> None:
        """A move copies what was read, and leaves what was not."""
        more = settings_of(place, "move")
        place.put("in/a.txt", b"one\n")
        stored = place.read_all("in/", **more)
        fake.before("DELETE", lambda: fake.put("in/a.txt", b"another\n"))

        assert [] == place.run(stored, "in/", files_changed="ignore", **more)

        kept = {key: each.data for key, each in fake.kept.items()}
        assert {"done/a.txt": b"one\n", "in/a.txt": b"another\n"} == kept
        assert "cleanup" not in stored[place.partition("in/a.txt")]

    def test_an_object_that_somebody_else_removed_is_done(
        self, place: FilesPlace, fake: FakeStore
    ) -> None:
        """Nothing fails, and nothing is left to try again."""
        place.put("in/a.txt", b"one\n")
        stored = place.read_all("in/", **DELETE)
        fake.kept.clear()

        assert [] == place.run(stored, "in/", **DELETE)
        assert "gone" == stored[place.partition("in/a.txt")]["cleanup"]


class TestFakeGoogle(Fakes, Races, StoreSuite, AfterCommitSuite):
    """Google Cloud Storage, in all suites."""

    kind = GOOGLE
    exact_keys = (
        *PATH_KEYS,
        *(key for key in OTHER_KEYS if key not in GOOGLE_REFUSES),
        "line\nend",
    )
    refused_keys = ("\ud800", "", "x" * 1025, *GOOGLE_REFUSES)


class TestFakeAzure(Fakes, Races, StoreSuite, AfterCommitSuite):
    """Azure Blob Storage, in all suites."""

    kind = AZURE
    exact_keys = tuple(key for key in (*PATH_KEYS, *OTHER_KEYS) if key not in AZURE_REFUSES)
    refused_keys = ("\ud800", "", "x" * 1025, *AZURE_REFUSES)
