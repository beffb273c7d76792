"""An S3 server on this machine, and a proxy in front of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast
from uuid import uuid4

import pytest

from connectors.stores.files_bucket import FilesBucket
from connectors.stores.s3_owner import S3Owner
from connectors.stores.s3_proxy import Proxy, running
from connectors.stores.s3_server import s3_server
from headrace.stores.retries import Retries
from headrace.stores.s3.client import client_of
from headrace.stores.s3.config import S3Config
from headrace.stores.s3.store import S3Store


@pytest.fixture(autouse=True)
def patient_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans that have nothing to read wait until what comes after commits is done, however busy the machine is."""
    monkeypatch.setattr("headrace.connectors.files.cleanup.cleaning._WAIT_SECONDS", 60.0)


@pytest.fixture(scope="session")
def s3_port() -> Iterator[int]:
    """The port of an S3 server that all tests share. Use buckets of your own."""
    with s3_server() as port:
        yield port


@pytest.fixture(scope="session")
def shared_proxy(s3_port: int) -> Iterator[tuple[Proxy, str]]:
    """A proxy that passes on to the server, and its address."""
    shared = Proxy(s3_port)
    with running(shared) as endpoint:
        yield shared, endpoint


@pytest.fixture
def proxy(shared_proxy: tuple[Proxy, str]) -> Proxy:
    """The proxy, which may be told to fail and has forgotten what other tests told it."""
    shared_proxy[0].forget()
    return shared_proxy[0]


@pytest.fixture(scope="session")
def client(shared_proxy: tuple[Proxy, str]) -> S3Owner:
    """A client that all tests share: making one takes half a second."""
    return cast("S3Owner", client_of(_config(shared_proxy[1], "any")))


@pytest.fixture
def s3_config(proxy: Proxy, shared_proxy: tuple[Proxy, str], client: S3Owner) -> S3Config:
    """The configuration of a new bucket behind the proxy."""
    config = _config(shared_proxy[1], f"bucket-{uuid4()}")
    client.create_bucket(Bucket=config.bucket)
    proxy.forget()
    return config


@pytest.fixture
def bucket(client: S3Owner, s3_config: S3Config, proxy: Proxy) -> FilesBucket:
    """The bucket, with what the files connector needs to read it."""
    return FilesBucket(client, s3_config, proxy)


@pytest.fixture
def store(client: S3Owner, s3_config: S3Config) -> S3Store:
    """The bucket as a store of small pages that tries three times and does not wait."""
    retries = Retries(attempts=3, sleep=bool)
    return S3Store(client, s3_config.bucket, page_size=3, retries=retries)


def _config(endpoint: str, bucket: str) -> S3Config:
    return S3Config.parse(
        {
            "s3.bucket": bucket,
            "s3.endpoint": endpoint,
            "s3.region": "us-east-1",
            "s3.access.key.id": "id",
            "s3.secret.access.key": "secret",
            "s3.retries": "2",
            "s3.retry.backoff.ms": "1",
        }
    )
