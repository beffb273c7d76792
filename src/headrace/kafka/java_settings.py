"""What the Java clients' settings are called here, which have no counterpart, and which are refused.

Pure, but for the files of key stores.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headrace.kafka.jaas import jaas_settings
from headrace.kafka.stores import settle_stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Settings of librdkafka; sentences about what has no effect; problems by the key as it was given."""

    settings: Mapping[str, str | int | bool]
    warnings: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]


def translation(properties: Mapping[str, str]) -> Translation:
    """*properties* with Java's names, or librdkafka's own, as settings of librdkafka.

    A name that neither is known for passes through: the client itself refuses it when it is made. Keys of
    TLS are left out where the connection has none: they may be those of a worker's listeners.
    """
    has_tls = properties.get("security.protocol", "").strip().upper() in _WITH_TLS
    settings: dict[str, str | int | bool] = {}
    warnings: list[str] = []
    problems: list[tuple[str, str]] = []
    for key, value in properties.items():
        if _is_default(key, value) or (key.startswith("ssl.") and not has_tls):
            continue
        if key in _NO_COUNTERPART or key.startswith(_NO_COUNTERPART_PREFIXES):
            warnings.append(
                f"{key} has no effect: the client that is used here has no such setting."
            )
        elif key in _REFUSED:
            problems.append((key, _REFUSED[key]))
        elif key in _READ:
            _READ[key](value, settings, problems)
        elif key in _SCALED:
            _add_scaled(key, value, settings, problems)
        else:
            settings[_RENAMED.get(key, key)] = _VALUES.get((key, value), value)
    if has_tls:
        settle_stores(properties, settings, problems)
    if "sasl.oauthbearer.token.endpoint.url" in settings:
        settings.setdefault("sasl.oauthbearer.method", "oidc")
    return Translation(
        settings=settings, warnings=tuple(warnings), problems=tuple(sorted(problems))
    )


def _is_default(key: str, value: str) -> bool:
    """Whether *value* names the Java class whose work the client does anyway."""
    return value.strip() in _DEFAULT_CLASSES.get(key, ())


def connect_name(key: str) -> str:
    """What Kafka Connect's users call the setting that the client calls *key*."""
    return _CALLED.get(key, key)


def means(key: str, client_key: str) -> bool:
    """Whether *key*, Java's name of a setting or librdkafka's, is what the client calls *client_key*."""
    scaled, _ = _SCALED.get(key, (key, 1))
    names = (key, scaled, _RENAMED.get(key), *_BEHIND.get(key, ()))
    return client_key in names or connect_name(client_key) == key


_PROTOCOL = re.compile(r"^\s*[a-zA-Z][a-zA-Z\d+.-]*://")
_WITH_TLS = ("SSL", "SASL_SSL")

_CALLED = {
    "compression.codec": "compression.type",
    "max.in.flight": "max.in.flight.requests.per.connection",
    "message.max.bytes": "max.request.size",
    "message.send.max.retries": "retries",
    "message.timeout.ms": "delivery.timeout.ms",
    "metadata.broker.list": "bootstrap.servers",
    "queue.buffering.max.kbytes": "buffer.memory",
    "queue.buffering.max.ms": "linger.ms",
    "request.required.acks": "acks",
    "sasl.mechanisms": "sasl.mechanism",
}

