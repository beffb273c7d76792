"""Which producer settings the wire's sender has: each of the client library's is taken, named as without effect, or refused."""

from __future__ import annotations

import pytest

from headrace.kafka.client_config import ClientConfig, producer_config
from headrace.kafka.refused_settings import producer_refusals
from headrace.kafka.wire.producer_settings import producer_wire_settings
from headrace.kafka.wire_coverage import wire_problems, without_effect
from headrace.kafka.wire_sender import batch_settings

SERVER = {"bootstrap.servers": "127.0.0.1:1"}
OAUTH = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.token.endpoint.url": "http://127.0.0.1:1/token",
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": "hush",
}
TLS = {"security.protocol": "SSL"}
PLAIN = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "me",
    "sasl.password": "hush",
}

TAKEN = [
    {"acks": "all"},
    {"request.required.acks": "all"},
    {"batch.num.messages": "7"},
    {"batch.size": "16384"},
    {"buffer.memory": "8388608"},
    {"client.id": "me"},
    {"client.rack": "r"},
    *({"compression.type": each} for each in ("none", "gzip", "snappy", "lz4", "zstd", "LZ4")),
    {"compression.type": "gzip", "compression.gzip.level": "9"},
    {"compression.type": "lz4", "compression.lz4.level": "12"},
    {"compression.type": "zstd", "compression.zstd.level": "12"},
    {"compression.codec": "zstd"},
    {"delivery.timeout.ms": "30000"},
    {"max.in.flight": "1"},
    {"max.in.flight.requests.per.connection": "5"},
    {"max.request.size": "2000000"},
    {"partitioner": "murmur2_random"},
    {"partitioner.class": "org.apache.kafka.clients.producer.internals.DefaultPartitioner"},
    {"receive.message.max.bytes": "50000000"},
    {"request.timeout.ms": "20000"},
    {"retries": "2147483647"},
    {"socket.connection.setup.timeout.ms": "5000"},
    {"socket.timeout.ms": "20000"},
    {"topic.metadata.propagation.max.ms": "1000"},
    {"transaction.timeout.ms": "90000"},
    TLS,
    {**TLS, "ssl.endpoint.identification.algorithm": ""},
    {**TLS, "enable.ssl.certificate.verification": "false"},
    {**TLS, "ssl.cipher.suites": "ECDHE-RSA-AES256-GCM-SHA384"},
    PLAIN,
    {**PLAIN, "sasl.mechanism": "SCRAM-SHA-256"},
    {**PLAIN, "sasl.mechanism": "SCRAM-SHA-512"},
    {**PLAIN, "sasl.kerberos.keytab": "of no use to this login"},
    OAUTH,
    {**OAUTH, "sasl.oauthbearer.scope": "s", "sasl.oauthbearer.extensions": "a=b"},
    {"sasl.oauthbearer.assertion.claim.iss": "no login"},
]

WITHOUT_EFFECT = {
    "broker.address.ttl": "2000",
    "connections.max.idle.ms": "60000",
    "debug": "broker",
    "linger.ms": "5",
    "log.connection.close": "false",
    "log_level": "4",
    "message.copy.max.bytes": "1000",
    "metadata.max.age.ms": "60000",
    "queue.buffering.max.messages": "1000",
    "reconnect.backoff.jitter.ms": "50",
    "reconnect.backoff.max.ms": "3000",
    "reconnect.backoff.ms": "50",
    "retry.backoff.max.ms": "2000",
    "retry.backoff.ms": "200",
    "socket.keepalive.enable": "true",
    "socket.max.fails": "3",
    "socket.nagle.disable": "false",
    "socket.receive.buffer.bytes": "65536",
    "socket.send.buffer.bytes": "65536",
    "statistics.interval.ms": "1000",
    "sticky.partitioning.linger.ms": "10",
    "topic.metadata.refresh.interval.ms": "60000",
    "topic.metadata.refresh.sparse": "false",
}

REFUSED = [
    ("allow.auto.create.topics", {"allow.auto.create.topics": "false"}),
    ("api.version.request", {"api.version.request": "false"}),
    ("broker.address.family", {"broker.address.family": "v4"}),
    ("client.dns.lookup", {"client.dns.lookup": "resolve_canonical_bootstrap_servers_only"}),
    ("enable.gapless.guarantee", {"enable.gapless.guarantee": "true"}),
    ("partitioner", {"partitioner": "murmur2"}),
    ("partitioner", {"partitioner": "random"}),
    ("partitioner", {"partitioner": "consistent_random"}),
    ("retries", {"retries": "3"}),
    ("retries", {"message.send.max.retries": "3"}),
    ("topic.blacklist", {"topic.blacklist": "t"}),
    ("ssl.curves.list", {**TLS, "ssl.curves.list": "P-256"}),
    ("ssl.sigalgs.list", {**TLS, "ssl.sigalgs.list": "RSA+SHA256"}),
    ("ssl.providers", {**TLS, "ssl.providers": "default"}),
    (
        "sasl.oauthbearer.assertion.claim.iss",
        {**OAUTH, "sasl.oauthbearer.assertion.claim.iss": "i"},
    ),
    ("sasl.oauthbearer.sub.claim.name", {**OAUTH, "sasl.oauthbearer.sub.claim.name": "azp"}),
    ("https.ca.pem", {**OAUTH, "https.ca.pem": "pem"}),
    (
        "sasl.kerberos.keytab",
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.keytab": "/k",
        },
    ),
]


def config(given: dict[str, str], *, transactional: bool = True) -> ClientConfig:
    """A producer's, with Kafka Connect's names."""
    return producer_config({**SERVER, **given}, transactional_id="id" if transactional else None)


@pytest.mark.parametrize("given", TAKEN, ids=lambda each: ",".join(map("=".join, each.items())))
def test_both_senders_take_these(given: dict[str, str]) -> None:
    """Each with its effect: nothing is told about them."""
    made = config(given)

    assert () == producer_refusals(made, given)
    assert () == wire_problems(made)
    assert () == without_effect(made)


@pytest.mark.parametrize("transactional", [True, False])
@pytest.mark.parametrize("key", WITHOUT_EFFECT)
def test_what_tunes_the_client_library_is_named(key: str, *, transactional: bool) -> None:
    """It is no reason against the wire, which needs none of it."""
    made = config({key: WITHOUT_EFFECT[key]}, transactional=transactional)

    assert () == producer_refusals(made, [key])
    assert () == wire_problems(made)
    assert (key,) == without_effect(made)


@pytest.mark.parametrize(("key", "given"), REFUSED)
def test_what_the_wire_cannot_do_is_refused_by_its_name(key: str, given: dict[str, str]) -> None:
    """The client's sender has it."""
    found = dict(wire_problems(config(given)))

    assert key in found
    assert "hush" not in str(found)


def test_what_the_client_library_calls_otherwise_means_the_same() -> None:
    """An alias reaches the wire, too."""
    made = config(
        {"compression.codec": "gzip", "compression.level": "3", "max.in.flight": "2"}
    ).settings

    assert (1, 3) == tuple(batch_settings(made).compression)
    assert 2 == producer_wire_settings(made).most_in_flight


@pytest.mark.parametrize("key", ["interceptor.classes", "max.block.ms", "metric.reporters"])
def test_what_neither_sender_has_is_told_with_both(key: str) -> None:
    """As a setting without effect, which is no difference between them."""
    made = config({key: "x"})

    assert key in str(made.warnings)
    assert () == wire_problems(made)
