"""What the settings of a worker mean, together with each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

from headrace.connect.config import Problem
from headrace.kafka.client_config import CONNECTION_PREFIXES, DEFAULT_TRANSACTION_TIMEOUT_MS
from headrace.runtime.providers.catalogue import provider_problems
from headrace.runtime.settings.local_master import machine_cores, shortage
from headrace.runtime.settings.unsupported_keys import (
    REST_KEYS,
    WORKER_DEFAULTS,
    worker_refusals,
)
from headrace.runtime.settings.worker_settings import WorkerSettings
from headrace.slot.work import Delivery, PluginChoice

Role = Literal["key", "value", "header"]

ROLES: Final[tuple[Role, ...]] = ("key", "value", "header")
"""What a record's converters convert."""


class WorkerConfig(WorkerSettings):
    """How a worker reaches Kafka and Spark, and how long things may take."""

    def check(self) -> Iterator[Problem]:
        """Rules across settings, and known keys that have no effect yet."""
        yield from worker_refusals(self.originals, _known_keys())
        yield from provider_problems(self.originals)
        if self.exactly_once_source_support == "preparing":
            yield (
                "exactly.once.source.support",
                "preparing is a step of upgrading Kafka Connect; here it is enabled or disabled.",
            )
        if self.originals.get("spark.speculation", "").strip().lower() == "true":
            yield (
                "spark.speculation",
                "Speculative copies of a task would fence each other; leave it off.",
            )
        if self.spark_master and self.spark_remote:
            yield "spark.remote", "Set spark.master or spark.remote, not both."
        yield from self._slot_problems()
        yield from self._timing_problems()

    def _slot_problems(self) -> Iterator[Problem]:
        # Spark takes local[…] as a remote, too: it then starts a server on this machine.
        for key, place in (
            ("spark.master", self.spark_master),
            ("spark.remote", self.spark_remote),
        ):
            problem = shortage(place or "", slots=self.slots, machine=machine_cores())
            if problem:
                yield key, problem

    def _timing_problems(self) -> Iterator[Problem]:
        timeout = transaction_timeout_ms(self.client("producer"))
        if self.exactly_once and timeout is not None and self.lease_ms >= timeout:
            yield (
                "headrace.lease.ms",
                (
                    f"It must be less than the producer's transaction.timeout.ms ({timeout}), so that "
                    "a task that is cut off gives up before the broker does."
                ),
            )

    @property
    def exactly_once(self) -> bool:
        """Whether source tasks write in transactions."""
        return self.exactly_once_source_support != "disabled"

    @property
    def delivery(self) -> Delivery:
        """The guarantee that connectors run with."""
        return Delivery.EXACTLY_ONCE if self.exactly_once else Delivery.AT_LEAST_ONCE

    @property
    def offsets_in_topic(self) -> bool:
        """Whether source offsets are in Kafka, and not in the state file."""
        return self.exactly_once or self.offset_storage_topic is not None

    def offsets_topic(self, group_id: str) -> str:
        """The topic of source offsets of the worker that *group_id* names."""
        return self.offset_storage_topic or f"{group_id}-offsets"

    def converter(self, role: Role) -> PluginChoice:
        """The worker's own converter of keys, values or headers, with its settings."""
        return PluginChoice(
            class_name=getattr(self, f"{role}_converter"), config=self.under(f"{role}.converter.")
        )

    def connection(self) -> dict[str, str]:
        """How to reach Kafka, for the worker's own clients."""
        kept = {
            key: value
            for key, value in self.originals.items()
            if key.startswith(CONNECTION_PREFIXES)
            and key not in WORKER_DEFAULTS
            and key not in REST_KEYS
        }
        return {"bootstrap.servers": ",".join(self.bootstrap_servers), **kept}

    def client(self, kind: Literal["producer", "admin"]) -> dict[str, str]:
        """The settings of connectors' clients of this *kind*, as in Connect: security keys need the prefix.

        Only admin clients begin with how the worker itself reaches Kafka.
        """
        servers = {"bootstrap.servers": ",".join(self.bootstrap_servers)}
        begin = self.connection() if kind == "admin" else servers
        return {**begin, **self.under(f"{kind}.")}

    def spark(self) -> dict[str, str]:
        """Everything that Spark is given, the master included unless there is a remote."""
        given = {key: value for key, value in self.originals.items() if key.startswith("spark.")}
        return given if self.spark_remote else {"spark.master": f"local[{self.slots}]", **given}


def transaction_timeout_ms(producer: Mapping[str, str]) -> int | None:
    """How long a transaction of a producer with these settings may stay open; ``None`` if it is no number."""
    given = producer.get("transaction.timeout.ms", str(DEFAULT_TRANSACTION_TIMEOUT_MS)).strip()
    return int(given) if given.isdecimal() else None


def _known_keys() -> frozenset[str]:
    return frozenset(each.name for each in WorkerConfig.settings())
