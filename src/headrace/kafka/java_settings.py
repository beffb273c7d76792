"""What the Java clients' settings are called here, which have no counterpart, and which are refused. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Settings of librdkafka; sentences about what has no effect; problems by the key as it was given."""

    settings: Mapping[str, str | int | bool]
    warnings: tuple[str, ...]
    problems: tuple[tuple[str, str], ...]


def translation(properties: Mapping[str, str]) -> Translation:
    """*properties* with Java's names, or librdkafka's own, as settings of librdkafka.

    A name that neither is known for passes through: the client itself refuses it when it is made.
    """
    settings: dict[str, str | int | bool] = {}
    warnings: list[str] = []
    problems: list[tuple[str, str]] = []
    for key, value in properties.items():
        if key in _NO_COUNTERPART or key.startswith(_NO_COUNTERPART_PREFIXES):
            warnings.append(
                f"{key} has no effect: the client that is used here has no such setting."
            )
        elif key in _REFUSED:
            problems.append((key, _REFUSED[key]))
        elif key == "sasl.jaas.config":
            _add_jaas(value, settings, problems)
        elif key == "partitioner.class":
            _add_partitioner(value, settings, problems)
        elif key in _SCALED:
            _add_scaled(key, value, settings, problems)
        else:
            settings[_RENAMED.get(key, key)] = _VALUES.get((key, value), value)
    _settle_stores(properties, settings, problems)
    return Translation(
        settings=settings, warnings=tuple(warnings), problems=tuple(sorted(problems))
    )


def connect_name(key: str) -> str:
    """What Kafka Connect's users call the setting that the client calls *key*."""
    return _CALLED.get(key, key)


def means(key: str, client_key: str) -> bool:
    """Whether *key*, Java's name of a setting or librdkafka's, is what the client calls *client_key*."""
    scaled, _ = _SCALED.get(key, (key, 1))
    return client_key in (key, scaled, _RENAMED.get(key)) or connect_name(client_key) == key


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
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}

_VALUES: dict[tuple[str, str], str] = {
    # Java switches the check of the host's name off with an empty word.
    ("ssl.endpoint.identification.algorithm", ""): "none",
    # Java's "leave it to the operating system".
    ("send.buffer.bytes", "-1"): "0",
    ("receive.buffer.bytes", "-1"): "0",
    # Java's "no batching".
    ("batch.size", "0"): "1",
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
)

_REFUSED = {
    "sasl.client.callback.handler.class": "A Java class cannot be loaded here; use sasl.* settings.",
    "sasl.login.callback.handler.class": "A Java class cannot be loaded here; use sasl.* settings.",
    "sasl.login.class": "A Java class cannot be loaded here; use sasl.* settings.",
}

_JKS = (
    "Java key stores cannot be read here. Convert it to PEM (keytool -exportcert -rfc, or openssl pkcs12) "
    "and set {key}.type=PEM."
)


def _settle_stores(
    given: Mapping[str, str],
    settings: dict[str, str | int | bool],
    problems: list[tuple[str, str]],
) -> None:
    """Java's trust store and key store: PEM files have other names here, PKCS12 works as key store."""
    trust, key = given.get("ssl.truststore.type", "JKS"), given.get("ssl.keystore.type", "JKS")
    settings.pop("ssl.truststore.type", None)
    settings.pop("ssl.keystore.type", None)
    settings.pop("ssl.truststore.password", None)
    if "ssl.truststore.location" in settings:
        location = settings.pop("ssl.truststore.location")
        if trust == "PEM":
            settings["ssl.ca.location"] = location
        else:
            problems.append(("ssl.truststore.location", _JKS.format(key="ssl.truststore")))
    if "ssl.keystore.location" in settings and key != "PKCS12":
        location = settings.pop("ssl.keystore.location")
        if key == "PEM":
            settings["ssl.certificate.location"] = settings["ssl.key.location"] = location
        else:
            problems.append(("ssl.keystore.location", _JKS.format(key="ssl.keystore")))


_JAAS_ENTRY = re.compile(
    r"""([\w.]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;]+))"""
)

_JAAS_MODULES = {
    "PlainLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "ScramLoginModule": {"username": "sasl.username", "password": "sasl.password"},
    "OAuthBearerLoginModule": {
        "clientId": "sasl.oauthbearer.client.id",
        "clientSecret": "sasl.oauthbearer.client.secret",
        "scope": "sasl.oauthbearer.scope",
    },
}


def _add_jaas(
    text: str, settings: dict[str, str | int | bool], problems: list[tuple[str, str]]
) -> None:
    words = text.split(maxsplit=1)
    module = words[0].rpartition(".")[2] if words else ""
    names = _JAAS_MODULES.get(module)
    if names is None:
        told = "Only Java's Plain, Scram and OAuthBearer login modules can be translated; use sasl.* settings."
        problems.append(("sasl.jaas.config", told))
        return
    for entry in _JAAS_ENTRY.finditer(text):
        name, *quoted = entry.groups()
        if name in names:
            value = next(part for part in quoted if part is not None)
            settings[names[name]] = re.sub(r"\\(.)", r"\1", value)
    if module == "OAuthBearerLoginModule":
        settings["sasl.oauthbearer.method"] = "oidc"


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
