"""Settings of a worker's and a connector's Kafka clients, and which of them a connector may override. Contacts no broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from headrace.config.connector_config import ConnectorConfig
from headrace.config.worker_config import OVERRIDES, WorkerConfig, policy_name
from headrace.connect.config import Problem, under
from headrace.connect.errors import ConfigError
from headrace.connect.group_offsets import OffsetGroup
from headrace.kafka.client_config import (
    ClientConfig,
    client_config,
    connection_settings,
    producer_config,
)
from headrace.kafka.java_settings import connect_name, means
from headrace.kafka.refused_settings import producer_refusals
from headrace.kafka.wire_coverage import named_problems, wire_problems, without_effect

_SERVERS = "bootstrap.servers"
# No one reads more, and a request may have a hundred thousand.
_NAMED = 20
_SENDER: Final = "headrace.sender"
_WAYS_OUT: Final = "Leave it out, or set headrace.sender to client."
OFFSETS_TOPIC_KEY: Final = "offsets.storage.topic"
_OF_PRINCIPALS: Final = frozenset({"sasl.jaas.config", "sasl.mechanism", "security.protocol"})


def worker_client_problems(worker: WorkerConfig) -> Iterator[Problem]:
    """Problems of the worker's own clients, and of its defaults for connectors' clients."""
    yield from _connection_problems(worker.connection())
    yield from _producer_problems(worker.client("producer"), worker, prefix="producer.")
    admin = worker.under("admin.")
    yield from _own(admin, _connection_problems(worker.client("admin")), prefix="admin.")


def connector_client_problems(
    props: Mapping[str, str],
    worker: WorkerConfig,
    *,
    producer: Mapping[str, str],
    admin: Mapping[str, str],
) -> Iterator[Problem]:
    """Problems of the clients of a connector with *props*; *producer* and *admin* include its overrides."""
    yield from _producer_problems(producer, worker, prefix="producer.override.")
    overrides = under(props, "admin.override.")
    if overrides:
        yield from _own(overrides, _connection_problems(admin), prefix="admin.override.")


def wire_sender_problems(config: ConnectorConfig, worker: WorkerConfig) -> Iterator[Problem]:
    """What headrace's own sender cannot have of the settings of a connector that names it, by the user's keys."""
    if config.sender != "wire":
        return
    overrides = config.under("producer.override.")
    try:
        found = wire_problems(_producer(config.producer(worker), worker))
    except ConfigError:
        # It is reported for the client library's producer, too.
        return
    for key, sentence in found:
        own = next((each for each in overrides if _is_called(each, key)), None)
        if own is None:
            yield _SENDER, f"wire cannot have the producer's setting {key}. {sentence} {_WAYS_OUT}"
        else:
            yield (
                f"producer.override.{own}",
                f"{sentence} That is with headrace.sender=wire. {_WAYS_OUT}",
            )


def why_not_by_wire(config: ConnectorConfig, worker: WorkerConfig) -> str | None:
    """Why headrace's own sender cannot send with the connector's settings; ``None`` if it can. Shows no secret."""
    return (
        " ".join(named_problems(wire_problems(_producer(config.producer(worker), worker)))) or None
    )


def _is_called(key: str, name: str) -> bool:
    return key == name or connect_name(key) == name or means(key, name)


def override_problems(
    props: Mapping[str, str], policy: str, allowlist: tuple[str, ...]
) -> Iterator[Problem]:
    """The overrides in a connector's *props* that the *policy* refuses, in Kafka Connect's words.

    *allowlist* are the settings that the policy Allowlist allows.
    """
    name = policy_name(policy)
    if name == "All":
        return
    allowed = {"Principal": _OF_PRINCIPALS, "Allowlist": frozenset(allowlist)}.get(name or "", ())
    for prefix in OVERRIDES:
        for key in under(props, prefix):
            if key not in allowed:
                message = f"The '{name}' policy does not allow '{key}' to be overridden in the connector configuration."
                yield f"{prefix}{key}", message


def worker_client_warnings(worker: WorkerConfig) -> tuple[str, ...]:
    """Sentences about settings of the worker's clients that have no effect, and of its connectors' producers."""
    return tuple(
        dict.fromkeys((*client_config(worker.connection()).warnings, *_of_producers(worker)))
    )


def connector_client_warnings(config: ConnectorConfig, worker: WorkerConfig) -> tuple[str, ...]:
    """Sentences about a connector's own settings of its clients that have no effect."""
    of_worker = _of_producers(worker)
    props = config.originals
    # Its only consumer reads its own topic of offsets.
    idle = {} if props.get("offsets.storage.topic") else under(props, "consumer.override.")
    consumer = (
        f"{keys} has no effect: a source connector has no consumers here."
        for keys in (
            [f"consumer.override.{key}" for key in idle]
            if len(idle) <= _NAMED
            else [f"Each of {len(idle)} settings consumer.override.*"]
        )
    )
    overrides = under(props, "producer.override.")

    def named(key: str) -> str:
        return f"producer.override.{key}" if key in overrides else f"producer.{key}"

    producer = _producer(config.producer(worker), worker, named)
    own = (each for each in producer.warnings if each not in of_worker)
    return (*own, *consumer, *_wire_warnings(config, producer))


