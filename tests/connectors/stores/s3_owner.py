"""What an owner of buckets can ask, besides what a store asks."""

from __future__ import annotations

from typing import Protocol

from headrace.stores.s3.client import Operation, S3Client


class S3Owner(S3Client, Protocol):
    """A client of boto3."""

    create_bucket: Operation
    list_multipart_uploads: Operation
    list_object_versions: Operation
    put_bucket_versioning: Operation
    put_object: Operation
