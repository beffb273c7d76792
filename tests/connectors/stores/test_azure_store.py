"""Azure Blob Storage as a store, against an emulator with good and bad moments."""

from __future__ import annotations

import base64
import hashlib
import hmac
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from urllib.parse import quote, urlencode
from uuid import uuid4

import pytest

from connectors.stores.after_commit_suite import AfterCommitSuite
from connectors.stores.emulators import azurite, serving
from connectors.stores.files_place import StoreFileOpener
from connectors.stores.odd_keys import AZURE_REFUSES
from connectors.stores.rest_moments import RestMoments
from connectors.stores.s3_proxy import Answer as Passed
from connectors.stores.s3_proxy import Fault, Proxy, running
from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.stores.azure.account import Account
from headrace.stores.azure.config import AzureConfig
from headrace.stores.azure.login import login_of
from headrace.stores.azure.store import AzureStore, azure_store
from headrace.stores.azure.tags import tags_of
from headrace.stores.connecting import Connecting
from headrace.stores.errors import (
    ObjectArchivedError,
    ObjectChangedError,
    StoreUnavailableError,
)
from headrace.stores.rest.calls import Answer
from headrace.stores.rest.client import Request, Response, RestClient
from headrace.stores.retries import Retries
from headrace.stores.store import Store
from headrace.testing.store_suite import DATA, OTHER_KEYS, PATH_KEYS, Put, StoreSuite, TagsOf

ACCOUNT = "emulated"
KEY = base64.b64encode(b"a key of the emulator").decode()


class Owner:
    """Asks the emulator itself for things in *container*, with the account's key."""

    def __init__(self, port: int, container: str) -> None:
        endpoint = f"http://127.0.0.1:{port}"
        login = login_of(Account.of(name=ACCOUNT, endpoint=endpoint, key=KEY))
        self._client = RestClient(endpoint, Connecting(), login)
        self._folder = f"/{ACCOUNT}/{container}"

    def make_container(self) -> None:
        """Make the container."""
        self._ask("PUT", self._folder, query={"restype": "container"})

    def put(self, key: str, data: bytes, **headers: str) -> None:
        """Make an object, or overwrite it; underscores in *headers* are hyphens."""
        more = {name.replace("_", "-"): text for name, text in headers.items()}
        more = {"x-ms-blob-type": "BlockBlob", "Content-Length": str(len(data)), **more}
        self._ask("PUT", self._path(key), headers=more, body=data)

    def tags(self, key: str) -> Mapping[str, str]:
        """The object's tags."""
        return tags_of(key, self._ask("GET", self._path(key), query={"comp": "tags"}).body)

    def headers(self, key: str) -> Mapping[str, str]:
        """The object's properties and metadata."""
        return self._ask("HEAD", self._path(key)).headers

    def _path(self, key: str) -> str:
        return f"{self._folder}/{quote(key, safe='')}"

    def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        sent = {"x-ms-version": "2021-12-02", **(headers or {})}
        response = self._client.send(
            "owner", Request(method=method, path=path, query=query or {}, headers=sent, body=body)
        )
        answer = Answer(headers=response.headers, body=response.whole())
        assert response.status < 300, answer
        return answer


