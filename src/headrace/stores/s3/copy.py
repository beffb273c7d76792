"""Copying within a bucket, in one request or, where S3 refuses that, in parts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from headrace.connect.errors import TaskFailedError
from headrace.stores.s3.client import S3Client

_log = logging.getLogger(__name__)
_GIB = 1024**3
_MOST_PARTS = 10_000
_KEPT = (
    "CacheControl",
    "ContentDisposition",
    "ContentEncoding",
    "ContentLanguage",
    "ContentType",
    "Metadata",
)

Call = Callable[..., dict[str, Any]]
"""Calls an operation with retries: key, operation's name, operation, request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """Above *whole_bytes* (S3's limit is 5 GiB) an object is copied in parts of *part_bytes* or more."""

    whole_bytes: int = 5 * _GIB
    part_bytes: int = _GIB // 2


class S3Copy:
    """Copies objects of one bucket on the condition that they are still the version that was looked at."""

    def __init__(self, client: S3Client, bucket: str, limits: CopyLimits, call: Call) -> None:
        self._client = client
        self._bucket = bucket
        self._limits = limits
        self._call = call

    def copy(self, key: str, source: Mapping[str, Any], target: str) -> None:
        """Copy *key*, of which *source* is the answer to HeadObject, to *target*."""
        condition = {
            "CopySource": {"Bucket": self._bucket, "Key": key, **version_id(source)},
            "CopySourceIfMatch": source["ETag"],
        }
        if source["ContentLength"] <= self._limits.whole_bytes:
            self._ask(key, "CopyObject", self._client.copy_object, Key=target, **condition)
            return
        upload = {"Key": target, "UploadId": self._begin(key, source, target)}
        try:
            parts = [
                self._part(key, number, bounds, {**upload, **condition})
                for number, bounds in enumerate(self._ranges(source["ContentLength"]), start=1)
            ]
            self._ask(
                key,
                "CompleteMultipartUpload",
                self._client.complete_multipart_upload,
                MultipartUpload={"Parts": parts},
                **upload,
            )
        except BaseException:
            self._abort(key, upload)
            raise

    def _abort(self, key: str, upload: Mapping[str, Any]) -> None:
        """Remove the parts, which would otherwise lie there unseen and be paid for."""
        try:
            self._ask(key, "AbortMultipartUpload", self._client.abort_multipart_upload, **upload)
        except (OSError, TaskFailedError) as error:
            # What made the copy fail is what counts, and is raised.
            _log.warning("Parts of a copy to %r could not be removed: %s", upload["Key"], error)

    def _begin(self, key: str, source: Mapping[str, Any], target: str) -> str:
        kept: dict[str, Any] = {name: source[name] for name in _KEPT if name in source}
        tags = self._ask(
            key,
            "GetObjectTagging",
            self._client.get_object_tagging,
            needed="TagSet",
            Key=key,
            **version_id(source),
        )["TagSet"]
        if tags:
            kept["Tagging"] = urlencode([(each["Key"], each["Value"]) for each in tags])
        begun = self._ask(
            key,
            "CreateMultipartUpload",
            self._client.create_multipart_upload,
            needed="UploadId",
            Key=target,
            **kept,
        )
        return begun["UploadId"]

    def _part(
        self, key: str, number: int, bounds: tuple[int, int], request: Mapping[str, Any]
    ) -> dict[str, object]:
        answer = self._ask(
            key,
            "UploadPartCopy",
            self._client.upload_part_copy,
            needed="CopyPartResult",
            PartNumber=number,
            CopySourceRange=f"bytes={bounds[0]}-{bounds[1] - 1}",
            **request,
        )
        return {"PartNumber": number, "ETag": answer["CopyPartResult"]["ETag"]}

    def _ranges(self, size: int) -> list[tuple[int, int]]:
        step = max(self._limits.part_bytes, -(-size // _MOST_PARTS))
        return [(start, min(start + step, size)) for start in range(0, size, step)]

    def _ask(self, source: str, asked: str, operation: Call, **request: object) -> dict[str, Any]:
        return self._call(source, asked, operation, Bucket=self._bucket, **request)


def version_id(found: Mapping[str, Any]) -> dict[str, str]:
    """The ``VersionId`` of an answer, as a request's part; empty for a bucket without versions."""
    return {"VersionId": found["VersionId"]} if "VersionId" in found else {}


def quoted(version: str) -> str:
    """A version as an ETag in HTTP."""
    return f'"{version}"'


def unquoted(etag: str) -> str:
    """An ETag as a version."""
    return etag.strip('"')
