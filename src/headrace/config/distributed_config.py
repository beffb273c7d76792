"""The settings of a worker that is one of a group: Kafka Connect's keys of distributed mode, and their rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from headrace.config.worker_config import WorkerConfig, topic_count
from headrace.connect.config import Problem, setting
from headrace.java.macs import MAC_ALGORITHMS, is_known, key_size_problem

_LEASE: Final = "headrace.lease.ms"
_HMAC: Final = "HmacSHA256"
_UNKNOWN_ALGORITHM: Final = (
    f"the algorithm is not supported; the supported algorithms are: {', '.join(MAC_ALGORITHMS)}"
)


def _algorithm(value: str) -> str | None:
    return None if is_known(value) else _UNKNOWN_ALGORITHM


def _algorithms(value: tuple[str, ...]) -> str | None:
    if not value:
        return "At least one signature verification algorithm must be provided"
    return next(filter(None, map(_algorithm, value)), None)


class DistributedConfig(WorkerConfig):
    """A worker of a group: its members, the topics in which they keep what they share, and how they agree on who does what."""

    group_id: str = setting(
        importance="high",
        non_empty=True,
        doc="The group of workers, as its members name it; transactional ids begin with it. No group of consumers may have the name.",
    )
    offset_storage_topic: str = setting(
        importance="high", non_empty=True, doc="The topic of source offsets."
    )
    config_storage_topic: str = setting(
        importance="high",
        non_empty=True,
        doc="The topic of connectors' configurations, with one partition. It is created if it is missing.",
    )
    config_storage_replication_factor: int = setting(
        default=3,
        importance="low",
        valid=topic_count,
        doc="The replication factor of the config topic; -1 for the broker's default.",
    )
    status_storage_topic: str = setting(
        importance="high",
        non_empty=True,
        doc="The topic of states and active topics. It is created if it is missing.",
    )
    status_storage_partitions: int = setting(
        default=5,
        importance="low",
        valid=topic_count,
        doc="The partitions of the status topic; -1 for the broker's default.",
    )
    status_storage_replication_factor: int = setting(
        default=3,
        importance="low",
        valid=topic_count,
        doc="The replication factor of the status topic; -1 for the broker's default.",
    )
    changes_storage_topic: str | None = setting(
        "headrace.changes.storage.topic",
        default=None,
        non_empty=True,
        doc="The topic of the history of offsets, which Kafka Connect does not have. Not set means the config topic's name "
        "with -changes after it. It is created as the config topic is.",
    )
    session_timeout_ms: int = setting(
        default=10_000,
        importance="high",
        at_least=1,
        doc="After how long without a heartbeat the group goes on without a worker.",
    )
    heartbeat_interval_ms: int = setting(
        default=3_000,
        importance="high",
        at_least=1,
        doc="The time between two heartbeats; workers learn of a rebalance by them.",
    )
    rebalance_timeout_ms: int = setting(
        default=60_000,
        importance="high",
        at_least=1,
        doc="How long a worker may take to join again when the work is divided.",
    )
    scheduled_rebalance_max_delay_ms: int = setting(
        default=300_000,
        importance="low",
        at_least=0,
        doc="How long the work of a worker that is gone waits for its return.",
    )
    relinquish_timeout_ms: int = setting(
        "headrace.relinquish.timeout.ms",
        default=20_000,
        importance="low",
        at_least=0,
        doc="How long a worker that ends may take until others have taken over its connectors (KIP-995); then it leaves all the same, "
        "and what it had waits as that of a worker that is gone. 0 leaves at once.",
    )
    relinquish_java_leader: bool = setting(
        "headrace.relinquish.java.leader",
        default=True,
        importance="low",
        doc="Whether a worker that ends has a leader of Kafka Connect give its connectors to others at once, by an offset of the config topic "
        "that none can have read: all members join once more. Otherwise they wait as those of a worker that is gone.",
    )
    group_mixed: bool = setting(
        "headrace.group.mixed",
        default=False,
        importance="low",
        doc="Whether workers of Kafka Connect may be in the group at the same time, for tests of compatibility. Connectors and tasks are then "
        "divided one by one, and what is given to a worker of headrace in part is FAILED there.",
    )
    connect_protocol: str = setting(
        default="sessioned",
        importance="low",
        one_of=("eager", "compatible", "sessioned"),
        ignore_case=True,
        doc="The group's protocol: the first of those that this worker offers, which are it and those before it in this list; the group speaks "
        "the last that all know. compatible and sessioned leave running connectors alone when the work is divided; eager stops all first.",
    )

    inter_worker_key_ttl_ms: int = setting(
        default=3_600_000,
        importance="low",
        at_least=0,
        doc="How long a key is used to sign requests between workers until the group's leader makes another one, in milliseconds; "
        "0 keeps it for ever.",
    )
    inter_worker_key_generation_algorithm: str = setting(
        default=_HMAC,
        importance="low",
        valid=_algorithm,
        doc="The algorithm of these keys, by Java's name.",
    )
    inter_worker_key_size: int | None = setting(
        default=None,
        importance="low",
        doc="The size of these keys in bits. Not set means what Java makes by default: 256 with HmacSHA256.",
    )
    inter_worker_signature_algorithm: str = setting(
        default=_HMAC,
        importance="low",
        valid=_algorithm,
        doc="The algorithm of this worker's signatures, by Java's name.",
    )
    inter_worker_verification_algorithms: tuple[str, ...] = setting(
        default=(_HMAC,),
        importance="low",
        valid=_algorithms,
        doc="The algorithms of the signatures that this worker takes, inter.worker.signature.algorithm among them.",
    )

    def check(self) -> Iterator[Problem]:
        """Check the group's times as well."""
        yield from super().check()
        yield from self._signature_problems()
        topics = {
            "config.storage.topic": self.config_storage_topic,
            "headrace.changes.storage.topic": self.changes_topic,
            "offset.storage.topic": self.offset_storage_topic,
            "status.storage.topic": self.status_storage_topic,
        }
        for key, name in topics.items():
            first = next(each for each, other in topics.items() if other == name)
            if first != key:
                yield key, f"It is {name}, as {first} is: each needs a topic of its own."
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            yield (
                "heartbeat.interval.ms",
                f"It must be less than session.timeout.ms ({self.session_timeout_ms}), at most a third of it as a rule.",
            )
        elif _LEASE in self.originals and self.lease_ms > self.longest_lease_ms:
            yield (
                _LEASE,
                (
                    f"It must be at most session.timeout.ms less heartbeat.interval.ms ({self.longest_lease_ms}), so that the "
                    "tasks of a worker that is cut off end before others begin them. Leave it out for that."
                ),
            )
        if self.relinquish_timeout_ms >= self.rebalance_timeout_ms:
            yield (
                "headrace.relinquish.timeout.ms",
                f"It must be less than rebalance.timeout.ms ({self.rebalance_timeout_ms}), after which the group goes on without the worker.",
            )

    def _signature_problems(self) -> Iterator[Problem]:
        algorithm, bits = self.inter_worker_key_generation_algorithm, self.inter_worker_key_size
        problem = None if bits is None else key_size_problem(algorithm, bits)
        if problem is not None:
            yield (
                "inter.worker.key.size",
                f"Unable to create key generator with algorithm {algorithm} and key size {bits}: {problem}",
            )
        if self.inter_worker_signature_algorithm not in self.inter_worker_verification_algorithms:
            yield (
                "inter.worker.signature.algorithm",
                (
                    f"Invalid value {self.inter_worker_signature_algorithm} for configuration inter.worker.signature.algorithm: "
                    "Signature algorithm must be present in inter.worker.verification.algorithms list"
                ),
            )

    @property
    def longest_lease_ms(self) -> int:
        """How long a task may go on without an answer at most, in milliseconds."""
        return self.session_timeout_ms - self.heartbeat_interval_ms

    @property
    def lease_seconds(self) -> float:
        """As a worker that stands alone, but a task never outlives the session of its worker."""
        return min(super().lease_seconds, self.longest_lease_ms / 1e3)

    @property
    def fences_leaders(self) -> bool:
        """Whether the leader writes configurations in transactions, which fence an earlier leader (KIP-618)."""
        return self.exactly_once_source_support != "disabled"

    @property
    def changes_topic(self) -> str:
        """The topic of the history of offsets."""
        return self.changes_storage_topic or f"{self.config_storage_topic}-changes"
