"""Which topic a connector has to itself, and with whose settings it is reached."""

from __future__ import annotations

import pytest

from headrace.config.client_settings import (
    ConnectorOffsetsTopic,
    connector_offsets_topic,
    offsets_topic_problems,
)
from headrace.config.connector_config import ConnectorConfig
from headrace.config.worker_config import WorkerConfig

WORKER = {
    "bootstrap.servers": "a:1,b:1",
    "offset.storage.topic": "all",
    "key.converter": "string",
    "value.converter": "string",
}


def _config(**props: str) -> ConnectorConfig:
    given = {key.replace("_", "."): value for key, value in props.items()}
    return ConnectorConfig.parse({"name": "c", "connector.class": "files", **given})


def _own(
    props: ConnectorConfig, worker: dict[str, str] | None = None
) -> ConnectorOffsetsTopic | None:
    return connector_offsets_topic(props, WorkerConfig.parse({**WORKER, **(worker or {})}), "g")


def test_there_is_none_unless_it_is_named() -> None:
    """The worker's is for all."""
    assert _own(_config()) is None


def test_the_worker_s_own_in_the_same_cluster_is_one_store() -> None:
    """Two would write every offset twice."""
    config = _config(offsets_storage_topic="all", producer_override_bootstrap_servers="b:1,a:1")

    assert _own(config) is None


def test_the_worker_s_name_at_other_addresses_is_another_topic_unless_its_cluster_says_otherwise() -> (
    None
):
    """Whom to ask for that is told with it."""
    config = _config(offsets_storage_topic="all", producer_override_bootstrap_servers="z:1")
    own = _own(config)

    assert own is not None
    assert ("all", "z:1") == (own.topic, own.reader["bootstrap.servers"])
    assert {"bootstrap.servers": "a:1,b:1"} == own.worker_connection


def test_a_topic_of_another_name_needs_no_connection_to_the_worker_s_cluster() -> None:
    """No one has to be asked."""
    own = _own(_config(offsets_storage_topic="mine", producer_override_bootstrap_servers="z:1"))

    assert own is not None
    assert own.worker_connection is None


def test_it_is_made_as_the_worker_s() -> None:
    """Partitions and copies."""
    worker = {"offset.storage.partitions": "7", "offset.storage.replication.factor": "2"}
    own = _own(_config(offsets_storage_topic="mine"), worker)

    assert own is not None
    assert (7, 2) == (own.partitions, own.replication)


def test_it_is_read_as_it_is_written_unless_the_reader_has_a_login_of_its_own() -> None:
    """Overrides of consumers are for it; nothing else of a producer's is the reader's."""
    config = _config(
        offsets_storage_topic="mine",
        producer_override_linger_ms="5",
        producer_override_client_id="p",
        producer_override_security_protocol="SASL_SSL",
        consumer_override_client_id="r",
    )
    own = _own(config)

    expected = {
        "bootstrap.servers": "a:1,b:1",
        "client.id": "r",
        "security.protocol": "SASL_SSL",
    }
    assert own is not None
    assert expected == dict(own.reader)


@pytest.mark.parametrize("key", ["topic", "errors.deadletterqueue.topic.name"])
def test_it_holds_nothing_but_offsets(key: str) -> None:
    """A topic of records that is compacted loses records."""
    config = ConnectorConfig.parse(
        {
            "name": "c",
            "connector.class": "files",
            "offsets.storage.topic": "mine",
            "errors.tolerance": "all",
            key: "mine",
        }
    )
    ((reported, sentence),) = offsets_topic_problems(config)

    assert reported == "offsets.storage.topic"
    assert f"go to mine ({key})" in sentence
