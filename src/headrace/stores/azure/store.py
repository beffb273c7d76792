"""Azure Blob Storage as a store, over its REST interface."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import quote, urlencode, urlsplit

from headrace.formats.readable import Readable
from headrace.stores.azure.config import AzureConfig
from headrace.stores.azure.copy import AzureCopy
from headrace.stores.azure.errors import MEANINGS, refusal_of
from headrace.stores.azure.listing import (
    USUAL_TIERS,
    ListedPage,
    milliseconds,
    page_of,
    unquoted,
)
from headrace.stores.azure.login import login_of
from headrace.stores.azure.tags import tags_of, xml_of
from headrace.stores.checks import (
    CHARACTERS,
    check_length,
    check_version,
    whole_copy,
)
from headrace.stores.checksum import Checksum
from headrace.stores.empty_body import EmptyBody
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectChangedError,
    ObjectGoneError,
    StoreUnavailableError,
)
from headrace.stores.listing import OrderedListing, Page
from headrace.stores.network_settings import connecting_of, retries_of
from headrace.stores.ranged_reader import Body, RangedReader
from headrace.stores.rest.body import RestBody
from headrace.stores.rest.calls import RestCalls
from headrace.stores.rest.client import Request, Response, RestClient
from headrace.stores.rest.errors import place_of
from headrace.stores.retries import Retries
from headrace.stores.store import Capabilities, StoredObject

_VERSION = "2021-12-02"
# Azure takes a backslash for a slash, resolves steps such as "..", also encoded ones, and leaves out dots
# at the end of a name or a folder: what is asked for then is another blob.
_TAKEN_FOR_ANOTHER = re.compile(r"[\x00-\x1f\\]|\.(?=/|\Z)")


def azure_store(config: AzureConfig) -> AzureStore:
    """The store that *config* describes; asks nothing of the server."""
    account = config.storage_account()
    return AzureStore(
        RestClient(account.endpoint, connecting_of(config, "azure"), login_of(account)),
        account.endpoint,
        config.container,
        source_query=account.sas,
        page_size=config.page_size,
        retries=retries_of(config),
    )


class AzureStore:
    """The blobs of one container at *endpoint*. An object's version is its ETag.

    *source_query* is what a request needs that reads what another one copies. Deleting hides the object
    where versions or soft deletion are on. Folders of a hierarchical namespace are no objects.
    """

    capabilities = Capabilities(has_tags=True)

    def __init__(
        self,
        client: RestClient,
        endpoint: str,
        container: str,
        *,
        source_query: Mapping[str, str] | None = None,
        page_size: int = 1000,
        retries: Retries | None = None,
    ) -> None:
        self.name = f"az://{container}"
        address = urlsplit(endpoint)
        self._server = f"{address.scheme}://{address.netloc}"
        self._folder = f"{address.path}/{quote(container, safe='$')}"
        self._source_query = source_query or {}
        self._page_size = page_size
        self._retries = retries or Retries()
        # A listing begins behind a marker that only Azure can make, never behind a key.
        self._listing = OrderedListing(self.name, starts_after=False)
        self._calls = RestCalls(
            self.name, client, retries=self._retries, refusal_of=refusal_of, meanings=MEANINGS
        )

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store.list``. Every listing is a full one: Azure cannot start behind a key."""
        yield from self._listing.objects(lambda _: self._pages(prefix), prefix, start_after)

    def head(self, key: str) -> StoredObject:
        """See ``Store.head``."""
        return self._object(key, self._head(key))

    def open(
        self, key: str, version: str, position: int = 0, *, size: int | None = None
    ) -> Readable:
        """See ``Store.open``."""
        return RangedReader(
            store=self.name,
            key=key,
            fetch=lambda start, stop: self._fetch(key, version, start, stop),
            position=position,
            size=size,
            retries=self._retries,
        )

    def copy(self, key: str, version: str, target: str) -> StoredObject:
        """See ``Store.copy``. Metadata and tags go with it."""
        source = self._head(key, version)
        address = f"{self._server}{self._path(key)}"
        if self._source_query:
            address += f"?{urlencode(self._source_query, quote_via=quote, safe='')}"
        condition = {"x-ms-copy-source": address, "x-ms-source-if-match": f'"{version}"'}
        if int(source.get("x-ms-tag-count", "0")):
            condition["x-ms-tags"] = urlencode(self._tags(key), quote_via=quote)
        AzureCopy(self.name, self._ask, self._retries.sleep).copy(key, target, condition)
        return whole_copy(self.name, key, self.head(target), int(source["Content-Length"]))

    def delete(self, key: str, version: str) -> bool:
        """See ``Store.delete``."""
        try:
            self._head(key, version)
            with self._looking_again(key):
                self._ask(key, "Delete Blob", "DELETE", key, headers={"If-Match": f'"{version}"'})
        except ObjectGoneError:
            return False
        return True

    def tag(self, key: str, version: str, tags: Mapping[str, str]) -> None:
        """See ``Store.tag``. Tags cannot be put on the condition that the object is unchanged."""
        self._head(key, version)
        body = xml_of(self._tags(key) | dict(tags))
        headers = {"Content-Type": "application/xml", "Content-Length": str(len(body))}
        request = self._request("PUT", key, query={"comp": "tags"}, headers=headers, body=body)
        self._calls.ask(key, "Set Blob Tags", request)

    def _pages(self, prefix: str) -> Iterator[Page]:
        query = {"restype": "container", "comp": "list", "maxresults": str(self._page_size)}
        if prefix:
            query["prefix"] = prefix
        while True:
            page = self._retries.call(lambda: self._page(query))
            for each in page.objects:
                self._check(each.key)
            yield page.objects
            if not page.marker:
                return
            if page.marker == query.get("marker"):
                raise StoreUnavailableError(
                    f"{self.name}: The listing goes on, but the server repeats where."
                )
            query["marker"] = page.marker

    def _page(self, query: Mapping[str, str]) -> ListedPage:
        headers = {"x-ms-version": _VERSION}
        request = Request(method="GET", path=self._folder, query=query, headers=headers)
        return page_of(self.name, self._calls.once(None, "List Blobs", request).body)

    def _head(self, key: str, version: str | None = None) -> Mapping[str, str]:
        found = self._ask(key, "Get Blob Properties", "HEAD", key)
        if found.get("x-ms-resource-type") == "directory":
            raise ObjectGoneError(self.name, key)
        if version is not None:
            self._same(key, found, version)
        return found

    def _object(self, key: str, found: Mapping[str, str]) -> StoredObject:
        tier = found.get("x-ms-access-tier")
        return StoredObject(
            key=key,
            size=int(found["Content-Length"]),
            version=unquoted(found["ETag"]),
            modified_ms=milliseconds(found["Last-Modified"]),
            storage_class=None if tier in USUAL_TIERS else tier,
        )

    def _fetch(self, key: str, version: str, start: int, stop: int | None) -> Body:
        headers = {"If-Match": f'"{version}"'}
        if start or stop is not None:
            headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        request = self._request("GET", key, headers=headers)
        with self._looking_again(key):
            response = self._calls.stream(key, "Get Blob", request)
        if response is None:
            return EmptyBody(int(self._head(key, version)["Content-Length"]))
        try:
            self._same(key, response.headers, version)
        except BaseException:
            response.close()
            raise
        return RestBody(place_of(self.name, key), response, start, _checksum(response))

    @contextmanager
    def _looking_again(self, key: str) -> Generator[None]:
        """Turn ``ObjectChangedError`` into ``ObjectGoneError`` for an object that is not there."""
        try:
            yield
        except ObjectChangedError:
            # Azure's answer to a condition may be the same then.
            self._head(key)
            raise

    def _tags(self, key: str) -> dict[str, str]:
        request = self._request("GET", key, query={"comp": "tags"})
        answer = self._calls.ask(key, "Get Blob Tags", request)
        return tags_of(place_of(self.name, key), answer.body)

    def _same(self, key: str, found: Mapping[str, str], version: str) -> None:
        check_version(self.name, key, found=unquoted(found.get("ETag", "")), version=version)

    def _ask(
        self,
        about: str,
        asked: str,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, str]:
        """The headers of the answer to a request for *key*; errors are *about* a key."""
        request = self._request(method, key, query=query, headers=headers)
        return self._calls.ask(about, asked, request).headers

    def _request(
        self,
        method: str,
        key: str,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Request:
        return Request(
            method=method,
            path=self._path(key),
            query=query or {},
            headers={"x-ms-version": _VERSION, **(headers or {})},
            body=body,
        )

    def _path(self, key: str) -> str:
        """Where *key* lies. A slash is encoded, so that nothing on the way merges two of them."""
        self._check(key)
        return f"{self._folder}/{quote(key, safe='')}"

    def _check(self, key: str) -> None:
        check_length(self.name, key, CHARACTERS)
        if _TAKEN_FOR_ANOTHER.search(key):
            raise KeyNotRepresentableError(
                self.name,
                key,
                "Azure has no keys with control characters, backslashes, or dots at the end of a part: it "
                "would take another blob for this one. Rename the object.",
            )


def _checksum(response: Response) -> Checksum | None:
    found = response.headers.get("Content-MD5")
    return Checksum("md5", base64.b64decode(found)) if found else None