@pytest.fixture(scope="session")
def azurite_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of an emulator that all tests share. Use containers of your own."""
    log = tmp_path_factory.mktemp("azurite") / "log"
    with serving(azurite(log), log, {"AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"}) as port:
        yield port


@pytest.fixture(scope="session")
def shared_azure_proxy(azurite_port: int) -> Iterator[tuple[Proxy, str]]:
    """A proxy that passes on to the emulator, and its address."""
    shared = Proxy(azurite_port)
    with running(shared) as endpoint:
        yield shared, endpoint


@pytest.fixture
def proxy(shared_azure_proxy: tuple[Proxy, str]) -> Proxy:
    """The proxy, which has forgotten what other tests told it."""
    shared_azure_proxy[0].forget()
    return shared_azure_proxy[0]


@pytest.fixture
def container() -> str:
    """A new name."""
    return f"container-{uuid4()}"


@pytest.fixture
def owner(azurite_port: int, container: str) -> Owner:
    """The owner of a new container."""
    made = Owner(azurite_port, container)
    made.make_container()
    return made


@pytest.fixture
def config(
    container: str, proxy: Proxy, shared_azure_proxy: tuple[Proxy, str], owner: Owner
) -> AzureConfig:
    """The configuration of a new container behind the proxy."""
    props = _settings(container, shared_azure_proxy[1])
    return AzureConfig.parse({**props, "azure.account.key": KEY})


@pytest.fixture
def signed(
    container: str, config: AzureConfig, shared_azure_proxy: tuple[Proxy, str]
) -> AzureConfig:
    """The same container for one who has a signature, which stands also for requests that change."""
    props = _settings(container, shared_azure_proxy[1])
    return AzureConfig.parse({**props, "azure.sas.token": f"?{_signature('rwdlt')}"})


@pytest.fixture
def store(config: AzureConfig) -> AzureStore:
    """The container as a store."""
    return azure_store(config)


@pytest.fixture
def put(owner: Owner) -> Callable[..., None]:
    """Makes objects in the container."""
    return owner.put


class TestAzureStore(StoreSuite):
    """A container, in the suite of all stores, with pages of three keys."""

    exact_keys = (
        *(key for key in (*PATH_KEYS, *OTHER_KEYS) if key not in AZURE_REFUSES),
        ".a/..b/c.d",
    )
    refused_keys = ("\ud800", "", "x" * 1025, "\U0001f600" * 513, *AZURE_REFUSES)

    @pytest.fixture
    def store(self, config: AzureConfig) -> AzureStore:
        """See the suite."""
        return azure_store(config)

    @pytest.fixture
    def put(self, put: Put) -> Put:
        """See the suite."""
        return put

    @pytest.fixture
    def tags_of(self, owner: Owner) -> TagsOf:
        """See the suite."""
        return owner.tags

    def test_keys_rise_by_their_utf8_bytes(self, store: Store, put: Put) -> None:
        """The emulator's rise by their UTF-16 instead, which loses none."""
        keys = ["b", "a/z", "a.txt", "a-1", "a/b/c", "a0", "\U0001f600", "\ufffd", "Z", "é"]
        for key in keys:
            put(key, b"")

        expected = sorted(keys, key=lambda key: key.encode("utf-16-be"))
        behind = [key for key in expected if key > "a/z"]
        assert behind == [each.key for each in store.list(start_after="a/z")]
        assert expected == [each.key for each in store.list()]


class TestAfterCommit(AfterCommitSuite):
    """A container of which the connector reads, in the suite of all stores."""

    @pytest.fixture
    def place(
        self, *, config: AzureConfig, store: AzureStore, put: Put, owner: Owner, proxy: Proxy
    ) -> StoreFileOpener:
        """See the suite."""
        settings = {k: text for k, text in config.originals.items() if k != "azure.container"}
        return StoreFileOpener(
            store=store, settings=settings, proxy=proxy, written=put, tags_of=owner.tags
        )


