"""A REST server with a fake herder, on a free port, and a client of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx
import pytest

from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.fake_herder import FakeHerder

Serve = Callable[..., httpx.Client]


@pytest.fixture(scope="session")
def shared_herder() -> FakeHerder:
    """The herder of the server that most tests share."""
    return FakeHerder()


@pytest.fixture
def herder(shared_herder: FakeHerder) -> FakeHerder:
    """The herder behind the server, as new, with one connector ``c``."""
    config: dict[str, str | None] = {"connector.class": "FileStreamSource", "name": "c"}
    shared_herder.__init__(configs={"c": config})
    return shared_herder


@pytest.fixture(scope="session")
def shared_client(shared_herder: FakeHerder) -> Iterator[httpx.Client]:
    """A client of a server with default settings, which starts and ends once."""
    server = RestServer(shared_herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
    server.start()
    with httpx.Client(base_url=server.url.rstrip("/"), timeout=20) as client:
        yield client
    server.close()


@pytest.fixture
def client(herder: FakeHerder, shared_client: httpx.Client) -> httpx.Client:
    """A client of a server with default settings."""
    return shared_client


@pytest.fixture
def serve(herder: FakeHerder) -> Iterator[Serve]:
    """Start a server with settings of its own, and get a client of it."""
    with ExitStack() as stack:

        def started(*, request_seconds: float = 30, **props: str) -> httpx.Client:
            given = {name.replace("_", "."): value for name, value in props.items()}
            config = RestConfig.parse({"listeners": "http://127.0.0.1:0", **given})
            server = RestServer(herder, config, request_seconds=request_seconds)
            server.start()
            stack.callback(server.close)
            return stack.enter_context(httpx.Client(base_url=server.url.rstrip("/"), timeout=20))

        yield started
