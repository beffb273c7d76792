"""A worker in the test's own process that answers over HTTP."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import httpx

from end_to_end.live import Life
from headrace.herder.protocol import Herder
from headrace.plugins import checked_worker
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.worker import DataPlane, serving
from waiting import until


@contextmanager
def asked(herder: Herder) -> Generator[str]:
    """A server for *herder*; its URL."""
    server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
    server.start()
    try:
        yield server.url
    finally:
        server.close()


@contextmanager
def served(life: Life) -> Generator[httpx.Client]:
    """The worker of *life* with whatever connectors it is asked for; who asks it."""
    with serving(
        checked_worker(life.worker_props()),
        state_file=life.folder / "state.db",
        emit=life.witness,
        data_plane=DataPlane.of(life.engine, life.processes),
    ) as herder:
        herder.start()
        herder.ready()
        until(lambda: herder.is_open, seconds=60)
        with asked(herder) as url, httpx.Client(base_url=url, timeout=60) as http:
            yield http


def states(http: httpx.Client, name: str) -> tuple[str, set[str]]:
    """The states of the connector *name*, and of its tasks."""
    found = http.get(f"/connectors/{name}/status").json()
    return found["connector"]["state"], {each["state"] for each in found["tasks"]}


def stop(http: httpx.Client, name: str) -> None:
    """Stop the connector *name*; returns when it is."""
    http.put(f"/connectors/{name}/stop")
    until(lambda: states(http, name)[0] == "STOPPED", seconds=60)