class TestBadMoments(RestMoments):
    """What fails and may pass, and what only looks as if it went well."""

    listing = ("GET", "comp=list")
    reading = ("GET", "/a")
    copying = ("PUT", "/copy")
    page_token = "marker"
    forbidden = "Storage Blob Data Reader"

    @pytest.fixture
    def store(self, signed: AzureConfig) -> AzureStore:
        """See the suite."""
        account = signed.storage_account()
        client = RestClient(account.endpoint, Connecting(), login_of(account))
        return AzureStore(
            client,
            account.endpoint,
            signed.container,
            source_query=account.sas,
            page_size=3,
            retries=Retries(attempts=3, sleep=bool),
        )

    def test_a_server_that_ignores_conditions_is_noticed(
        self, store: AzureStore, put: Put, proxy: Proxy
    ):
        """The answer tells which version it is."""
        put("a", b"one")
        version = store.head("a").version
        put("a", b"two")
        proxy.fail(Fault(*self.reading, drop="if-match"))

        with pytest.raises(ObjectChangedError, match="'a'"):
            store.open("a", version)

    def test_a_copy_that_goes_on_behind_the_answer_is_awaited(
        self, store: AzureStore, put: Put, proxy: Proxy
    ):
        """Only when Azure says so is it a copy."""
        put("a", DATA)
        proxy.fail(Fault("PUT", "/copy", change=_copying("pending")))
        proxy.fail(Fault("HEAD", "/copy", times=2, change=_copying("pending")))

        assert len(DATA) == store.copy("a", store.head("a").version, "copy").size
        assert 4 == len([each for each in proxy.seen if each[0] == "HEAD" and "/copy" in each[1]])

    def test_a_copy_that_failed_leaves_nothing(self, store: AzureStore, put: Put, proxy: Proxy):
        """Azure shows a copy before it is whole, and when it never will be."""
        put("a", DATA)
        proxy.fail(Fault("PUT", "/copy", change=_copying("pending")))
        proxy.fail(Fault("HEAD", "/copy", change=_copying("failed")))

        with pytest.raises(StoreUnavailableError, match="The copy of 'a' is failed"):
            store.copy("a", store.head("a").version, "copy")
        assert ["a"] == [each.key for each in store.list()]


class Recorder(RestClient):
    """Keeps what it is asked to send."""

    def __init__(self, account: Account) -> None:
        super().__init__(account.endpoint, Connecting(), login_of(account))
        self.asked: list[Request] = []

    def send(self, place: str, request: Request) -> Response:
        """See ``RestClient``."""
        self.asked.append(request)
        return super().send(place, request)


def test_what_is_asked_carries_its_condition(signed: AzureConfig, put: Put):
    """And a copy the signature that it needs to read."""
    account = signed.storage_account()
    client = Recorder(account)
    store = AzureStore(client, account.endpoint, signed.container, source_query=account.sas)
    put("a", DATA)
    version = store.head("a").version
    client.asked.clear()
    store.open("a", version).close()
    store.copy("a", version, "b")
    store.delete("a", version)

    read, _, copied, _, _, deleted = client.asked
    quoted = f'"{version}"'
    assert quoted == read.headers["If-Match"] == deleted.headers["If-Match"]
    assert quoted == copied.headers["x-ms-source-if-match"]
    address = f"{account.endpoint}/{signed.container}/a?{urlencode(account.sas, quote_via=quote, safe='')}"
    assert address == copied.headers["x-ms-copy-source"]


class TestLogins:
    """Who asks, as the emulator checks it."""

    def test_a_signature_reads_copies_and_is_never_shown(
        self, signed: AzureConfig, put: Put, proxy: Proxy
    ):
        """It is a part of every address, and of no error."""
        store = azure_store(signed)
        put("a", DATA)
        version = store.head("a").version

        assert DATA == store.open("a", version).read()
        assert DATA == store.open("b", store.copy("a", version, "b").version).read()
        assert all("sig=" in target for _, target in proxy.seen)
        secret = signed.originals["azure.sas.token"].partition("sig=")[2]
        away = replace(signed, endpoint=f"http://127.0.0.1:1/{ACCOUNT}")
        proxy.fail(Fault("GET", "comp=list", status=400, code="Bad"))
        for failing in (away, signed):
            with pytest.raises((TaskFailedError, OSError)) as told:
                list(azure_store(failing).list())
            assert secret not in "".join(traceback.format_exception(told.value))
        assert secret not in repr(signed) + repr(signed.storage_account())

    def test_a_connection_string_is_enough(
        self, container: str, owner: Owner, put: Put, shared_azure_proxy: tuple[Proxy, str]
    ):
        """It tells where and who."""
        text = f"AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={shared_azure_proxy[1]}/{ACCOUNT}/;"
        put("a", DATA)
        props = {"azure.container": container, "azure.connection.string": text}

        assert ["a"] == [each.key for each in azure_store(AzureConfig.parse(props)).list()]

    def test_a_wrong_key_is_refused_with_advice(self, config: AzureConfig):
        """And not tried again."""
        wrong = AzureConfig.parse(
            {**config.originals, "azure.account.key": base64.b64encode(b"wrong").decode()}
        )
        with pytest.raises(TaskFailedError, match=r"403.*Storage Blob Data Reader"):
            list(azure_store(wrong).list())

    def test_no_one_may_not_read(self, config: AzureConfig):
        """The container is not public."""
        props = {
            **{key: text for key, text in config.originals.items() if key != "azure.account.key"},
            "azure.anonymous": "true",
        }
        with pytest.raises(TaskFailedError, match=r"list|List"):
            list(azure_store(AzureConfig.parse(props)).list())


