"""What is wrong with the settings of Kafka clients."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from headrace.config.client_settings import worker_client_warnings
from headrace.config.connector_config import ConnectorConfig
from headrace.config.rules import connector_problems, connector_warnings, worker_problems
from headrace.config.worker_config import WorkerConfig
from headrace.converters import converter_problems

_LEAST = {"name": "c", "connector.class": "files"}
_WORKER = {
    "bootstrap.servers": "a:1,b:2",
    "key.converter": "string",
    "value.converter": "string",
}
_POLICY = "connector.client.config.override.policy"
_KRB = {"sasl.jaas.config": 'a.b.Krb5LoginModule required password="canary";'}


def _worker(props: dict[str, str] | None = None) -> WorkerConfig:
    return WorkerConfig.parse({**_WORKER, **(props or {})})


def _found(props: dict[str, str], worker: dict[str, str] | None = None) -> dict[str, str]:
    return dict(connector_problems({**_LEAST, **props}, _worker(worker), converter_problems))


@pytest.mark.parametrize("prefix", ["", "producer.", "admin."])
def test_problems_of_every_client_of_a_worker_are_reported(prefix: str):
    """Before anything starts, once, by the key in its file, and without secrets."""
    props = {f"{prefix}{key}": value for key, value in _KRB.items()}

    ((key, reported),) = {
        key: reported
        for key, reported in worker_problems(_worker(props), converter_problems)
        if prefix or key == "sasl.jaas.config"
    }.items()

    assert f"{prefix}sasl.jaas.config" == key
    assert "a.b.Krb5LoginModule is not supported" in reported
    assert "canary" not in reported


def test_only_a_connector_s_own_keys_are_reported():
    """The worker's are the worker's."""
    given = {f"{each}.override.{key}": _KRB[key] for each in ("admin", "producer") for key in _KRB}

    assert set(given) == set(_found(given))
    assert [] == [key for key in _found({}, {"admin.client.dns.lookup": "x"}) if "admin" in key]


def test_refused_overrides_are_reported_once():
    """What else is wrong with them does not matter; what is wrong with others is reported as well."""
    found = _found({"producer.override.acks": "some", "tasks.max": "0"}, {_POLICY: "None"})

    assert ["tasks.max", "producer.override.acks"] == list(found)
    assert found["producer.override.acks"].startswith("The 'None' policy does not allow 'acks'")


def test_principals_may_be_overridden_with_the_policy_for_it():
    """The rest of the connector's configuration is judged as ever."""
    login = 'x.PlainLoginModule required username="u" password="p";'
    props = {
        "producer.override.security.protocol": "SASL_PLAINTEXT",
        "producer.override.sasl.mechanism": "PLAIN",
        "producer.override.sasl.jaas.config": login,
    }
    assert {} == _found(props, {_POLICY: "Principal"})
    assert 3 == len(_found(props, {_POLICY: "None"}))


def test_with_exactly_once_producers_stay_in_the_workers_cluster():
    """Their offsets would be where the worker does not look for them."""
    key = "producer.override.bootstrap.servers"

    assert [key] == list(_found({key: "c:3"}))
    assert {} == _found({key: "c:3, SSL://b:2"})
    assert {} == _found({key: "c:3"}, {"exactly.once.source.support": "disabled"})


def test_admin_clients_begin_with_the_workers_connection():
    """As in Kafka Connect: its own keys, then those with the prefix, then the connector's."""
    worker = _worker({"client.id": "w", "security.protocol": "SSL", "admin.client.id": "a"})
    config = ConnectorConfig.parse({**_LEAST, "admin.override.client.rack": "r"})

    assert {
        "bootstrap.servers": "a:1,b:2",
        "security.protocol": "SSL",
        "client.id": "a",
        "client.rack": "r",
    } == config.admin(worker)


def test_what_has_no_effect_is_reported():
    """There are no consumers, and settings that only Java has."""
    config = ConnectorConfig.parse({**_LEAST, "consumer.override.fetch.min.bytes": "5"})

    (reported,) = connector_warnings(config, _worker())
    assert reported.startswith("consumer.override.fetch.min.bytes has no effect")
    tls = {"security.protocol": "SSL", "ssl.protocol": "TLSv1.3"}
    (reported,) = worker_client_warnings(_worker(tls))
    assert reported.startswith("ssl.protocol has no effect")


def test_a_setting_that_no_client_knows_is_accepted_with_a_warning():
    """Kafka Connect passes it on: it may be an interceptor's own. What the worker has is not said of each connector."""
    config = ConnectorConfig.parse({**_LEAST, "producer.override.nope": "1"})
    worker = _worker({"producer.of.an.interceptor": "x"})
    no_effect = "{} has no effect: the Kafka client library (librdkafka) has no such setting."

    assert (no_effect.format("producer.override.nope"),) == connector_warnings(config, worker)
    assert (no_effect.format("producer.of.an.interceptor"),) == worker_client_warnings(worker)
    assert {} == _found({"producer.override.nope": "1"}, {"producer.of.an.interceptor": "x"})


def test_a_setting_of_the_worker_is_reported_of_the_connector_that_overrides_it():
    """Each by the key under which it was set."""
    worker = _worker({"producer.nope": "x", "producer.mine": "x"})
    config = ConnectorConfig.parse({**_LEAST, "producer.override.nope": "1"})

    of_worker = [each.split()[0] for each in worker_client_warnings(worker)]
    assert ["producer.nope", "producer.mine"] == of_worker
    (reported,) = connector_warnings(config, worker)
    assert reported.startswith("producer.override.nope has no effect")


@pytest.mark.parametrize(("keys", "size"), [(5_000, 90), (20, 300_000)])
def test_no_key_that_was_asked_about_is_kept(keys: int, size: int):
    """Anybody may ask about any number of them."""
    worker = _worker()

    def ask(first: int, many: int) -> None:
        keys = (f"producer.override.{number:0{size}}" for number in range(first, first + many))
        config = ConnectorConfig.parse({**_LEAST, **dict.fromkeys(keys, "x")})
        assert connector_warnings(config, worker)

    ask(0, 1)
    tracemalloc.start()
    try:
        ask(1, keys)
        gc.collect()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert kept < 1_000_000