def _wire_warnings(config: ConnectorConfig, producer: ClientConfig) -> Iterator[str]:
    if config.sender == "client" or (config.sender is None and wire_problems(producer)):
        return
    for key in without_effect(producer):
        yield f"The producer's setting {key} has no effect: headrace's own sender does not need it. headrace.sender=client sends with the client library."


def _of_producers(worker: WorkerConfig) -> tuple[str, ...]:
    return _producer(worker.client("producer"), worker, "producer.{}".format).warnings


def _own(
    given: Mapping[str, str], problems: Iterator[Problem], *, prefix: str
) -> Iterator[Problem]:
    """Those of *problems* whose keys are *given* with the *prefix*; the others are reported elsewhere."""
    for key, sentence in problems:
        if key in given:
            yield f"{prefix}{key}", sentence


def _connection_problems(settings: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the connection settings of a client that is not a producer."""
    try:
        yield from producer_refusals(client_config(settings), settings)
    except ConfigError as error:
        yield from error.problems


def _producer_problems(
    settings: Mapping[str, str], worker: WorkerConfig, *, prefix: str
) -> Iterator[Problem]:
    try:
        problems = producer_refusals(_producer(settings, worker), settings)
    except ConfigError as error:
        problems = error.problems
    for key, sentence in problems:
        yield f"{prefix}{key}", sentence
    if worker.exactly_once and not shares_servers(settings[_SERVERS], worker):
        yield (
            f"{prefix}{_SERVERS}",
            (
                "With exactly-once, records and offsets are in one transaction, and this worker keeps offsets in its "
                f"own cluster only: name one of the worker's {_SERVERS} ({','.join(worker.bootstrap_servers)}), too. "
                "For records in another cluster, run a worker there, or one with "
                "exactly.once.source.support=disabled."
            ),
        )


def shares_servers(servers: str, worker: WorkerConfig) -> bool:
    """Whether *servers* belong to the worker's cluster, as far as their addresses show."""
    own = {_address(each) for each in worker.bootstrap_servers}
    return any(_address(each) in own for each in servers.split(","))


def _address(server: str) -> str:
    # A protocol before the address is ignored, as in Java.
    return server.strip().rpartition("//")[2]


def _producer(
    settings: Mapping[str, str], worker: WorkerConfig, named: Callable[[str], str] = str
) -> ClientConfig:
    # Each task has an id of its own; for these checks it only matters whether there is one.
    return producer_config(
        settings,
        transactional_id="one per task" if worker.exactly_once else None,
        named=named,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffsetsTopic:
    """A topic of source offsets besides the worker's, in the cluster that the connector's tasks write to.

    *partitions* and *replication* are for creating it, as for the worker's. *reader*, *writer* and *admin* are
    settings of clients, in the Java client's names. Where the worker's own topic has the same name, *worker_connection*
    has the settings of a client of the worker's cluster: at other addresses it may be the same topic.
    """

    topic: str
    partitions: int
    replication: int
    reader: Mapping[str, str] = field(repr=False)
    writer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    worker_connection: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def is_same_named(self) -> bool:
        """Whether the worker's own topic has the same name."""
        return self.worker_connection is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorOffsetsGroup:
    """A consumer group that holds a connector's source offsets; *connection* is how its tasks reach the cluster."""

    group: OffsetGroup
    connection: Mapping[str, str] = field(repr=False)

    @classmethod
    def reached_as(cls, producer: Mapping[str, str], group: OffsetGroup) -> ConnectorOffsetsGroup:
        """*group*, reached with the settings of the tasks' *producer*."""
        return cls(group=group, connection=connection_settings(producer))


def connector_offsets_topic(
    config: ConnectorConfig, worker: WorkerConfig, group_id: str
) -> ConnectorOffsetsTopic | None:
    """The connector's own topic; ``None`` if it names none, or names the worker's in the worker's cluster."""
    topic = config.offsets_storage_topic
    if topic is None:
        return None
    worker_topic = worker.offsets_topic(group_id) if worker.offsets_in_topic else None
    producer = config.producer(worker)
    if topic == worker_topic and shares_servers(producer[_SERVERS], worker):
        return None
    servers = {_SERVERS: producer[_SERVERS]}
    readers = {**worker.under("consumer."), **config.under("consumer.override.")}
    admins = {**config.admin(worker), **servers, **config.under("admin.override.")}
    return ConnectorOffsetsTopic(
        topic=topic,
        partitions=worker.offset_storage_partitions,
        replication=worker.offset_storage_replication_factor,
        reader={**connection_settings(producer), **servers, **connection_settings(readers)},
        writer=producer,
        admin=admins,
        worker_connection=worker.connection() if topic == worker_topic else None,
    )


def offsets_topic_problems(config: ConnectorConfig) -> Iterator[Problem]:
    """Other uses of the connector's own topic that would mix offsets with something else. Pure."""
    topic = config.offsets_storage_topic
    if topic is None:
        return
    used = {
        "topic": "The connector's records go",
        "errors.deadletterqueue.topic.name": "The connector's dead letters go",
    }
    for key, what in used.items():
        if topic == config.originals.get(key, "").strip():
            yield (
                OFFSETS_TOPIC_KEY,
                f"{what} to {topic} ({key}). Name a topic that holds nothing but source offsets.",
            )
