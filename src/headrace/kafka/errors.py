"""Errors of Kafka: translates the client library's into ours, the only module that does, and the refusal of one record."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException

from headrace.connect.errors import (
    ConnectError,
    FencedError,
    ReplanError,
    RetriableError,
    TaskFailedError,
    TransactionTimedOutError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What was being done when the client failed, for the message and for distinguishing causes.

    *doing* completes "Kafka refused …", such as ``writing to``. *open_seconds* is how long the
    transaction has been open by a monotonic clock, ``None`` without one; *timeout_seconds* is its
    ``transaction.timeout.ms``. *owner* is who was doing it, such as ``task c-0``. *was_away* says that the
    broker could not be reached at some time, or accepted nothing for half of the transaction's time-out.
    """

    doing: str = "a request"
    topic: str | None = None
    transactional_id: str | None = None
    owner: str | None = None
    open_seconds: float | None = None
    timeout_seconds: float | None = None
    was_away: bool = False


class LateRefusalError(TaskFailedError):
    """One of the records that were handed over before is refused, by the broker, or because its topic takes no such record any more.

    *topic*, *key_bytes* and *value_bytes* (``None`` for null) identify it, for a layer that knows where the
    records came from; *reason* and *advice* are the parts of the message. A sender that knows the record's *place* reports it, too: the
    number of the records with which it was handed over, and its row in them.
    """

    def __init__(
        self,
        reason: str,
        *,
        advice: str,
        topic: str,
        key_bytes: int | None,
        value_bytes: int | None,
        place: tuple[int, int] | None = None,
    ) -> None:
        self.reason = reason
        self.advice = advice
        self.topic = topic
        self.key_bytes = key_bytes
        self.value_bytes = value_bytes
        self.place = place
        super().__init__(f"{reason} {advice}")


def kafka_error(error: KafkaError | KafkaException) -> KafkaError:
    """The error inside *error*, or *error* itself."""
    if isinstance(error, KafkaError):
        return error
    inner: object = error.args[0] if error.args else None
    return inner if isinstance(inner, KafkaError) else KafkaError(KafkaError.UNKNOWN, str(error))


def translated(error: KafkaError | KafkaException, context: Context) -> ConnectError:
    """Our error for *error*; its type says what the caller is to do next."""
    inner = kafka_error(error)
    if inner.name() in _FENCED:
        return fenced(context)
    if inner.name() == "_MSG_TIMED_OUT" and _outlived(context):
        return timed_out(context)
    if inner.name() in _ADVICE:
        return TaskFailedError(f"{_sentence(inner, context)} {_ADVICE[inner.name()]}")
    if is_retriable(inner):
        return RetriableError(f"{_sentence(inner, context)} This may be temporary.")
    if inner.fatal():
        return ReplanError(
            f"{_sentence(inner, context)} The producer is no longer usable and is replaced."
        )
    return TaskFailedError(_sentence(inner, context))


def advice_for(error: KafkaError) -> str:
    """What to do about *error*, in one sentence; empty when there is nothing to add to its reason."""
    return _ADVICE.get(error.name(), "")


def is_retriable(error: KafkaError) -> bool:
    """Whether a retry may succeed, if need be after the open transaction has been aborted."""
    return error.retriable() or error.txn_requires_abort() or error.name() in _RETRIABLE


def fenced(context: Context) -> ConnectError:
    """The error for a producer that the broker takes for replaced: a newer one, or the end of its time, which looks the same."""
    if _outlived(context):
        return timed_out(context)
    return FencedError(
        f"A newer producer has taken over the transactional id {context.transactional_id!r}, "
        f"so {_owner(context)} no longer writes. Nothing is lost: the newer one reads the stored offsets."
    )


def _outlived(context: Context) -> bool:
    if context.open_seconds is None or context.timeout_seconds is None:
        return False
    return context.open_seconds > context.timeout_seconds


def timed_out(context: Context) -> TransactionTimedOutError:
    """The error for a transaction that stayed open too long, with Connect's advice."""
    owner = _owner(context)
    return TransactionTimedOutError(
        _TIMED_OUT.format(owner=owner[0].upper() + owner[1:]),
        open_seconds=context.open_seconds or 0.0,
        timeout_seconds=context.timeout_seconds or 0.0,
        in_outage=context.was_away,
    )


def _owner(context: Context) -> str:
    return f"the {context.owner}" if context.owner else "this task"


def _sentence(error: KafkaError, context: Context) -> str:
    target = f" topic '{context.topic}'" if context.topic else ""
    text = error.str().rstrip(".")
    return f"Kafka refused {context.doing}{target}: {text} ({error.name()})."


