"""Google Cloud Storage as a store, against an emulator with good and bad moments."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import uuid4

import pytest

from connectors.stores.after_commit_suite import AfterCommitSuite
from connectors.stores.emulators import fake_gcs, serving
from connectors.stores.files_place import StoreFileOpener
from connectors.stores.odd_keys import GOOGLE_REFUSES
from connectors.stores.rest_moments import RestMoments
from connectors.stores.s3_proxy import Answer, Fault, Proxy, running
from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.stores.connecting import Connecting
from headrace.stores.errors import (
    ChecksumError,
    KeyNotRepresentableError,
    ObjectChangedError,
    StoreUnavailableError,
)
from headrace.stores.gcs.config import GcsConfig
from headrace.stores.gcs.store import GcsStore, gcs_store
from headrace.stores.rest.client import Request, RestClient
from headrace.stores.retries import Retries
from headrace.testing.store_suite import DATA, OTHER_KEYS, PATH_KEYS, Put, StoreSuite


@pytest.fixture(scope="session")
def gcs_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an emulator that all tests share. Use buckets of your own."""
    log = tmp_path_factory.mktemp("fake-gcs") / "log"
    with serving(fake_gcs(log), log) as port:
        yield port


@pytest.fixture(scope="session")
def shared_gcs_proxy(gcs_port: int) -> Iterator[tuple[Proxy, str]]:
    """A proxy that passes on to the emulator, and its address."""
    shared = Proxy(gcs_port)
    with running(shared) as endpoint:
        yield shared, endpoint


@pytest.fixture
def proxy(shared_gcs_proxy: tuple[Proxy, str]) -> Proxy:
    """The proxy, which has forgotten what other tests told it."""
    shared_gcs_proxy[0].forget()
    return shared_gcs_proxy[0]


@pytest.fixture
def owner(gcs_port: int) -> Callable[..., bytes]:
    """Sends a request to the emulator itself: path, query, headers, body."""
    client = RestClient(f"http://127.0.0.1:{gcs_port}", Connecting())

    def send(path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> bytes:
        request = Request(method="POST", path=path, query=query, headers=headers, body=body)
        response = client.send("owner", request)
        assert response.status == 200, response.whole()
        return response.whole()

    return send


@pytest.fixture
def config(
    proxy: Proxy, shared_gcs_proxy: tuple[Proxy, str], owner: Callable[..., bytes]
) -> GcsConfig:
    """The configuration of a new bucket behind the proxy."""
    bucket = f"bucket-{uuid4()}"
    body = json.dumps({"name": bucket}).encode()
    owner("/storage/v1/b", {}, {"Content-Type": "application/json"}, body)
    return GcsConfig.parse(
        {
            "gcs.bucket": bucket,
            "gcs.endpoint": shared_gcs_proxy[1],
            "gcs.anonymous": "true",
            "gcs.page.size": "3",
            "gcs.retries": "2",
            "gcs.retry.backoff.ms": "0",
        }
    )


@pytest.fixture
def store(config: GcsConfig) -> GcsStore:
    """The bucket as a store."""
    return gcs_store(config)


@pytest.fixture
def put(config: GcsConfig, owner: Callable[..., bytes]) -> Callable[..., None]:
    """Makes objects in the bucket; *headers* may say how they are stored."""

    def put(key: str, data: bytes, **query: str) -> None:
        path = f"/upload/storage/v1/b/{config.bucket}/o"
        owner(path, {"uploadType": "media", "name": key, **query}, {}, data)

    return put


class TestGcsStore(StoreSuite):
    """A bucket, in the suite of all stores, with pages of three keys."""

    exact_keys = (
        *PATH_KEYS,
        *(key for key in OTHER_KEYS if key not in GOOGLE_REFUSES),
        "line\nend",
    )
    refused_keys = ("\ud800", "", "x" * 1025, *GOOGLE_REFUSES)

    @pytest.fixture
    def store(self, config: GcsConfig) -> GcsStore:
        """See the suite."""
        return gcs_store(config)

    @pytest.fixture
    def put(self, put: Put) -> Put:
        """See the suite."""
        return put


class TestAfterCommit(AfterCommitSuite):
    """A bucket of which the connector reads, in the suite of all stores."""

    @pytest.fixture
    def place(self, config: GcsConfig, store: GcsStore, put: Put, proxy: Proxy) -> StoreFileOpener:
        """See the suite."""
        settings = {k: text for k, text in config.originals.items() if k != "gcs.bucket"}
        return StoreFileOpener(store=store, settings=settings, proxy=proxy, written=put)


class TestBadMoments(RestMoments):
    """What fails and may pass, and what only looks as if it went well."""

    listing = ("GET", "maxResults")
    reading = ("GET", "alt=media")
    copying = ("POST", "rewriteTo")
    page_token = "pageToken"
    forbidden = "roles/storage.objectViewer"


@pytest.mark.parametrize("key", GOOGLE_REFUSES)
def test_a_key_that_no_address_can_name_ends_the_listing(store: GcsStore, put: Put, key: str):
    """It is not left out silently."""
    for each in ("-", key, "a"):
        put(each, b"")

    with pytest.raises(KeyNotRepresentableError) as refused:
        list(store.list())

    assert key == refused.value.key


def test_what_is_asked_carries_its_condition(store: GcsStore, put: Put, proxy: Proxy):
    """The emulator ignores some of them, Google does not."""
    put("a", DATA)
    version = store.head("a").version
    proxy.forget()
    store.open("a", version).close()
    store.copy("a", version, "b")
    store.delete("a", version)

    conditions = [
        ("GET", f"alt=media&ifGenerationMatch={version}"),
        ("POST", f"?ifSourceGenerationMatch={version}"),
        ("DELETE", f"?ifGenerationMatch={version}"),
    ]
    for method, condition in conditions:
        assert any(method == asked and condition in target for asked, target in proxy.seen)


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_condition_that_fails_is_another_version(
    method: str, store: GcsStore, put: Put, proxy: Proxy
):
    """Google says so with a status."""
    put("a", DATA)
    version = store.head("a").version
    proxy.fail(Fault(method, "GenerationMatch", status=412))
    action = {
        "GET": lambda: store.open("a", version),
        "POST": lambda: store.copy("a", version, "b"),
        "DELETE": lambda: store.delete("a", version),
    }[method]
    with pytest.raises(ObjectChangedError, match="'a'"):
        action()


def test_a_copy_may_take_several_requests(store: GcsStore, put: Put, proxy: Proxy):
    """Google copies large objects in steps, each of which names the one before."""
    put("a", DATA)
    version = store.head("a").version

    def unfinished(answer: Answer) -> Answer:
        body = json.dumps({"done": False, "rewriteToken": "step/1"}).encode()
        return replace(answer, body=body)

    proxy.fail(Fault("POST", "rewriteTo", change=unfinished))
    store.copy("a", version, "b")
    assert ["rewriteToken=step%2F1" in each for m, each in proxy.seen if m == "POST"] == [
        False,
        True,
    ]


def test_a_listing_begins_where_it_is_asked_to(store: GcsStore, put: Put, proxy: Proxy):
    """Not at the beginning, to drop most of it."""
    for number in range(9):
        put(f"{number}", b"")
    proxy.forget()

    assert ["7", "8"] == [each.key for each in store.list(start_after="6")]
    assert 1 == len(proxy.seen)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"<html>", b""])
