"""Which settings of Kafka's Java consumer mean something to the source: those that have an effect, and those that cannot."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.kafka.wire.settings import CONNECTION_SETTINGS

NUMBERS: Final = (
    "fetch.max.bytes",
    "max.partition.fetch.bytes",
    "fetch.min.bytes",
    "fetch.max.wait.ms",
    "default.api.timeout.ms",
)

OWNED: Final[Mapping[str, str]] = {
    "key.deserializer": "Keys arrive as bytes; cast or decode the column key.",
    "value.deserializer": "Values arrive as bytes; cast or decode the column value.",
    "enable.auto.commit": "Positions are in the query's checkpoint. For lag tools, set kafka.group.id: what has been "
    "read is committed to that group.",
    "auto.commit.interval.ms": "Positions are in the query's checkpoint; leave it out.",
    "interceptor.classes": "Interceptors are Java classes, and records are read without Java; leave it out.",
    "allow.auto.create.topics": "A reader never creates topics; leave it out.",
    "group.instance.id": "Records are read without joining a group; leave it out.",
    "group.protocol": "Records are read without joining a group; leave it out.",
    "partition.assignment.strategy": "Spark distributes the partitions; leave it out.",
}
"""What the source has to choose itself, and what to do instead."""

_EFFECTIVE: Final = frozenset(
    {
        *CONNECTION_SETTINGS,
        *NUMBERS,
        "auto.offset.reset",
        "check.crcs",
        "group.id",
        "isolation.level",
        "sasl.jaas.config",
        "sasl.login.callback.handler.class",
        "sasl.oauthbearer.jwt.retriever.class",
        "sasl.oauthbearer.method",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    }
)
# Settings of the Java consumer that are spelt right, and that nothing here corresponds to.
_OF_JAVA: Final = frozenset(
    {
        "client.dns.lookup",
        "connections.max.idle.ms",
        "exclude.internal.topics",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "max.poll.records",
        "metadata.max.age.ms",
        "metric.reporters",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "security.providers",
        "send.buffer.bytes",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
        "ssl.enabled.protocols",
        "ssl.protocol",
        "ssl.provider",
    }
)
_SIMILAR: Final = 0.8
_MOST_NAMED: Final = 20


def without_effect(names: Iterable[str]) -> Iterator[str]:
    """A sentence about each of the first *names* that has no effect, with the one that may be meant."""
    idle = sorted(set(names) - _EFFECTIVE)
    for name in idle[:_MOST_NAMED]:
        near = difflib.get_close_matches(name, _EFFECTIVE, n=1, cutoff=_SIMILAR)
        meant = f" Is kafka.{near[0]} meant?" if near and name not in _OF_JAVA else ""
        yield f"The option kafka.{name} has no effect: records are read without Kafka's own consumer.{meant}"
    if len(idle) > _MOST_NAMED:
        yield f"{len(idle) - _MOST_NAMED} other options for the Kafka client have no effect either."
