"""``GET /metrics``."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from headrace.herder.statuses import connector_snapshots
from headrace.observe.counts import Counts
from headrace.observe.metrics import Metrics
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.fake_herder import FakeHerder


@pytest.fixture
def measured(herder: FakeHerder) -> Iterator[httpx.Client]:
    """A client of a server that is measured."""
    metrics = Metrics(Counts(), lambda: connector_snapshots(herder))
    config = RestConfig.parse({"listeners": "http://127.0.0.1:0"})
    server = RestServer(herder, config, metrics=metrics.text)
    server.start()
    with httpx.Client(base_url=server.url.rstrip("/"), timeout=20) as client:
        yield client
    server.close()


@pytest.mark.parametrize(
    "accept", ["*/*", "text/plain", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"]
)
def test_metrics_are_text_whatever_is_accepted(measured: httpx.Client, accept: str):
    """Of the herder's connectors as they are now."""
    answer = measured.get("/metrics", headers={"Accept": accept})

    assert 200 == answer.status_code
    assert "text/plain; version=0.0.4; charset=utf-8" == answer.headers["content-type"]
    assert (
        'kafka_connect_connector_metrics_status{connector="c",status="running"} 1.0' in answer.text
    )


def test_other_methods_are_refused(measured: httpx.Client):
    """There is nothing to write."""
    assert 405 == measured.post("/metrics").status_code


def test_a_server_that_is_not_measured_has_no_such_path(client: httpx.Client):
    """As in Kafka Connect."""
    assert 404 == client.get("/metrics").status_code


def test_a_connector_that_is_deleted_meanwhile_is_left_out(herder: FakeHerder):
    """The others are shown."""

    class Deleting(FakeHerder):
        def connectors(self) -> list[str]:
            return ["gone", "c"]

    assert ["c"] == [each.name for each in connector_snapshots(Deleting(configs=herder.configs))]
