"""Kafka Connect's client settings as librdkafka's. Pure, but for the files of key stores.

Connect names its clients' settings as the Java clients do. Most names are the same here; this module
translates the others, adds our own defaults and warns about settings that it had to leave out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeVar

from headrace.connect.errors import ConfigError
from headrace.kafka.java_settings import Translation, connect_name, translation

Settings = Mapping[str, str | int | bool]
_Value = TypeVar("_Value")

CONNECTION_PREFIXES: Final = (
    "broker.address",
    "client.",
    "connections.",
    "enable.ssl",
    "metadata.",
    "receive.message.max.bytes",
    "reconnect.",
    "retry.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
)
"""Prefixes of the keys that say how to reach a cluster whose ``bootstrap.servers`` are known."""

# As Kafka's own clients read it: a protocol before the address is ignored.
_SERVER: Final = re.compile(
    r"([a-zA-Z][a-zA-Z\d+.-]*://)?(\[[0-9a-zA-Z.%:]+\]|[0-9a-zA-Z._%-]+):\d{1,5}"
)
_LAST_PORT: Final = 65_535
_SECRET_WORDS = ("password", "secret", "token", ".key.pem", "jaas", "ssl.key", "assertion")

_RECONNECTING: Settings = MappingProxyType(
    {
        # A broker that has returned is noticed within two seconds.
        "reconnect.backoff.max.ms": 2_000,
        # Java's default. The system is slow to notice that a connection to a frozen broker was accepted; a new
        # connection is noticed at once.
        "socket.connection.setup.timeout.ms": 10_000,
    }
)

PRODUCER_DEFAULTS: Settings = MappingProxyType(
    {
        "acks": "all",
        "compression.type": "none",
        # Java's partitioner: equal keys must land where Kafka Connect put them.
        "partitioner": "murmur2_random",
        # Long enough to fill requests at full speed, short enough to go unnoticed when idle.
        "linger.ms": 20,
        "batch.size": 1_000_000,
        "batch.num.messages": 10_000,
        # Java's max.request.size, so that what Kafka Connect could send can be sent.
        "message.max.bytes": 1_048_576,
        # Bounds a slot's memory; about a fifth of a second of a fast source.
        "queue.buffering.max.kbytes": 32 * 1024,
        # The bytes are the bound; this only has to be out of the way.
        "queue.buffering.max.messages": 500_000,
        # The client fills its requests itself; waiting for the last one's answer only delays commits.
        "socket.nagle.disable": True,
        # How long the broker may take to create a topic; after that a missing topic is an error.
        "topic.metadata.propagation.max.ms": 5_000,
        **_RECONNECTING,
    }
)

TRANSACTIONAL_DEFAULTS: Settings = MappingProxyType(
    {
        # Records are not visible before their commit, which sends at once what is queued. With an idempotent
        # producer the client has one request of a partition in flight, and busy-waits for its answer when a
        # record has been queued for longer than this: a quarter of the cost of sending.
        "linger.ms": 200,
    }
)

DEFAULT_TRANSACTION_TIMEOUT_MS: Final = 60_000
WITHOUT_END: Final = 2_147_483_647
"""The longest time, and the most attempts, that Kafka's clients have a number for: it stands for no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """Settings for one client of the library. Its ``repr`` hides secrets; it survives pickling.

    *warnings* are sentences about the user's settings that have no effect.
    """

    settings: Settings
    warnings: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"ClientConfig({redacted(self.settings)!r})"

    @property
    def transactional_id(self) -> str | None:
        """The transactional id, ``None`` for an idempotent producer and for other clients."""
        stored = self.settings.get("transactional.id")
        return None if stored is None else str(stored)

    @property
    def transaction_timeout_seconds(self) -> float:
        """How long the broker lets a transaction stay open."""
        return (
            float(self.settings.get("transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)) / 1e3
        )


def named_servers(servers: str) -> list[str]:
    """The brokers that a text with commas names, each as it was given. Pure."""
    return [each.strip() for each in servers.split(",") if each.strip()]


def servers_problem(servers: Sequence[str]) -> str | None:
    """What is wrong with a list of brokers, each as host:port. Pure."""
    # For a missing port the client would assume 9092, and wait for a host that no one meant.
    wrong = next((each for each in servers if not _is_address(each)), None)
    if wrong is None:
        return None if servers else "Name at least one broker as host:port"
    return f"Invalid url in bootstrap.servers: {wrong}. It must be host:port, with a port up to {_LAST_PORT}"


def _is_address(server: str) -> bool:
    return bool(_SERVER.fullmatch(server)) and int(server.rpartition(":")[2]) <= _LAST_PORT


def redacted(settings: Settings) -> dict[str, str | int | bool]:
    """*settings* for a log line: values of secret keys are replaced."""
    return {key: "[hidden]" if _is_secret(key) else value for key, value in settings.items()}


def producer_config(
    properties: Mapping[str, str],
    *,
    transactional_id: str | None = None,
    named: Callable[[str], str] = str,
) -> ClientConfig:
    """A producer's settings from Connect's: *properties* without the prefix ``producer.``.

    *named* gives the user's key for one of *properties*, with its prefix, for warnings.

    The user's settings win over ours, except those that exactly-once depends on: the transactional id
    and idempotence. Raises :class:`~headrace.connect.errors.ConfigError` with every problem.
    """
    translated = translation(_without_ours(properties), named=named)
    defaults = {**PRODUCER_DEFAULTS, **(TRANSACTIONAL_DEFAULTS if transactional_id else {})}
    settings: dict[str, str | int | bool] = {**defaults, **translated.settings}
    warnings = [*translated.warnings, *_overruled(properties, transactional_id)]
    settings["enable.idempotence"] = True
    if transactional_id is None:
        settings.setdefault("message.timeout.ms", WITHOUT_END)
    else:
        settings["transactional.id"] = transactional_id
        settings.setdefault("transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)
        # librdkafka demands it: a record may not outlive its transaction.
        settings.setdefault("message.timeout.ms", settings["transaction.timeout.ms"])
    _refuse(translated, settings)
    return ClientConfig(settings=settings, warnings=tuple(warnings))


def connection_settings(settings: Mapping[str, _Value]) -> dict[str, _Value]:
    """Those of *settings* that say how to reach a cluster, for a client of another kind."""
    return {
        key: value
        for key, value in settings.items()
        if key.startswith(("bootstrap.", *CONNECTION_PREFIXES))
    }


def client_config(properties: Mapping[str, str]) -> ClientConfig:
    """Connection settings for a client of any kind, from Connect's.

    Raises :class:`~headrace.connect.errors.ConfigError` with every problem.
    """
    translated = translation(connection_settings(properties))
    if translated.problems:
        raise ConfigError(translated.problems, where="The Kafka client's configuration")
    settings = {**_RECONNECTING, **translated.settings}
    return ClientConfig(settings=settings, warnings=translated.warnings)


def _without_ours(properties: Mapping[str, str]) -> dict[str, str]:
    fixed = ("transactional.id", "enable.idempotence", "delivery.report.only.error")
    return {key: value for key, value in properties.items() if key not in fixed}


def _overruled(properties: Mapping[str, str], transactional_id: str | None) -> list[str]:
    used = {"transactional.id": transactional_id or "none", "enable.idempotence": "true"}
    # The second reason is Kafka Connect's.
    reason = (
        "headrace's producers are idempotent, and transactional only with exactly-once source support"
        if transactional_id is None
        else "it cannot be overridden for connectors when exactly-once source support is enabled"
    )
    return [
        f"The value '{properties[key]}' for the '{key}' property will be ignored as {reason}. "
        f"The value '{value}' will be used instead."
        for key, value in used.items()
        if key in properties and properties[key] != value
    ]


def _refuse(translated: Translation, settings: Settings) -> None:
    problems = [*translated.problems, *_conflicts(settings)]
    if problems:
        raise ConfigError(problems, where="The producer's configuration")


def _conflicts(settings: Settings) -> list[tuple[str, str]]:
    """Settings that librdkafka would refuse with a less helpful sentence, or accept and lose records."""
    problems: list[tuple[str, str]] = []
    if settings["acks"] not in ("all", "-1"):
        problem = f"{settings['acks']} can lose records; only 'all' works with idempotence."
        problems.append(("acks", problem))
    if whole_number(settings, "max.in.flight.requests.per.connection", 5) > 5:  # noqa: PLR2004 - Kafka's own bound
        problem = "At most 5 with idempotence, otherwise records could change their order."
        problems.append(("max.in.flight.requests.per.connection", problem))
    if settings.get("retries") == "0":
        problems.append(("retries", "0 does not work with idempotence; leave it out."))
    queue = whole_number(settings, "queue.buffering.max.kbytes", 0) * 1024
    if 0 < queue < whole_number(settings, "message.max.bytes", 0):
        problem = (
            f"It must not be more than buffer.memory ({queue}): a larger record would wait forever."
        )
        problems.append(("max.request.size", problem))
    if "transactional.id" in settings:
        problems += _late_delivery(settings)
    return problems


def _late_delivery(settings: Settings) -> list[tuple[str, str]]:
    delivery = whole_number(settings, "message.timeout.ms", 0)
    transaction = whole_number(settings, "transaction.timeout.ms", DEFAULT_TRANSACTION_TIMEOUT_MS)
    if 0 < delivery <= transaction:
        return []
    problem = (
        f"{delivery} is longer than transaction.timeout.ms ({transaction}), which ends the transaction "
        "anyway. Leave it out, or raise transaction.timeout.ms with it."
    )
    return [("delivery.timeout.ms", problem)]


def whole_number(settings: Settings, key: str, default: int | str) -> int:
    """The producer's setting *key*; raises :class:`~headrace.connect.errors.ConfigError` unless it is a whole number from 0 on."""
    given = settings.get(key, default)
    try:
        found = int(given)
    except ValueError:
        found = -1
    if found < 0:
        problem = f"{given!r} is not a whole number from 0 on."
        raise ConfigError([(connect_name(key), problem)], where="The producer's configuration")
    return found


def _is_secret(key: str) -> bool:
    return any(word in key for word in _SECRET_WORDS)
