"""Which of a producer's settings headrace's own sender has, beside the client library's. Contacts no broker; reads key stores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import (
    PRODUCER_DEFAULTS,
    TRANSACTIONAL_DEFAULTS,
    WITHOUT_END,
    ClientConfig,
    Settings,
)
from headrace.kafka.java_settings import connect_name
from headrace.kafka.wire.producer_settings import producer_wire_settings
from headrace.kafka.wire.settings import CONNECTION_SETTINGS, wire_settings
from headrace.kafka.wire_sender import batch_settings

_Problems = tuple[tuple[str, str], ...]


_TAKEN: Final = frozenset(
    {
        *CONNECTION_SETTINGS,
        "acks",
        "batch.num.messages",
        "batch.size",
        "compression.level",
        "compression.type",
        "enable.idempotence",
        "max.in.flight.requests.per.connection",
        "message.max.bytes",
        "message.timeout.ms",
        "partitioner",
        "queue.buffering.max.kbytes",
        "request.timeout.ms",
        "topic.metadata.propagation.max.ms",
        "transaction.timeout.ms",
        "transactional.id",
    }
)
"""Both senders have them; their values are checked where they are read."""

_ONE_VALUE: Final[Settings] = {
    "allow.auto.create.topics": "true",
    "api.version.request": "true",
    "broker.address.family": "any",
    "client.dns.lookup": "use_all_dns_ips",
    "enable.gapless.guarantee": "false",
    "enable.sasl.oauthbearer.unsecure.jwt": "false",
    "queue.buffering.backpressure.threshold": "1",
    "queuing.strategy": "fifo",
    # It sends again until delivery.timeout.ms, as Java's clients do by default.
    "retries": str(WITHOUT_END),
    "sasl.oauthbearer.grant.type": "client_credentials",
    "sasl.oauthbearer.metadata.authentication.type": "none",
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.sub.claim.name": "sub",
}
"""The only value that these have with headrace's own sender."""

_TUNING: Final = frozenset(
    {
        "api.version.fallback.ms",
        "api.version.request.timeout.ms",
        "broker.address.ttl",
        "broker.version.fallback",
        "builtin.features",
        "connections.max.idle.ms",
        "debug",
        "enable.random.seed",
        "enabled_events",
        "internal.termination.signal",
        "linger.ms",
        "log.connection.close",
        "log.queue",
        "log.thread.name",
        "log_level",
        "message.copy.max.bytes",
        "metadata.max.age.ms",
        "produce.offset.report",
        "queue.buffering.max.messages",
        "reconnect.backoff.jitter.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "socket.blocking.max.ms",
        "socket.keepalive.enable",
        "socket.max.fails",
        "socket.nagle.disable",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
        "statistics.interval.ms",
        "sticky.partitioning.linger.ms",
        "topic.metadata.refresh.fast.cnt",
        "topic.metadata.refresh.fast.interval.ms",
        "topic.metadata.refresh.interval.ms",
        "topic.metadata.refresh.sparse",
    }
)
"""How the client library works inside: they change neither what is sent, nor where to, nor when that fails."""


def wire_problems(config: ClientConfig) -> _Problems:
    """What of *config* headrace's own sender cannot have, by Kafka Connect's names; empty if it can be used.

    No sentence shows a secret.
    """
    settings = config.settings
    problems = [
        (connect_name(key), sentence)
        for key in settings
        if _applies(key, settings) and (sentence := _refusal(key, settings))
    ]
    for read in (batch_settings, producer_wire_settings, wire_settings):
        try:
            read(settings)
        except ConfigError as error:
            problems += [each for each in error.problems if each[0] not in dict(problems)]
    return tuple(problems)


def without_effect(config: ClientConfig) -> tuple[str, ...]:
    """The settings of *config* that only the client library's producer has, and which differ from headrace's defaults."""
    ours = {
        **PRODUCER_DEFAULTS,
        **(TRANSACTIONAL_DEFAULTS if config.transactional_id is not None else {}),
    }
    given = (
        key
        for key, value in config.settings.items()
        if key in _TUNING and str(value) != str(ours.get(key))
    )
    return tuple(map(connect_name, given))


def _refusal(key: str, settings: Settings) -> str | None:
    if key in _ONE_VALUE:
        only = str(_ONE_VALUE[key])
        return None if str(settings[key]).strip().lower() == only else f"It can only be {only}."
    return None if key in _TAKEN or key in _TUNING else "It has no such setting."


def _applies(key: str, settings: Settings) -> bool:
    """Whether *key* means anything to the client library, with the protocol and the login of *settings*."""
    protocol = str(settings.get("security.protocol", "")).strip().upper()
    if not key.startswith(_OF_LOGINS):
        return True
    if not protocol.startswith("SASL"):
        return False
    mechanism = str(settings.get("sasl.mechanisms", settings.get("sasl.mechanism", "GSSAPI")))
    return all(mechanism == only for prefix, only in _OF_MECHANISMS if key.startswith(prefix))


_OF_MECHANISMS: Final = (
    ("sasl.kerberos.", "GSSAPI"),
    ("sasl.oauthbearer.", "OAUTHBEARER"),
    ("enable.sasl.oauthbearer.", "OAUTHBEARER"),
    ("https.ca.", "OAUTHBEARER"),
)
_OF_LOGINS: Final = ("sasl.", *(prefix for prefix, _ in _OF_MECHANISMS))


def named_problems(problems: _Problems) -> Iterator[str]:
    """A sentence for each of *problems* that names its setting."""
    for key, sentence in problems:
        yield f"{key}: {sentence}"
