"""Requests to either of two workers of a group, over HTTP, on a broker."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import httpx
import pytest

from doubles.thread_engine import ThreadEngine
from headrace.broker import Broker
from headrace.config.distributed_config import DistributedConfig
from headrace.observe.log_levels import Levels
from headrace.plugins import checked_worker_of
from headrace.rest.config import RestConfig
from headrace.rest.listeners import Binding
from headrace.rest.peers import Peers
from headrace.rest.server import RestServer
from headrace.worker import DataPlane, serving_group
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(240)]

CLIENT = "127.0.0.2"


class GroupWorker(NamedTuple):
    """A client of a worker, from an address that no worker has, and the worker's loggers, which are none of this process's."""

    http: httpx.Client
    levels: Levels

    def level(self, logger: str) -> str | None:
        """The level that the logger has there."""
        found = self.levels.of(logger)
        return None if found is None else found.level

    def history(self, connector: str) -> list[tuple[str, str]]:
        """The operations on the connector's offsets, and who asked for them, as this worker knows them."""
        answer = self.http.get(f"/connectors/{connector}/offsets/history").json()
        return [(change["operation"], change["who"]) for change in answer["history"]]


def own_levels() -> Levels:
    """Those of a hierarchy of its own."""
    root = logging.RootLogger(logging.WARNING)
    root.manager = logging.Manager(root)
    return Levels(root)


def worker(opened: ExitStack, bootstrap: str, group: str) -> GroupWorker:
    """A worker that has joined the group."""
    topics = {
        f"{each}.storage.{what}": value
        for each in ("config", "offset", "status")
        for what, value in (("topic", f"{group}-{each}"), ("replication.factor", "1"))
    }
    config = checked_worker_of(
        DistributedConfig,
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "string",
            "value.converter": "string",
            "scheduled.rebalance.max.delay.ms": "0",
            **topics,
        },
    )
    rest = RestConfig.parse({"listeners": "http://127.0.0.1:0"})
    binding = opened.enter_context(closing(Binding.of(rest)))
    peers = opened.enter_context(closing(Peers()))
    levels = own_levels()
    herder = opened.enter_context(
        serving_group(
            config,
            url=binding.url,
            worker_id=binding.worker_id,
            emit=lambda _: None,
            peers=peers,
            levels=levels,
            data_plane=DataPlane.of(ThreadEngine(slots=2)),
        )
    )
    server = RestServer(herder, rest, binding=binding, levels=levels, peers=peers)
    server.start()
    opened.callback(server.close)
    herder.start()
    herder.ready()
    until(lambda: herder.is_open or herder.failure, seconds=60)
    assert herder.failure is None
    transport = httpx.HTTPTransport(local_address=CLIENT)
    client = httpx.Client(base_url=server.url, transport=transport, timeout=60)
    return GroupWorker(opened.enter_context(client), levels)


@pytest.fixture
def workers(broker: Broker) -> Iterator[list[GroupWorker]]:
    """Two of a group, the leader first."""
    group = f"asked-{uuid4().hex[:8]}"
    with ExitStack() as opened:
        yield [worker(opened, broker.bootstrap, group) for _ in range(2)]


def test_levels_of_loggers_and_who_asked_are_the_groups(
    broker: Broker, workers: list[GroupWorker], tmp_path: Path
) -> None:
    """Any worker is asked to set a level on all (KIP-976), and the history names the client of a follower."""
    leader, follower = workers
    for asked, logger in ((leader, "org.a"), (follower, "org.b")):
        answer = asked.http.put(f"/admin/loggers/{logger}?scope=cluster", json={"level": "debug"})
        assert (204, b"") == (answer.status_code, answer.content)
        until(lambda: all(each.level(logger) == "DEBUG" for each in workers))  # noqa: B023 (called at once)
    refused = follower.http.put("/admin/loggers/org.b?scope=cluster", json={"level": "LOUD"})
    assert (404, "invalid log level 'LOUD'.") == (refused.status_code, refused.json()["message"])
    alone = follower.http.put("/admin/loggers/org.b", json={"level": "ERROR"})
    assert ["org.b"] == alone.json()
    assert "DEBUG" == leader.level("org.b")

    place = {"filename": str(tmp_path / "a")}
    config = {"connector.class": "file_stream", "file": place["filename"], "topic": "t"}
    created = follower.http.post(
        "/connectors",
        json={
            "name": "c d",
            "config": config,
            "initial_state": "STOPPED",
            "initial_offsets": [{"partition": place, "offset": {"position": 7}}],
        },
    )
    assert created.is_success, created.text
    assert 200 == leader.http.delete("/connectors/c%20d/offsets").status_code
    made = [("reset", CLIENT), ("create", CLIENT)]
    # A worker that was not asked reads of it a moment later.
    until(lambda: all(each.history("c%20d") == made for each in workers))