_FENCED = frozenset({"_FENCED", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"})

# Java's retriable exceptions, as far as librdkafka knows them, except those about missing or recreated
# topics, which have advice of their own.
_RETRIABLE = frozenset(
    {
        "_TIMED_OUT",
        "_TIMED_OUT_QUEUE",
        "_MSG_TIMED_OUT",
        "_TRANSPORT",
        "_ALL_BROKERS_DOWN",
        "_RESOLVE",
        "_RETRY",
        "_WAIT_COORD",
        "_WAIT_CACHE",
        "_INTR",
        # The client's error for an admin request about a topic of which no partition has a leader at the moment.
        "_NOENT",
        "BROKER_NOT_AVAILABLE",
        "CONCURRENT_TRANSACTIONS",
        "COORDINATOR_LOAD_IN_PROGRESS",
        "COORDINATOR_NOT_AVAILABLE",
        "ELIGIBLE_LEADERS_NOT_AVAILABLE",
        "FENCED_LEADER_EPOCH",
        "FETCH_SESSION_ID_NOT_FOUND",
        "INVALID_FETCH_SESSION_EPOCH",
        "KAFKA_STORAGE_ERROR",
        "LEADER_NOT_AVAILABLE",
        "LISTENER_NOT_FOUND",
        "NETWORK_EXCEPTION",
        "NOT_CONTROLLER",
        "NOT_COORDINATOR",
        "NOT_ENOUGH_REPLICAS",
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        "NOT_LEADER_FOR_PARTITION",
        "OFFSET_NOT_AVAILABLE",
        "PREFERRED_LEADER_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE",
        "REQUEST_TIMED_OUT",
        "THROTTLING_QUOTA_EXCEEDED",
        "TRANSACTION_ABORTABLE",
        "UNKNOWN_LEADER_EPOCH",
        "UNSTABLE_OFFSET_COMMIT",
    }
)

_CHECK_LOGIN = "Check security.protocol and the sasl.* settings of this client."
_MISSING_TOPIC = "Create the topic, or let the broker create topics (auto.create.topics.enable)."
_INVALID = "The topic's settings do not allow it: a compacted topic needs keys, and message.timestamp.* limits timestamps."
_TOO_LARGE = (
    "Raise max.message.bytes of the topic; it bounds the records of one request together, so lowering "
    "batch.size and max.request.size of this producer may also help."
)

_ADVICE: dict[str, str] = {
    "TOPIC_AUTHORIZATION_FAILED": "Grant this client Write and Describe on the topic.",
    "CLUSTER_AUTHORIZATION_FAILED": "Grant this client IdempotentWrite on the cluster.",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": (
        "Grant this client Write and Describe on its transactional ids."
    ),
    "GROUP_AUTHORIZATION_FAILED": "Grant this client Read on the group.",
    "TOPIC_EXCEPTION": "Use letters, digits, '.', '_' and '-' in topic names, at most 249.",
    "UNKNOWN_TOPIC_OR_PART": _MISSING_TOPIC,
    "_UNKNOWN_TOPIC": _MISSING_TOPIC,
    "_UNKNOWN_PARTITION": "Choose a partition that the topic has.",
    "MSG_SIZE_TOO_LARGE": _TOO_LARGE,
    "RECORD_LIST_TOO_LARGE": _TOO_LARGE,
    "INVALID_RECORD": _INVALID,
    "_INVALID_DIFFERENT_RECORD": _INVALID,
    "INVALID_TIMESTAMP": "Set message.timestamp.type or the bounds of the topic, or no timestamp.",
    "POLICY_VIOLATION": "Ask the cluster's administrator which policy this violates.",
    "INVALID_TRANSACTION_TIMEOUT": (
        "Lower transaction.timeout.ms of this producer below the broker's transaction.max.timeout.ms."
    ),
    "UNSUPPORTED_COMPRESSION_TYPE": "Choose another compression.type.",
    "UNSUPPORTED_VERSION": "Use a broker of version 2.5 or newer.",
    "INVALID_REPLICATION_FACTOR": "Choose a replication factor that the cluster supports.",
    "SASL_AUTHENTICATION_FAILED": _CHECK_LOGIN,
    "_AUTHENTICATION": _CHECK_LOGIN,
    "UNSUPPORTED_SASL_MECHANISM": "Choose another sasl.mechanism.",
}

_TIMED_OUT = (
    "{owner} was unable to finish writing records to Kafka before its producer transaction expired. "
    "It may be necessary to reconfigure this connector in order for it to run healthily with exactly-once "
    "support. Options for this include: tune the connector's producer configuration for higher throughput, "
    "increase the transaction timeout for the connector's producers, decrease the offset commit interval "
    "(if using interval-based transaction boundaries), or use the 'poll' transaction boundary (if the "
    "connector is not already configured to use it)."
)