def test_a_listing_that_is_none_is_not_an_empty_one(
    body: bytes, store: GcsStore, put: Put, proxy: Proxy
):
    """An empty one says what it is."""
    put("a", b"")
    broken = Fault("GET", "maxResults", times=2, change=lambda answer: replace(answer, body=body))
    proxy.fail(broken)
    assert ["a"] == [each.key for each in store.list()]

    proxy.fail(replace(broken, times=3))
    with pytest.raises(StoreUnavailableError, match="has no kind"):
        list(store.list())


def test_an_object_that_is_stored_gzipped_is_read_as_it_is_stored(
    store: GcsStore, put: Callable[..., None], proxy: Proxy
):
    """Google would unpack it, and could not tell its length."""
    packed = gzip.compress(DATA)
    put("a", packed, contentEncoding="gzip")
    found = store.head("a")
    assert packed == store.open("a", found.version, size=found.size).read()

    proxy.fail(Fault("GET", "alt=media", times=9, drop="accept-encoding"))
    with pytest.raises(StoreUnavailableError):
        store.open("a", found.version, size=found.size).read()


def test_an_object_that_was_composed_has_a_crc_alone(store: GcsStore, put: Put, proxy: Proxy):
    """Which is compared as well."""
    put("a", DATA)
    version = store.head("a").version

    def composed(answer: Answer) -> Answer:
        told = {name.lower(): text for name, text in answer.headers.items()}
        crc = next(each for each in told["x-goog-hash"].split(",") if "crc32c=" in each)
        return replace(answer, headers={**told, "x-goog-hash": crc})

    def flipped(answer: Answer) -> Answer:
        return replace(composed(answer), body=answer.body[:-1] + b"?")

    proxy.fail(Fault("GET", "alt=media", change=composed))
    assert DATA == store.open("a", version).read()
    proxy.fail(Fault("GET", "alt=media", change=flipped))
    with store.open("a", version) as opened:
        opened.read(9)
        # The second reading was given an MD5 as well, but is asked for the same checksum.
        assert DATA[9:] == opened.read(len(DATA))
    proxy.fail(Fault("GET", "alt=media", times=2, change=flipped))
    with pytest.raises(ChecksumError, match="crc32c checksum"):
        store.open("a", version).read()


def test_the_connector_reads_it_by_its_address(config: GcsConfig, put: Put):
    """With the settings of the store beside those of the connector."""
    put("in/a.jsonl", b"{}")
    settings = {name: text for name, text in config.originals.items() if name != "gcs.bucket"}
    path = f"gs://{config.bucket}/in/"
    files = FilesConfig.parse({"topic": "t", "files.path": path, **settings})
    assert files.root is not None
    listed = files.open_store(files.root).list("in/")

    assert ["in/a.jsonl"] == [each.key for each in listed]


def test_a_bucket_that_is_missing_is_no_missing_object(config: GcsConfig, proxy: Proxy):
    """Google tells them apart by its sentence."""
    missing = gcs_store(replace(config, bucket="missing-bucket"))
    with pytest.raises(TaskFailedError, match=r"404.*gcs\.bucket"):
        list(missing.list())
    body = {"error": {"message": "The specified bucket does not exist."}}
    proxy.fail(
        Fault(
            "GET", "missing", times=9, change=lambda a: replace(a, body=json.dumps(body).encode())
        )
    )
    with pytest.raises(TaskFailedError, match=r"404 The specified bucket"):
        missing.open("a", "1")


def test_a_server_that_is_away_may_come_back():
    """The error names its address."""
    client = RestClient("http://127.0.0.1:1", Connecting())
    away = GcsStore(client, "bucket", retries=Retries(attempts=2, sleep=bool))
    with pytest.raises(StoreUnavailableError, match=r"gs://bucket.*refused"):
        away.head("a")
