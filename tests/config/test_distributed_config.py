"""The settings of a worker of a group."""

from __future__ import annotations

import pytest

from headrace.config.distributed_config import DistributedConfig
from headrace.config.worker_config import worker_warnings
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
    assert (3_600_000, "HmacSHA256", None) == (
        config.inter_worker_key_ttl_ms,
        config.inter_worker_key_generation_algorithm,
        config.inter_worker_key_size,
    )
    assert ("HmacSHA256", ("HmacSHA256",)) == (
        config.inter_worker_signature_algorithm,
        config.inter_worker_verification_algorithms,
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


def test_its_own_keys_are_known() -> None:
    """They were reported as misspelt ones."""
    own = {
        "headrace.changes.storage.topic": "h",
        "headrace.group.mixed": "true",
        "headrace.relinquish.timeout.ms": "1",
    }
    assert () == worker_warnings({**PROPS, **own}, DistributedConfig)
    [warning] = worker_warnings({**PROPS, "headrace.group.mixde": "true"}, DistributedConfig)
    assert "Did you mean 'headrace.group.mixed'?" in warning


@pytest.mark.parametrize("key", ["state.file", "offset.storage.file.filename"])
def test_what_only_a_worker_that_stands_alone_keeps_has_no_effect(key: str) -> None:
    """It is reported with where the worker of a group keeps it; a worker that stands alone has it."""
    [warning] = worker_warnings({**PROPS, key: "f"}, DistributedConfig)
    assert warning.startswith(f"{key} has no effect here: ")
    assert "config.storage.topic, offset.storage.topic and status.storage.topic" in warning
    assert not any(key in each for each in worker_warnings({**PROPS, key: "f"}))


def test_times_that_do_not_fit_together_are_refused() -> None:
    """Each with the setting to change."""
    assert {"heartbeat.interval.ms"} == problems(heartbeat_interval_ms="10000").keys()
    lease = problems(headrace_lease_ms="8000")
    assert "(7000)" in lease["headrace.lease.ms"]
    assert {"status.storage.topic"} == problems(status_storage_topic="c").keys()
    assert {"status.storage.partitions"} == problems(status_storage_partitions="0").keys()


@pytest.mark.parametrize(
    ("given", "key", "said"),
    [
        ({"key_ttl_ms": "-1"}, "key.ttl.ms", "must be at least 0"),
        (
            {"key_generation_algorithm": "AES"},
            "key.generation.algorithm",
            "the algorithm is not supported; the supported algorithms are: HmacMD5, HmacSHA1,",
        ),
        (
            {"key_size": "39"},
            "key.size",
            "Unable to create key generator with algorithm HmacSHA256 and key size 39: Key length must be at least 40 bits",
        ),
        (
            {"key_size": "0", "key_generation_algorithm": "HmacMD5"},
            "key.size",
            "with algorithm HmacMD5 and key size 0: Empty key",
        ),
        ({"signature_algorithm": "HmacFoo"}, "signature.algorithm", "HmacFoo for configuration"),
        (
            {"signature_algorithm": "HmacSHA512"},
            "signature.algorithm",
            "Signature algorithm must be present in inter.worker.verification.algorithms list",
        ),
        (
            {"verification_algorithms": ""},
            "verification.algorithms",
            "At least one signature verification algorithm must be provided",
        ),
        (
            {"verification_algorithms": "HmacSHA256, HmacFoo"},
            "verification.algorithms",
            "the algorithm is not supported",
        ),
    ],
)
def test_what_cannot_sign_requests_is_refused(given: dict[str, str], key: str, said: str) -> None:
    """In Kafka Connect's words, where it has a sentence of its own."""
    found = problems(**{f"inter_worker_{name}": value for name, value in given.items()})

    assert {f"inter.worker.{key}"} == found.keys()
    assert said in found[f"inter.worker.{key}"]


def test_several_algorithms_of_signatures_may_be_taken() -> None:
    """While the workers of a group are moved from one to another."""
    given = {
        **PROPS,
        "inter.worker.signature.algorithm": "HmacSHA512",
        "inter.worker.verification.algorithms": "HmacSHA256, HmacSHA512",
        "inter.worker.key.size": "512",
        "inter.worker.key.ttl.ms": "0",
    }

    assert () == tuple(DistributedConfig.problems(given))
