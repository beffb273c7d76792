"""Kafka Connect's producer settings as the client's."""

from __future__ import annotations

import pickle

import pytest
from confluent_kafka import Producer

from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import client_config, producer_config

BROKER = {"bootstrap.servers": "127.0.0.1:9"}


def test_the_defaults_are_safe_and_javas_where_it_shows() -> None:
    """Acknowledged by all, in order, partitioned as Java does it, and never given up."""
    settings = producer_config(BROKER).settings

    assert "all" == settings["acks"]
    assert settings["enable.idempotence"] is True
    assert "murmur2_random" == settings["partitioner"]
    assert 2_147_483_647 == settings["message.timeout.ms"]


def test_a_transaction_bounds_its_records() -> None:
    """A record lives as long as its transaction, also when the user changes that."""
    settings = producer_config(
        {**BROKER, "transaction.timeout.ms": "90000"}, transactional_id="id"
    ).settings

    assert "id" == settings["transactional.id"]
    assert "90000" == settings["message.timeout.ms"]


@pytest.mark.parametrize(
    ("user", "transactional_id", "expected"),
    [({}, None, 20), ({}, "id", 200), ({"linger.ms": "7"}, "id", "7")],
)
def test_records_of_a_transaction_may_wait_longer(
    user: dict[str, str], transactional_id: str | None, expected: int | str
) -> None:
    """Nobody reads them before their commit; whoever wants another time is heard."""
    settings = producer_config({**BROKER, **user}, transactional_id=transactional_id).settings

    assert expected == settings["linger.ms"]


@pytest.mark.parametrize(
    ("java", "value", "ours", "expected"),
    [
        ("buffer.memory", "1048576", "queue.buffering.max.kbytes", 1024),
        ("max.request.size", "5000000", "message.max.bytes", "5000000"),
        ("delivery.timeout.ms", "9", "message.timeout.ms", "9"),
        ("linger.ms", "0", "linger.ms", "0"),
        ("batch.size", "0", "batch.size", "1"),
        (
            "bootstrap.servers",
            "INSIDE://a:1, b:2,SSL://[::1]:3",
            "bootstrap.servers",
            "a:1, b:2,[::1]:3",
        ),
        ("compression.type", "zstd", "compression.type", "zstd"),
        (
            "partitioner.class",
            "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
            "partitioner",
            "murmur2_random",
        ),
        (
            "ssl.endpoint.identification.algorithm",
            "",
            "ssl.endpoint.identification.algorithm",
            "none",
        ),
        ("send.buffer.bytes", "-1", "socket.send.buffer.bytes", "0"),
    ],
)
def test_java_names_are_translated(java: str, value: str, ours: str, expected: object) -> None:
    """The user's settings win over ours, under the client's names."""
    given = {**BROKER, "security.protocol": "SSL", java: value}
    assert expected == producer_config(given).settings[ours]


def test_javas_oauth_needs_no_class_of_java() -> None:
    """A worker's file names Java's handler, whose work the client does by itself."""
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
    config = client_config(
        {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": handler,
            "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
        }
    )

    assert "oidc" == config.settings["sasl.oauthbearer.method"]
    assert () == config.warnings
    assert "sasl.login.callback.handler.class" not in config.settings


@pytest.mark.parametrize(
    "key",
    [
        "key.serializer",
        "max.block.ms",
        "metrics.sample.window.ms",
        "interceptor.classes",
        "of.an.interceptor",
        # Callbacks of the client, which no text can be.
        "dr_cb",
        "error_cb",
        "on_delivery",
    ],
)
def test_what_has_no_effect_is_reported(key: str) -> None:
    """A Java-only key is left out and named in a warning."""
    config = producer_config({**BROKER, key: "x"})

    assert key not in config.settings
    assert key in config.warnings[0]


def test_the_transactional_id_cannot_be_overridden() -> None:
    """Exactly-once rests on it; Kafka Connect's own sentence says so."""
    config = producer_config(
        {**BROKER, "transactional.id": "mine", "enable.idempotence": "false"},
        transactional_id="ours",
    )

    assert "ours" == config.settings["transactional.id"]
    assert config.settings["enable.idempotence"] is True
    assert config.warnings[0].startswith(
        "The value 'mine' for the 'transactional.id' property will be"
    )


def test_without_exactly_once_another_reason_is_reported() -> None:
    """Nobody reads that exactly-once is on where it is off."""
    config = producer_config({**BROKER, "transactional.id": "mine", "enable.idempotence": "false"})

    assert len(config.warnings) == 2
    assert not any("is enabled" in warning for warning in config.warnings)
    assert all("only with exactly-once source support" in one for one in config.warnings)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delivery.timeout.ms", "2147483647"),
        ("delivery.timeout.ms", "0"),
        ("delivery.timeout.ms", "soon"),
        ("acks", "1"),
        ("max.in.flight.requests.per.connection", "6"),
        ("retries", "0"),
        ("partitioner.class", "com.example.Mine"),
        ("buffer.memory", "much"),
        ("sasl.jaas.config", "com.sun.security.auth.module.Krb5LoginModule required;"),
        ("ssl.truststore.location", "/a/trust.jks"),
        ("ssl.keystore.location", "/a/key.jks"),
    ],
)
def test_what_would_lose_records_is_refused(key: str, value: str) -> None:
    """Each problem is told under the key that the user wrote."""
    with pytest.raises(ConfigError) as caught:
        producer_config({**BROKER, "security.protocol": "SSL", key: value}, transactional_id="id")

    assert key in [problem for problem, _ in caught.value.problems]


def test_all_problems_are_reported_at_once() -> None:
    """One attempt shows everything there is to mend."""
    with pytest.raises(ConfigError) as caught:
        producer_config({**BROKER, "acks": "0", "retries": "0", "partitioner.class": "x"})

    assert 3 == len(caught.value.problems)


@pytest.mark.parametrize(
    ("module", "mechanism"),
    [("plain.PlainLoginModule", "PLAIN"), ("scram.ScramLoginModule", "SCRAM-SHA-256")],
)
def test_jaas_becomes_user_and_password(module: str, mechanism: str) -> None:
    """Java's login line is what Kafka Connect's users have."""
    line = f'org.apache.kafka.common.security.{module} required username="u" password="p\\"w; x=y";'
    settings = client_config(
        {**BROKER, "sasl.mechanism": mechanism, "sasl.jaas.config": line}
    ).settings

    assert ("u", 'p"w; x=y') == (settings["sasl.username"], settings["sasl.password"])


def test_secrets_are_hidden_and_survive_pickling() -> None:
    """A configuration may be logged and shipped; only shipping keeps its secrets."""
    line = 'x.PlainLoginModule required username="u" password="hush";'
    tls = {"security.protocol": "SASL_SSL", "ssl.key.password": "quiet"}
    config = producer_config({**BROKER, **tls, "sasl.jaas.config": line})

    assert "hush" not in repr(config)
    assert "quiet" not in f"{config}"
    assert config == pickle.loads(pickle.dumps(config))


@pytest.mark.parametrize("transactional_id", [None, "id"])
def test_the_client_takes_the_defaults(transactional_id: str | None) -> None:
    """Every default is a setting that the client knows."""
    config = producer_config(BROKER, transactional_id=transactional_id)

    assert Producer(dict(config.settings)) is not None


def test_another_client_takes_only_the_connection() -> None:
    """A producer's settings do not reach consumers and admin clients."""
    settings = client_config({**BROKER, "linger.ms": "5", "client.id": "x"}).settings

    assert "linger.ms" not in settings
    assert "x" == settings["client.id"]
