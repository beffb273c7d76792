"""Kafka Connect's keys that have no effect here yet: their defaults pass, anything else is refused.

A key that is silently ignored is worse than one that is refused: the user would believe in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headrace.connect.config import Problem

WORKER_DEFAULTS: Final[Mapping[str, str | None]] = {
    "config.storage.replication.factor": "3",
    "config.storage.topic": None,
    "connect.protocol": "sessioned",
    "heartbeat.interval.ms": "3000",
    "inter.worker.key.generation.algorithm": "HmacSHA256",
    "inter.worker.key.size": None,
    "inter.worker.key.ttl.ms": "3600000",
    "inter.worker.signature.algorithm": "HmacSHA256",
    "inter.worker.verification.algorithms": "HmacSHA256",
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "metrics.num.samples": "2",
    "metrics.recording.level": "INFO",
    "metrics.sample.window.ms": "30000",
    "offset.flush.timeout.ms": "5000",
    "rebalance.timeout.ms": "60000",
    "receive.buffer.bytes": "32768",
    "request.timeout.ms": "40000",
    "scheduled.rebalance.max.delay.ms": "300000",
    "send.buffer.bytes": "131072",
    "session.timeout.ms": "10000",
    "status.storage.partitions": "5",
    "status.storage.replication.factor": "3",
    "status.storage.topic": None,
    "worker.sync.timeout.ms": "3000",
    "worker.unsync.backoff.ms": "300000",
}
"""What a key of a worker may be set to; ``None`` when it may not be there at all."""

WORKER_PREFIXES: Final = (
    "config.storage.",
    "offset.storage.",
    "status.storage.",
)
"""Beginnings of keys of a worker that may not be there at all."""

REST_KEYS: Final = frozenset(
    {
        "access.control.allow.methods",
        "access.control.allow.origin",
        "admin.listeners",
        "headrace.rest.max.body.bytes",
        "listeners",
        "response.http.headers.config",
        "rest.advertised.host.name",
        "rest.advertised.listener",
        "rest.advertised.port",
        "rest.basic.auth.credentials.file",
        "rest.extension.classes",
        "ssl.client.auth",
    }
)
"""Keys of a worker that the REST interface reads, and declares; none of them is of a Kafka client."""

REST_PREFIXES: Final = ("admin.listeners.https.", "listeners.https.")
"""Beginnings of keys of a worker that the REST interface reads."""

CONNECTOR_PREFIXES: Final = ("errors.deadletterqueue.",)
"""Beginnings of keys of a connector that may not be there at all."""


def worker_refusals(props: Mapping[str, str], known: frozenset[str]) -> Iterator[Problem]:
    """What in a worker's configuration has no effect yet; *known* are the keys that have one."""
    return _refusals(props, known, WORKER_DEFAULTS, WORKER_PREFIXES)


def connector_refusals(props: Mapping[str, str], known: frozenset[str]) -> Iterator[Problem]:
    """What in a connector's configuration has no effect yet; *known* are the keys that have one."""
    return _refusals(props, known, {}, CONNECTOR_PREFIXES)


def _refusals(
    props: Mapping[str, str],
    known: frozenset[str],
    defaults: Mapping[str, str | None],
    prefixes: tuple[str, ...],
) -> Iterator[Problem]:
    for key, value in props.items():
        if key in known:
            continue
        if key in defaults:
            if not _is_default(value, defaults[key]):
                yield key, _sentence(key, defaults[key])
        elif key.startswith(prefixes):
            prefix = next(each for each in prefixes if key.startswith(each))
            beside = sorted(each for each in known if each.startswith(prefix))
            yield key, f"{_sentence(key, None)}{_listed(beside)}"


def _is_default(value: str, default: str | None) -> bool:
    return default is not None and value.strip().lower() == default.lower()


def _sentence(key: str, default: str | None) -> str:
    allowed = f"only its default ({default}) can be set" if default else "leave it out"
    return f"{key} is a setting of Kafka Connect that is not supported yet; {allowed}."


def _listed(keys: Sequence[str]) -> str:
    return f" If it is misspelt: there are {', '.join(keys)}." if keys else ""
