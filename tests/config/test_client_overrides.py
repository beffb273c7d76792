"""Which settings of clients connectors may override."""

from __future__ import annotations

import pytest

from headrace.config.client_settings import override_problems
from headrace.config.worker_config import WorkerConfig

_POLICY = "connector.client.config.override.policy"
_JAVA = "org.apache.kafka.connect.connector.policy.{}ConnectorClientConfigOverridePolicy"
_WORKER = {"key.converter": "string", "value.converter": "string"}
_OVERRIDES = {
    "producer.override.security.protocol": "SASL_SSL",
    "producer.override.sasl.mechanism": "PLAIN",
    "producer.override.sasl.jaas.config": "canary",
    "producer.override.linger.ms": "5",
    "consumer.override.fetch.min.bytes": "5",
    "admin.override.client.id": "canary",
    "name": "c",
    "producer.override.": "no key",
}


def _refused(policy: str, *allowlist: str) -> list[str]:
    return [key for key, _ in override_problems(_OVERRIDES, policy, allowlist)]


@pytest.mark.parametrize("form", ["{}", _JAVA])
def test_each_policy_refuses_what_it_refuses_in_kafka_connect(form: str):
    """Under its short name, or as Java's class."""
    beside = [
        "producer.override.linger.ms",
        "consumer.override.fetch.min.bytes",
        "admin.override.client.id",
    ]
    assert [] == _refused(form.format("All"))
    assert list(_OVERRIDES)[:6] == _refused(form.format("None"), "linger.ms")
    assert beside == _refused(form.format("Principal"))
    assert beside[1:] == _refused(
        form.format("Allowlist"),
        "linger.ms",
        "security.protocol",
        "sasl.mechanism",
        "sasl.jaas.config",
    )


def test_the_sentence_is_kafka_connects():
    """With the policy's short name and the client's key, and without the value."""
    (reported,) = (
        reported
        for key, reported in override_problems(_OVERRIDES, _JAVA.format("Principal"), ())
        if key == "admin.override.client.id"
    )
    assert (
        "The 'Principal' policy does not allow 'client.id' to be overridden in the connector configuration."
        == reported
    )


def test_a_policy_that_no_one_knows_is_refused():
    """Names are exact; the sentence lists those that there are."""
    ((key, reported),) = WorkerConfig.problems({**_WORKER, _POLICY: "principal"})

    assert _POLICY == key
    assert (
        f"Invalid value principal for configuration {_POLICY}: Class principal could not be found. "
        "Valid ones are: All, Allowlist, None, Principal." == reported
    )


def test_all_is_the_default():
    """As in Kafka Connect."""
    worker = WorkerConfig.parse(_WORKER)

    assert "All" == worker.connector_client_config_override_policy
    assert () == worker.connector_client_config_override_allowlist
