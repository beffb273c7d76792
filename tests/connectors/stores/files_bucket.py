"""A bucket that the files connector reads."""

from __future__ import annotations

from dataclasses import dataclass

from connectors.stores.s3_owner import S3Owner
from connectors.stores.s3_proxy import Proxy
from headrace.connect import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.stores.config import S3Config
from headrace.testing.task_runs import Delivered, LocalRun

Stored = dict[SourcePartition, SourceOffset]


@dataclass(frozen=True)
class FilesBucket:
    """A bucket behind *proxy*, as *config* says."""

    client: S3Owner
    config: S3Config
    proxy: Proxy

    def put(self, key: str, data: bytes) -> str:
        """Write an object; its version."""
        answer = self.client.put_object(Bucket=self.config.bucket, Key=key, Body=data)
        return answer["ETag"].strip('"')

    def delete(self, key: str) -> None:
        """Remove an object."""
        self.client.delete_object(Bucket=self.config.bucket, Key=key)

    def address(self, key: str = "") -> str:
        """What a configuration and offsets call an object or a prefix."""
        return f"s3://{self.config.bucket}/{key}"

    def partition(self, key: str) -> SourcePartition:
        """The source partition of an object."""
        return SourcePartition(filename=self.address(key))

    def props(self, *selected: str, **more: str) -> dict[str, str]:
        """The connector's configuration; *selected* are prefixes or globs, and all by default."""
        login = {key: text for key, text in self.config.originals.items() if key != "s3.bucket"}
        paths = ",".join(map(self.address, selected or ("",)))
        given = {key.replace("_", "."): text for key, text in more.items()}
        return {"files.path": paths, "topic": "t", **login, **given}

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

    def reads(self, key: str) -> list[str]:
        """The requests for bytes of an object."""
        return [target for method, target in self.proxy.seen if method == "GET" and key in target]


def values(delivered: list[Delivered]) -> list[object]:
    """Just the values."""
    return [each.value for each in delivered]
