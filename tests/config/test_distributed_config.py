"""The settings of a worker of a group."""

from __future__ import annotations

import pytest

from headrace.config.distributed_config import DistributedConfig
from headrace.connect.errors import ConfigError
from headrace.task.connector_spec import Delivery

PROPS = {
    "bootstrap.servers": "h:1",
    "group.id": "g",
    "key.converter": "string",
    "value.converter": "string",
    "offset.storage.topic": "o",
    "config.storage.topic": "c",
    "status.storage.topic": "s",
}


def problems(**more: str) -> dict[str, str]:
    """What is wrong with a worker of these settings."""
    given = {**PROPS, **{key.replace("_", "."): value for key, value in more.items()}}
    with pytest.raises(ConfigError) as caught:
        DistributedConfig.parse(given)
    return dict(caught.value.problems)


def test_connects_defaults_are_the_defaults_but_for_exactly_once() -> None:
    """And a task never outlives the session of its worker."""
    config = DistributedConfig.parse(PROPS)

    assert (10_000, 3_000, 60_000) == (
        config.session_timeout_ms,
        config.heartbeat_interval_ms,
        config.rebalance_timeout_ms,
    )
    assert (300_000, "sessioned") == (
        config.scheduled_rebalance_max_delay_ms,
        config.connect_protocol,
    )
    assert (3, 3, 5) == (
        config.config_storage_replication_factor,
        config.status_storage_replication_factor,
        config.status_storage_partitions,
    )
    assert config.exactly_once
    assert "c-changes" == config.changes_topic
    assert pytest.approx(7.0) == config.lease_seconds


def test_what_kafka_connect_requires_is_required() -> None:
    """All of it is told at once."""
    with pytest.raises(ConfigError) as caught:
        DistributedConfig.parse({"key.converter": "string", "value.converter": "string"})

    assert {
        "group.id",
        "offset.storage.topic",
        "config.storage.topic",
        "status.storage.topic",
    } == dict(caught.value.problems).keys()


def test_settings_of_the_topics_are_passed_on() -> None:
    """A worker that stands alone refuses them."""
    given = {**PROPS, "config.storage.min.insync.replicas": "2"}

    assert () == tuple(DistributedConfig.problems(given))


@pytest.mark.parametrize(
    ("support", "delivery", "fences"),
    [
        ("enabled", Delivery.EXACTLY_ONCE, True),
        ("preparing", Delivery.AT_LEAST_ONCE, True),
        ("disabled", Delivery.AT_LEAST_ONCE, False),
    ],
)
def test_a_group_is_prepared_for_exactly_once(
    support: str, delivery: Delivery, *, fences: bool
) -> None:
    """With ``preparing`` the leader writes in transactions already, and tasks do not, as in Kafka Connect."""
    config = DistributedConfig.parse({**PROPS, "exactly.once.source.support": support})

    assert (delivery, fences) == (config.delivery, config.fences_leaders)


def test_times_that_do_not_fit_together_are_refused() -> None:
    """Each with the setting to change."""
    assert {"heartbeat.interval.ms"} == problems(heartbeat_interval_ms="10000").keys()
    lease = problems(headrace_lease_ms="8000")
    assert "(7000)" in lease["headrace.lease.ms"]
    assert {"connect.protocol"} == problems(connect_protocol="eager").keys()
    assert {"status.storage.topic"} == problems(status_storage_topic="c").keys()
    assert {"status.storage.partitions"} == problems(status_storage_partitions="0").keys()
