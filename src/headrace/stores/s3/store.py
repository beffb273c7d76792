"""S3, and servers that speak like it, as a store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes

from botocore.exceptions import ClientError

from headrace.formats.readable import Readable
from headrace.stores.checks import check_length, check_version, whole_copy
from headrace.stores.empty_body import EmptyBody
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectGoneError,
    StoreUnavailableError,
)
from headrace.stores.listing import OrderedListing, Page
from headrace.stores.network_settings import retries_of
from headrace.stores.ranged_reader import Body, RangedReader
from headrace.stores.retries import Retries
from headrace.stores.s3.body import S3Body
from headrace.stores.s3.client import Operation, S3Client, client_of
from headrace.stores.s3.config import S3Config
from headrace.stores.s3.copy import (
    CopyLimits,
    S3Copy,
    quoted,
    unquoted,
    version_id,
)
from headrace.stores.s3.errors import status_of, telling
from headrace.stores.store import Capabilities, StoredObject

_USUAL = frozenset({None, "STANDARD"})


def s3_store(config: S3Config) -> S3Store:
    """The store that *config* describes; asks nothing of the server.

    Raises ``TaskFailedError`` for a profile or a file that does not exist.
    """
    with telling(f"s3://{config.bucket}", None, "making a client"):
        client = client_of(config)
    return S3Store(client, config.bucket, page_size=config.page_size, retries=retries_of(config))


class S3Store:
    """The objects of one bucket. An object's version is its ETag.

    A version's id would not do: listings do not tell it. Deleting from a bucket with versions hides the
    object and keeps its versions, since to remove one for good would uncover the one before it, to be
    read once more.
    """

    capabilities = Capabilities(has_tags=True)

    def __init__(
        self,
        client: S3Client,
        bucket: str,
        *,
        page_size: int = 1000,
        retries: Retries | None = None,
        copy_limits: CopyLimits | None = None,
    ) -> None:
        self.name = f"s3://{bucket}"
        self._client = client
        self._bucket = bucket
        self._page_size = page_size
        self._retries = retries or Retries()
        self._copy_limits = copy_limits or CopyLimits()
        self._listing = OrderedListing(self.name)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store.list``."""
        return self._listing.objects(lambda after: self._pages(prefix, after), prefix, start_after)

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
        check_length(self.name, target)
        copying = S3Copy(self._client, self._bucket, self._copy_limits, self._call)
        copying.copy(key, source, target)
        return whole_copy(self.name, key, self.head(target), source["ContentLength"])

    def delete(self, key: str, version: str) -> bool:
        """See ``Store.delete``."""
        try:
            self._head(key, version)
            request = {"Bucket": self._bucket, "Key": key, "version": version}
            self._call(key, "DeleteObject", self._delete, **request)
        except ObjectGoneError:
            return False
        return True

    def tag(self, key: str, version: str, tags: Mapping[str, str]) -> None:
        """See ``Store.tag``. Tags cannot be put on a condition, but on the version's id where there is one."""
        request = {"Bucket": self._bucket, "Key": key, **version_id(self._head(key, version))}
        found = self._call(
            key, "GetObjectTagging", self._client.get_object_tagging, needed="TagSet", **request
        )
        merged = {each["Key"]: each["Value"] for each in found["TagSet"]} | dict(tags)
        tagging = {"TagSet": [{"Key": name, "Value": text} for name, text in merged.items()]}
        self._call(
            key, "PutObjectTagging", self._client.put_object_tagging, Tagging=tagging, **request
        )

    def _pages(self, prefix: str, after: str) -> Iterator[Page]:
        # Every page is asked for with the prefix: some servers forget it when they are given a token.
        request: dict[str, Any] = {"Prefix": prefix, "MaxKeys": self._page_size}
        # Keys then come as text that XML can hold, and are decoded here: botocore is not strict.
        request |= {"Bucket": self._bucket, "EncodingType": "url"}
        if after:
            request["StartAfter"] = after
        while True:
            answer = self._call(
                None, "ListObjectsV2", self._client.list_objects_v2, needed="IsTruncated", **request
            )
            yield list(self._objects(answer))
            if not answer.get("IsTruncated"):
                return
            token = answer.get("NextContinuationToken")
            if not token or token == request.get("ContinuationToken"):
                raise StoreUnavailableError(
                    f"{self.name}: The listing goes on, but the server does not say where."
                )
            request["ContinuationToken"] = token

    def _objects(self, answer: dict[str, Any]) -> Iterator[StoredObject]:
        encoded = answer.get("EncodingType") == "url"
        for each in answer.get("Contents", ()):
            try:
                key = _decoded(each["Key"]) if encoded else each["Key"]
            except UnicodeDecodeError as error:
                raise KeyNotRepresentableError(
                    self.name, each["Key"], "The key is not UTF-8. Rename the object."
                ) from error
            storage = each.get("StorageClass")
            yield StoredObject(
                key=key,
                size=each["Size"],
                version=unquoted(each["ETag"]),
                modified_ms=_ms(each["LastModified"]),
                storage_class=None if storage in _USUAL else storage,
            )

    def _object(self, key: str, found: dict[str, Any]) -> StoredObject:
        storage = found.get("StorageClass")
        return StoredObject(
            key=key,
            size=found["ContentLength"],
            version=unquoted(found["ETag"]),
            modified_ms=_ms(found["LastModified"]),
            storage_class=None if storage in _USUAL else storage,
        )

    def _head(self, key: str, version: str | None = None) -> dict[str, Any]:
        check_length(self.name, key)
        found = self._call(
            key, "HeadObject", self._client.head_object, needed="ETag", Bucket=self._bucket, Key=key
        )
        if version is not None:
            self._same(key, found, version)
        return found

    def _fetch(self, key: str, version: str, start: int, stop: int | None) -> Body:
        check_length(self.name, key)
        request: dict[str, Any] = {"Bucket": self._bucket, "Key": key, "IfMatch": quoted(version)}
        if start or stop is not None:
            last = "" if stop is None else stop - 1
            request["Range"] = f"bytes={start}-{last}"
        with telling(self.name, key, "GetObject"):
            answer = self._get(**request)
        if answer is None:
            return EmptyBody(self._head(key, version)["ContentLength"])
        self._same(key, answer, version)
        return S3Body(self.name, key, answer, start)

    def _get(self, **request: object) -> dict[str, Any] | None:
        """The answer, or ``None`` for a range that begins at the object's end or behind it."""
        try:
            return self._client.get_object(**request)
        except ClientError as error:
            if status_of(error) == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                return None
            raise

    def _delete(self, version: str, **request: str) -> dict[str, Any]:
        try:
            return self._client.delete_object(IfMatch=quoted(version), **request)
        except ClientError as error:
            if status_of(error) != HTTPStatus.NOT_IMPLEMENTED:
                raise
        # Deletion on a condition came to S3 late; a look just before has to do, in each attempt.
        self._same(request["Key"], self._client.head_object(**request), version)
        return self._client.delete_object(**request)

    def _same(self, key: str, found: dict[str, Any], version: str) -> None:
        check_version(self.name, key, found=unquoted(found.get("ETag", "")), version=version)

    def _call(
        self,
        key: str | None,
        asked: str,
        operation: Operation,
        *,
        needed: str = "",
        **request: object,
    ) -> dict[str, Any]:
        """The answer to *asked*, with retries. An answer without the member *needed* is none.

        To botocore a body that was cut before its first byte is an answer without members: a listing
        without objects, too.
        """

        def once() -> dict[str, Any]:
            with telling(self.name, key, asked):
                answer = operation(**request)
            if needed and needed not in answer:
                raise StoreUnavailableError(
                    f"{self.name}: {asked}: The answer is incomplete: it has no {needed}."
                )
            return answer

        return self._retries.call(once)


def _decoded(key: str) -> str:
    """The key that the server encoded for XML. Raises ``UnicodeDecodeError``."""
    if "%" not in key and "+" not in key:
        return key
    return unquote_to_bytes(key.replace("+", " ")).decode()


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)