_RENAMED = {
    "max.request.size": "message.max.bytes",
    "delivery.timeout.ms": "message.timeout.ms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "compression.gzip.level": "compression.level",
    "compression.lz4.level": "compression.level",
    "compression.zstd.level": "compression.level",
    "sasl.oauthbearer.assertion.template.file": "sasl.oauthbearer.assertion.jwt.template.file",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

# What one key of Java becomes besides, or instead, as what it holds may be.
_BEHIND = {
    "sasl.jaas.config": ("sasl.username", "sasl.password", "sasl.oauthbearer.client.id"),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
    "ssl.truststore.location": ("ssl.ca.location", "ssl.ca.pem"),
}

_VALUES: dict[tuple[str, str], str] = {
    # Java switches the check of the host's name off with an empty word.
    ("ssl.endpoint.identification.algorithm", ""): "none",
    ("ssl.endpoint.identification.algorithm", "HTTPS"): "https",
    # Java's "leave it to the operating system".
    ("send.buffer.bytes", "-1"): "0",
    ("receive.buffer.bytes", "-1"): "0",
    # Java's "no batching".
    ("batch.size", "0"): "1",
}

# Java asks for it by name where a token comes from an endpoint, which is what the client does by itself.
_DEFAULT_CLASSES = {
    "sasl.login.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    ),
    "sasl.oauthbearer.jwt.retriever.class": (
        "org.apache.kafka.common.security.oauthbearer.ClientCredentialsJwtRetriever",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
    ),
}

_SCALED = {"buffer.memory": ("queue.buffering.max.kbytes", 1024)}

_NO_COUNTERPART = frozenset(
    {
        "auto.include.jmx.reporter",
        "config.providers",
        "enable.metrics.push",
        "header.converter",
        "interceptor.classes",
        "key.deserializer",
        "key.serializer",
        "max.block.ms",
        "max.poll.records",
        "metadata.max.idle.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "partition.assignment.strategy",
        "partitioner.adaptive.partitioning.enable",
        "partitioner.availability.timeout.ms",
        "partitioner.ignore.keys",
        "sasl.kerberos.ticket.renew.jitter",
        "sasl.kerberos.ticket.renew.window.factor",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.oauthbearer.clock.skew.seconds",
        "sasl.oauthbearer.expected.audience",
        "sasl.oauthbearer.expected.issuer",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.jwt.validator.class",
        "sasl.oauthbearer.scope.claim.name",
        "security.providers",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.engine.factory.class",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.provider",
        "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
        "transaction.two.phase.commit.enable",
        "value.deserializer",
        "value.serializer",
    }
)
_NO_COUNTERPART_PREFIXES = (
    "metric.reporters",
    "metrics.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.jwks.",
)

_REFUSED = {
    "sasl.client.callback.handler.class": "A Java class cannot be loaded here; use sasl.* settings.",
    "sasl.login.callback.handler.class": "A Java class cannot be loaded here; use sasl.* settings.",
    "sasl.login.class": "A Java class cannot be loaded here; use sasl.* settings.",
}


def _add_jaas(
    line: str, settings: dict[str, str | int | bool], problems: list[tuple[str, str]]
) -> None:
    try:
        settings.update(jaas_settings(line))
    except ValueError as error:
        problems.append(("sasl.jaas.config", str(error)))


def _add_servers(
    addresses: str, settings: dict[str, str | int | bool], _problems: list[tuple[str, str]]
) -> None:
    # Java passes over a protocol before an address, which may be a listener's name.
    bare = (_PROTOCOL.sub("", each) for each in addresses.split(","))
    settings["bootstrap.servers"] = ",".join(bare)


def _add_partitioner(
    name: str, settings: dict[str, str | int | bool], problems: list[tuple[str, str]]
) -> None:
    if name.rpartition(".")[2] in ("", "DefaultPartitioner", "UniformStickyPartitioner"):
        settings["partitioner"] = "murmur2_random"
        return
    told = (
        f"{name} is a Java class. Leave it out for Java's default, or set partitioner to one of "
        "random, consistent_random, murmur2_random, fnv1a_random."
    )
    problems.append(("partitioner.class", told))


def _add_scaled(
    key: str,
    value: str,
    settings: dict[str, str | int | bool],
    problems: list[tuple[str, str]],
) -> None:
    name, unit = _SCALED[key]
    if value.strip().isdecimal() and int(value) > 0:
        settings[name] = max(1, int(value) // unit)
    else:
        problems.append((key, f"{value!r} is not a whole number above 0."))


# What is more than another name: each adds settings or a problem for a value.
_READ = {
    "bootstrap.servers": _add_servers,
    "partitioner.class": _add_partitioner,
    "sasl.jaas.config": _add_jaas,
}
