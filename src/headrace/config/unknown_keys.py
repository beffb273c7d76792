"""Unknown keys, most of them misspelt, and Kafka Connect's keys that have no effect here."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from headrace.connect.config import Problem

# One or two letters of a key are wrong, left out or swapped; less similar keys are other settings.
_SIMILAR = 0.8
# Keys of two lengths cannot be so similar where one of them has less than two thirds of the other's letters.
_LENGTHS = _SIMILAR / (2 - _SIMILAR)
# Searching for a similar key takes a millisecond, and a request may have a hundred thousand unknown keys.
_LOOKED_AT = 20
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
"""The only value that such a key of a worker may have; ``None`` when the key may not be set at all."""

DISTRIBUTED_TOPICS: Final = ("config.storage.topic", "status.storage.topic")
"""Keys that every distributed worker has, and no other worker."""

GROUP_PREFIXES: Final = ("headrace.changes.", "headrace.group.", "headrace.relinquish.")
"""Prefixes of headrace's own keys that have a meaning only for the workers of a group."""

DISTRIBUTED_PREFIXES: Final = (
    *GROUP_PREFIXES,
    "config.storage.",
    "connect.protocol",
    "heartbeat.interval.ms",
    "inter.worker.",
    "rebalance.timeout.ms",
    "scheduled.rebalance.",
    "session.timeout.ms",
    "status.storage.",
    "worker.sync.",
    "worker.unsync.",
)
"""Prefixes of keys that have a meaning only for distributed workers."""

# Those of them that no worker of headrace has.
_NEVER: Final = ("worker.sync.", "worker.unsync.")

WORKER_PREFIXES: Final = (
    "config.storage.",
    "offset.storage.",
    "status.storage.",
)
"""Prefixes of a worker's keys that may not be set at all, except known ones."""

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
"""Keys of a worker that the REST interface declares and reads; none of them is for a Kafka client."""

REST_PREFIXES: Final = ("admin.listeners.https.", "listeners.https.")
"""Prefixes of a worker's keys that the REST interface reads."""

CONNECTOR_PREFIXES: Final = ("errors.deadletterqueue.",)
"""Prefixes of a connector's keys that may not be set at all, except known ones."""

_DISTRIBUTED: Final = (
    "This is the configuration of a distributed worker: 'headrace worker' starts one. To run a worker that stands alone, and "
    "keeps configurations and statuses in its state file, leave out {}. It uses the same offset.storage.topic and group.id, "
    "so stop the distributed workers of this group first."
)


def unknown_key_warnings(keys: Iterable[str], known: Iterable[str] = ()) -> Iterator[str]:
    """Kafka Connect's warning about each of the first unknown *keys*, with the *known* key that it resembles.

    One more sentence counts the others.
    """
    rest = iter(keys)
    names = tuple(known)
    for key in islice(rest, _LOOKED_AT):
        meant = nearest(key, names)
        sentence = f"The configuration '{key}' was supplied but isn't a known config."
        yield f"{sentence} Did you mean '{meant}'?" if meant else sentence
    others = sum(1 for _ in rest)
    if others:
        yield f"{others} other configurations were supplied but aren't known configs."


def hinted(
    problems: Iterable[Problem], given: Container[str], unknown: Iterable[str]
) -> Iterator[Problem]:
    """*problems*; those of keys that are not *given* name a similar key among the first *unknown* ones."""
    candidates = tuple(islice(unknown, _LOOKED_AT))
    for key, sentence in problems:
        meant = None if key in given else nearest(key, candidates)
        yield key, f"{sentence} Is '{meant}' misspelt?" if meant else sentence


def nearest(key: str, others: Iterable[str]) -> str | None:
    """The one of *others* that is almost *key*."""
    size = len(key)
    likely = [each for each in others if size * _LENGTHS <= len(each) <= size / _LENGTHS]
    found = difflib.get_close_matches(key, likely, n=1, cutoff=_SIMILAR) if likely else ()
    return found[0] if found else None


def worker_refusals(props: Mapping[str, str], known: frozenset[str]) -> Iterator[Problem]:
    """Problems of the keys in a worker's configuration that have no effect yet; *known* keys have one.

    One sentence lists all keys that only a distributed worker has.
    """
    distributed = [each for each in DISTRIBUTED_TOPICS if each in props.keys() - known]
    if not distributed:
        # Those of a distributed worker's topics are for the topics themselves.
        is_distributed = known.issuperset(DISTRIBUTED_TOPICS)
        prefixes = () if is_distributed else WORKER_PREFIXES
        yield from _refusals(props, known, WORKER_DEFAULTS, prefixes)
        return
    keys = sorted(key for key in props if key.startswith(DISTRIBUTED_PREFIXES))
    yield distributed[0], _DISTRIBUTED.format(", ".join(keys))
    rest = {key: value for key, value in props.items() if key not in keys}
    yield from _refusals(rest, known, WORKER_DEFAULTS, WORKER_PREFIXES)


def connector_refusals(props: Mapping[str, str], known: frozenset[str]) -> Iterator[Problem]:
    """Problems of the keys in a connector's configuration that have no effect yet; *known* keys have one."""
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
            similar = sorted(each for each in known if each.startswith(prefix))
            yield key, f"{_sentence(key, None)}{_listed(similar)}"


def _is_default(value: str, default: str | None) -> bool:
    return default is not None and value.strip().lower() == default.lower()


def _sentence(key: str, default: str | None) -> str:
    if key.startswith(DISTRIBUTED_PREFIXES) and not key.startswith(_NEVER):
        return f"{key} is a setting of the workers of a group, which 'headrace worker' starts. For a worker that stands alone, leave it out."
    allowed = f"only its default ({default}) can be set" if default else "leave it out"
    return f"{key} is a setting of Kafka Connect that is not supported yet; {allowed}."


def _listed(keys: Sequence[str]) -> str:
    return f" If it is misspelt: supported are {', '.join(keys)}." if keys else ""
