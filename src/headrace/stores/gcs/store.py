"""Google Cloud Storage as a store, over its JSON interface."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit

from headrace.formats.readable import Readable
from headrace.stores.checks import check_length, check_version, whole_copy
from headrace.stores.checksum import Checksum
from headrace.stores.empty_body import EmptyBody
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectChangedError,
    ObjectGoneError,
    StoreUnavailableError,
)
from headrace.stores.gcs.config import GcsConfig
from headrace.stores.gcs.errors import MEANINGS, refusal_of
from headrace.stores.gcs.login import login_of
from headrace.stores.listing import OrderedListing, Page
from headrace.stores.network_settings import connecting_of, retries_of
from headrace.stores.ranged_reader import Body, RangedReader
from headrace.stores.rest.body import RestBody
from headrace.stores.rest.calls import RestCalls
from headrace.stores.rest.client import Request, Response, RestClient
from headrace.stores.rest.errors import place_of
from headrace.stores.retries import Retries
from headrace.stores.store import Capabilities, StoredObject

_FIELDS = "name,size,generation,timeCreated,storageClass"
_HASHES = re.compile(r"\b(md5|crc32c)=([A-Za-z0-9+/=]+)")


def gcs_store(config: GcsConfig) -> GcsStore:
    """The store that *config* describes; asks nothing of the server."""
    client = RestClient(config.endpoint, connecting_of(config, "gcs"), login_of(config))
    return GcsStore(
        client,
        config.bucket,
        root=urlsplit(config.endpoint).path.rstrip("/"),
        page_size=config.page_size,
        user_project=config.user_project,
        retries=retries_of(config),
    )


class GcsStore:
    """The objects of one bucket. An object's version is its generation.

    *root* is where the interface lies below the server's address. Deleting from a bucket with versions
    hides the object. An object that is stored gzipped is read as it is stored. Objects have no tags.
    """

    capabilities = Capabilities()

    def __init__(
        self,
        client: RestClient,
        bucket: str,
        *,
        root: str = "",
        page_size: int = 1000,
        user_project: str | None = None,
        retries: Retries | None = None,
    ) -> None:
        self.name = f"gs://{bucket}"
        self._folder = f"{root}/storage/v1/b/{quote(bucket, safe='')}/o"
        self._paying = {"userProject": user_project} if user_project else {}
        self._bucket = bucket
        self._page_size = page_size
        self._retries = retries or Retries()
        self._listing = OrderedListing(self.name)
        self._calls = RestCalls(
            self.name,
            client,
            retries=self._retries,
            refusal_of=refusal_of,
            meanings=MEANINGS,
        )

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store.list``."""
        yield from self._listing.objects(
            lambda after: self._pages(prefix, after), prefix, start_after
        )

    def head(self, key: str) -> StoredObject:
        """See ``Store.head``."""
        request = self._request("GET", self._path(key), {"fields": _FIELDS})
        return _object(self._json(key, "objects.get", request, needed="generation"))

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
        """See ``Store.copy``. Metadata goes with it."""
        found = self._same(self.head(key), version)
        to = f"rewriteTo/b/{quote(self._bucket, safe='')}/o/{self._quoted(target)}"
        path = f"{self._path(key)}/{to}"
        query = {"ifSourceGenerationMatch": version}
        while True:
            request = self._request("POST", path, query)
            answer = self._json(key, "objects.rewrite", request, needed="done")
            if answer["done"]:
                break
            query["rewriteToken"] = answer["rewriteToken"]
        return whole_copy(self.name, key, self.head(target), found.size)

    def delete(self, key: str, version: str) -> bool:
        """See ``Store.delete``."""
        try:
            self._same(self.head(key), version)
            request = self._request("DELETE", self._path(key), {"ifGenerationMatch": version})
            with self._looking_again(key):
                self._calls.ask(key, "objects.delete", request)
        except ObjectGoneError:
            return False
        return True

    def tag(self, key: str, version: str, tags: Mapping[str, str]) -> None:
        """Raise ``NotImplementedError``: a bucket's objects have no tags."""
        raise NotImplementedError(f"{self.name}: Objects of Google Cloud Storage have no tags.")

    def _pages(self, prefix: str, after: str) -> Iterator[Page]:
        asked = {"prefix": prefix, "maxResults": str(self._page_size)}
        asked["fields"] = f"kind,nextPageToken,items({_FIELDS})"
        if after:
            # From there on, that key included: it is dropped by OrderedListing.
            asked["startOffset"] = after
        while True:
            request = self._request("GET", self._folder, asked)
            answer = self._json(None, "objects.list", request, needed="kind")
            listed = [_object(each) for each in answer.get("items", ())]
            for each in listed:
                self._check(each.key)
            yield listed
            token = answer.get("nextPageToken")
            if not token:
                return
            if token == asked.get("pageToken"):
                raise StoreUnavailableError(
                    f"{self.name}: The listing goes on, but the server repeats where."
                )
            asked["pageToken"] = token

    def _fetch(self, key: str, version: str, start: int, stop: int | None) -> Body:
        # Without this the server would unpack what is stored gzipped, and could not tell its length.
        headers = {"Accept-Encoding": "gzip"}
        if start or stop is not None:
            headers["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        query = {"alt": "media", "ifGenerationMatch": version}
        request = self._request("GET", self._path(key), query, headers)
        with self._looking_again(key):
            response = self._calls.stream(key, "objects.get", request)
        if response is None:
            return EmptyBody(self._same(self.head(key), version).size)
        try:
            self._same_generation(key, response.headers.get("X-Goog-Generation"), version)
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
            # Google's answer to a condition may be the same then.
            self.head(key)
            raise

    def _same(self, found: StoredObject, version: str) -> StoredObject:
        self._same_generation(found.key, found.version, version)
        return found

    def _same_generation(self, key: str, found: str | None, version: str) -> None:
        if found is None:
            raise StoreUnavailableError(
                f"{self.name}: {key!r}: The answer does not tell its generation."
            )
        check_version(self.name, key, found=found, version=version)

    def _json(
        self, key: str | None, asked: str, request: Request, *, needed: str
    ) -> dict[str, Any]:
        """The answer to *asked*, with retries; one without the member *needed* is none."""

        def once() -> dict[str, Any]:
            body = self._calls.once(key, asked, request).body
            try:
                answer: Any = json.loads(body)
            except ValueError:
                answer = None
            if not isinstance(answer, dict) or needed not in answer:
                raise StoreUnavailableError(
                    f"{self.name}: {asked}: The answer is incomplete: it has no {needed}."
                )
            return answer

        return self._retries.call(once)

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str] | None = None,
    ) -> Request:
        paid = {**query, **self._paying}
        return Request(method=method, path=path, query=paid, headers=headers or {})

    def _path(self, key: str) -> str:
        return f"{self._folder}/{self._quoted(key)}"

    def _quoted(self, key: str) -> str:
        """The key as one segment of a path. Raises ``KeyNotRepresentableError``."""
        self._check(key)
        return quote(key, safe="")

    def _check(self, key: str) -> None:
        check_length(self.name, key)
        if key in (".", ".."):
            raise KeyNotRepresentableError(
                self.name, key, "No address can name it: it would be a step. Rename the object."
            )


def _object(item: Mapping[str, str]) -> StoredObject:
    storage = item.get("storageClass", "STANDARD")
    return StoredObject(
        key=item["name"],
        size=int(item["size"]),
        version=item["generation"],
        modified_ms=round(datetime.fromisoformat(item["timeCreated"]).timestamp() * 1000),
        storage_class=None if storage == "STANDARD" else storage,
    )


def _checksum(response: Response) -> Checksum | None:
    given = dict(_HASHES.findall(response.headers.get("X-Goog-Hash", "")))
    # Objects that were composed of others have a CRC-32C alone.
    found = next((kind for kind in ("md5", "crc32c") if kind in given), None)
    return Checksum(found, base64.b64decode(given[found])) if found else None
