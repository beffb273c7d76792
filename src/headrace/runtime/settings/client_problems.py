"""What is wrong with the settings of Kafka clients, of a worker and of a connector. Asks no broker."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.connect.config import Problem, under
from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import ClientConfig, client_config, producer_config
from headrace.kafka.refused import producer_refusals
from headrace.runtime.settings.worker_config import WorkerConfig

_SERVERS = "bootstrap.servers"


def worker_client_problems(worker: WorkerConfig) -> Iterator[Problem]:
    """Of the worker's own clients, and of those that its connectors begin with."""
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
    """Of the clients of a connector with *props*, whose overrides are in *producer* and *admin* already."""
    yield from _producer_problems(producer, worker, prefix="producer.override.")
    overrides = under(props, "admin.override.")
    if overrides:
        yield from _own(overrides, _connection_problems(admin), prefix="admin.override.")


def worker_client_warnings(worker: WorkerConfig) -> tuple[str, ...]:
    """Sentences about settings of the worker's own clients that have no effect."""
    return client_config(worker.connection()).warnings


def connector_client_warnings(
    props: Mapping[str, str], worker: WorkerConfig, producer: Mapping[str, str]
) -> tuple[str, ...]:
    """Sentences about settings of a connector's clients that have no effect."""
    # Its only consumer reads its own topic of offsets.
    idle = {} if props.get("offsets.storage.topic") else under(props, "consumer.override.")
    consumer = (
        f"consumer.override.{key} has no effect: a source connector has no consumers here."
        for key in idle
    )
    return (*_producer(producer, worker).warnings, *consumer)


def _own(
    given: Mapping[str, str], problems: Iterator[Problem], *, prefix: str
) -> Iterator[Problem]:
    """Those of *problems* whose keys are *given* with the *prefix*; the others are told elsewhere."""
    for key, sentence in problems:
        if key in given:
            yield f"{prefix}{key}", sentence


def _connection_problems(settings: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with how a client that is no producer reaches Kafka."""
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
    """Whether *servers* are of the worker's cluster, as far as can be seen without asking them."""
    own = {_address(each) for each in worker.bootstrap_servers}
    return any(_address(each) in own for each in servers.split(","))


def _address(server: str) -> str:
    # A protocol before it is passed over, as in Java.
    return server.strip().rpartition("//")[2]


def _producer(settings: Mapping[str, str], worker: WorkerConfig) -> ClientConfig:
    # Each task has an id of its own; here only whether there is one counts.
    return producer_config(
        settings, transactional_id="one per task" if worker.exactly_once else None
    )
