"""A bucket that the files connector reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from connectors.stores.files_place import FilesPlace, Stored, values
from connectors.stores.s3_owner import S3Owner
from connectors.stores.s3_proxy import Proxy
from headrace.stores.s3.config import S3Config

__all__ = ["FilesBucket", "Stored", "values"]


@dataclass(frozen=True)
class FilesBucket(FilesPlace):
    """A bucket behind *proxy*, as *config* says."""

    client: S3Owner
    config: S3Config
    proxy: Proxy

    @property
    def root(self) -> str:
        """See :class:`FilesPlace`."""
        return f"s3://{self.config.bucket}/"

    @property
    def settings(self) -> Mapping[str, str]:
        """See :class:`FilesPlace`."""
        return {key: text for key, text in self.config.originals.items() if key != "s3.bucket"}

    def put(self, key: str, data: bytes) -> str:
        """Write an object; its version."""
        answer = self.client.put_object(Bucket=self.config.bucket, Key=key, Body=data)
        return answer["ETag"].strip('"')

    def delete(self, key: str) -> None:
        """Remove an object."""
        self.client.delete_object(Bucket=self.config.bucket, Key=key)

    def listed(self) -> list[str]:
        """See :class:`FilesPlace`."""
        found = self.client.list_objects_v2(Bucket=self.config.bucket)
        return [each["Key"] for each in found.get("Contents", ())]

    def tags(self, key: str) -> dict[str, str]:
        """See :class:`FilesPlace`."""
        found = self.client.get_object_tagging(Bucket=self.config.bucket, Key=key)
        return {each["Key"]: each["Value"] for each in found["TagSet"]}

    def reads(self, key: str) -> list[str]:
        """The requests for bytes of an object."""
        return [target for method, target in self.proxy.seen if method == "GET" and key in target]
