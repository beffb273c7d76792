"""Kafka Connect's keys that have no effect here yet: their defaults pass, anything else is refused.

A key that is silently ignored is worse than one that is refused: the user would believe in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from headrace.connect.config import Problem

WORKER_DEFAULTS: Final[Mapping[str, str | None]] = {
    "access.control.allow.methods": "",
    "access.control.allow.origin": "",
    "admin.listeners": None,
    "config.providers": "",
    "config.storage.replication.factor": "3",
    "config.storage.topic": None,
    "connect.protocol": "sessioned",
    "connector.client.config.override.policy": "All",
    "heartbeat.interval.ms": "3000",
    "inter.worker.key.generation.algorithm": "HmacSHA256",
    "inter.worker.key.size": None,
    "inter.worker.key.ttl.ms": "3600000",
    "inter.worker.signature.algorithm": "HmacSHA256",
    "inter.worker.verification.algorithms": "HmacSHA256",
    "listeners": "http://:8083",
    "metric.reporters": "org.apache.kafka.common.metrics.JmxReporter",
    "metrics.num.samples": "2",
    "metrics.recording.level": "INFO",
    "metrics.sample.window.ms": "30000",
    "offset.storage.file.filename": None,
    "offset.flush.timeout.ms": "5000",
    "plugin.discovery": "hybrid_warn",
    "plugin.path": "",
    "rebalance.timeout.ms": "60000",
    "receive.buffer.bytes": "32768",
    "request.timeout.ms": "40000",
    "response.http.headers.config": "",
    "rest.advertised.host.name": None,
    "rest.advertised.listener": None,
    "rest.advertised.port": None,
    "rest.extension.classes": "",
    "scheduled.rebalance.max.delay.ms": "300000",
    "send.buffer.bytes": "131072",
    "session.timeout.ms": "10000",
    "ssl.client.auth": "none",
    "status.storage.partitions": "5",
    "status.storage.replication.factor": "3",
    "status.storage.topic": None,
    "topic.creation.enable": "true",
    "topic.tracking.allow.reset": "true",
    "topic.tracking.enable": "true",
    "worker.sync.timeout.ms": "3000",
    "worker.unsync.backoff.ms": "300000",
}
"""What a key of a worker may be set to; ``None`` when it may not be there at all."""

WORKER_PREFIXES: Final = (
    "admin.listeners.https.",
    "config.providers.",
    "config.storage.",
    "listeners.https.",
    "offset.storage.",
    "status.storage.",
)
"""Beginnings of keys of a worker that may not be there at all."""

CONNECTOR_DEFAULTS: Final[Mapping[str, str | None]] = {
    "config.action.reload": "restart",
    "connector.plugin.version": None,
    "errors.retry.delay.max.ms": "60000",
    "errors.retry.timeout": "0",
    "header.converter.plugin.version": None,
    "key.converter.plugin.version": None,
    "offsets.storage.topic": None,
    "predicates": "",
    "tasks.max.enforce": "true",
    "topic.creation.groups": "",
    "transforms": "",
    "value.converter.plugin.version": None,
}
"""What a key of a connector may be set to; ``None`` when it may not be there at all."""

CONNECTOR_PREFIXES: Final = (
    "errors.deadletterqueue.",
    "predicates.",
    "topic.creation.",
    "transforms.",
)
"""Beginnings of keys of a connector that may not be there at all."""

_INSTEAD: Mapping[str, str] = {
    "offset.storage.file.filename": (
        "Offsets are kept in the topic offset.storage.topic, or in state.file when exactly-once is "
        "off; the positions in this file are not taken over. Remove it."
    ),
    "plugin.path": "Name the Python modules of your connectors in plugin.modules.",
}


def worker_refusals(props: Mapping[str, str], known: frozenset[str]) -> Iterator[Problem]:
    """What in a worker's configuration has no effect yet; *known* are the keys that have one."""
    return _refusals(props, known, WORKER_DEFAULTS, WORKER_PREFIXES)


def connector_refusals(props: Mapping[str, str], known: frozenset[str]) -> Iterator[Problem]:
    """What in a connector's configuration has no effect yet; *known* are the keys that have one."""
    return _refusals(props, known, CONNECTOR_DEFAULTS, CONNECTOR_PREFIXES)


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
            yield key, _sentence(key, None)


def _is_default(value: str, default: str | None) -> bool:
    return default is not None and value.strip().lower() == default.lower()


def _sentence(key: str, default: str | None) -> str:
    allowed = f"only its default ({default}) can be set" if default else "leave it out"
    told = f"{key} is a setting of Kafka Connect that is not supported yet; {allowed}."
    return f"{told} {_INSTEAD[key]}" if key in _INSTEAD else told
