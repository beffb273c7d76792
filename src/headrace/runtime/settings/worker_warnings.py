"""Sentences about a worker's configuration that it starts with all the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.kafka.client_config import CONNECTION_PREFIXES
from headrace.runtime.settings.unsupported_keys import REST_KEYS, REST_PREFIXES, WORKER_DEFAULTS
from headrace.runtime.settings.worker_config import ROLES, WorkerConfig

_PASSED_ON = (
    *CONNECTION_PREFIXES,
    *(f"{role}.converter." for role in ROLES),
    *REST_PREFIXES,
    "admin.",
    "config.providers.",
    "consumer.",
    "producer.",
    "spark.",
)
_IGNORED = ("internal.key.converter", "internal.value.converter")


def worker_warnings(props: Mapping[str, str]) -> tuple[str, ...]:
    """Sentences about keys that have no effect, such as misspelt ones."""
    settings = frozenset(each.name for each in WorkerConfig.settings())
    known = settings | WORKER_DEFAULTS.keys() | REST_KEYS
    unknown = (
        not_known(key)
        for key in props
        if key not in known and not key.startswith((*_PASSED_ON, *_IGNORED))
    )
    ignored = (
        f"{key} is ignored: internal records are always JSON without schemas."
        for key in _IGNORED
        if any(each.startswith(key) for each in props)
    )
    return (*unknown, *ignored, *_delivery_warnings(props))


def not_known(key: str) -> str:
    """What is said of a *key* that is passed over, in Kafka Connect's words."""
    return f"The configuration '{key}' was supplied but isn't a known config."


def _delivery_warnings(props: Mapping[str, str]) -> Iterator[str]:
    if props.get("exactly.once.source.support", "").strip() == "disabled":
        yield (
            "exactly.once.source.support=disabled: after a failure, records are sent again that Kafka has "
            "already. Leave it out for exactly-once."
        )