def test_a_copy_keeps_metadata_and_tags(store: AzureStore, put: Callable[..., None], owner: Owner):
    """Azure itself copies no tags."""
    put("a b+%/é", DATA, x_ms_meta_k="v", x_ms_tags="t=u%20v%2B")
    store.copy("a b+%/é", store.head("a b+%/é").version, "target/ü")

    assert {"t": "u v+"} == owner.tags("target/ü")
    assert "v" == owner.headers("target/ü")["x-ms-meta-k"]


def test_an_archived_object_says_so(store: AzureStore, put: Callable[..., None]):
    """In the listing, and when it is opened."""
    put("a", DATA, x_ms_access_tier="Archive")
    (found,) = store.list()

    assert "Archive" == found.storage_class
    with pytest.raises(ObjectArchivedError, match="Restore"):
        store.open("a", found.version)


def test_every_listing_is_a_full_one_and_not_told_as_a_fault(
    store: AzureStore, put: Put, proxy: Proxy, caplog: pytest.LogCaptureFixture
):
    """Azure cannot begin behind a key."""
    for number in range(9):
        put(f"{number}", b"")
    proxy.forget()

    assert ["7", "8"] == [each.key for each in store.list(start_after="6")]
    assert 3 == len(proxy.seen)
    assert not caplog.records


def test_the_connector_reads_it_by_its_address(config: AzureConfig, put: Put):
    """With the settings of the store beside those of the connector."""
    put("in/a.jsonl", b"{}")
    settings = {name: text for name, text in config.originals.items() if name != "azure.container"}
    path = f"az://{config.container}/in/"
    files = FilesConfig.parse({"topic": "t", "files.path": path, **settings})
    assert files.root is not None
    listed = files.open_store(files.root).list("in/")

    assert ["in/a.jsonl"] == [each.key for each in listed]


def test_a_container_that_is_missing_is_no_missing_object(config: AzureConfig):
    """Not for a deletion either, which would be a success."""
    missing = azure_store(replace(config, container="missing"))
    for action in (
        lambda: list(missing.list()),
        lambda: missing.head("a"),
        lambda: missing.open("a", "x"),
        lambda: missing.delete("a", "x"),
    ):
        with pytest.raises(TaskFailedError, match=r"ContainerNotFound.*azure\.container"):
            action()


def _settings(container: str, endpoint: str) -> dict[str, str]:
    return {
        "azure.container": container,
        "azure.account": ACCOUNT,
        "azure.endpoint": f"{endpoint}/{ACCOUNT}",
        "azure.page.size": "3",
        "azure.retries": "2",
        "azure.retry.backoff.ms": "0",
    }


def _signature(rights: str) -> str:
    """A shared access signature of the account for these rights on all blobs."""
    parts = {
        "sv": "2021-12-02",
        "ss": "b",
        "srt": "sco",
        "sp": rights,
        "se": "2099-01-01T00:00:00Z",
    }
    text = "\n".join([ACCOUNT, rights, "b", "sco", "", parts["se"], "", "", parts["sv"], "", ""])
    digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
    return urlencode({**parts, "sig": base64.b64encode(digest).decode()})


def _copying(status: str) -> Callable[[Passed], Passed]:
    def change(answer: Passed) -> Passed:
        headers = {n: t for n, t in answer.headers.items() if n.lower() != "x-ms-copy-status"}
        return replace(answer, headers={**headers, "x-ms-copy-status": status})

    return change
