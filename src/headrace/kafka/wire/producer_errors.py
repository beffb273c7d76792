"""Every error code of Kafka's protocol at every step of a producer, and what the producer does about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Final

from confluent_kafka import KafkaError

from headrace.connect.errors import TaskFailedError
from headrace.kafka.errors import advice_for
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.error_codes import NONE, Reaction, error_code, named


class Step(Enum):
    """What was asked of a broker; the value completes "Kafka refused …"."""

    FIND_COORDINATOR = "the search for a coordinator (FindCoordinator)"
    TAKE = "the start of the producer (InitProducerId)"
    """Without an id and an epoch: whoever has the transactional id loses it."""
    RENEW = "a new epoch (InitProducerId)"
    """With the producer's own id and epoch (KIP-360): it fails when another one has the transactional id."""
    ADD_PARTITIONS = "partitions of a transaction (AddPartitionsToTxn)"
    PRODUCE = "records (Produce)"
    ADD_OFFSETS = "a group of a transaction (AddOffsetsToTxn)"
    COMMIT_OFFSETS = "the offsets of a group (TxnOffsetCommit)"
    END = "the end of a transaction (EndTxn)"


class ProducerReaction(Enum):
    """What a producer does next."""

    RETRY = "retry"
    """Sends the same request to the same broker again, after a pause."""
    REFRESH = "refresh"
    """Asks who leads the partition, or is the coordinator, then sends the same request again."""
    MISSING = "missing"
    """As ``REFRESH``; raised with the advice when some seconds later the topic or partition is still not there."""
    ACCEPTED = "accepted"
    """The broker has these records already."""
    OUT_OF_ORDER = "out of order"
    """Sends the batch again behind earlier ones that are to be sent again; ``ABORT`` when there are none."""
    REFUSED = "refused"
    """The broker has not taken this batch, and never will; others are not affected."""
    ABORT = "abort"
    """The transaction can only be aborted; the next one may succeed."""
    DOUBTFUL = "doubtful"
    """What was done is unknown: the transaction is left, and the producer dropped."""
    FENCED = "fenced"
    """Another producer has the transactional id."""
    TIMED_OUT = "timed out"
    """The broker has ended the transaction, because it was open for too long."""
    FAIL = "fail"
    """Raised with the advice: no retry can resolve it."""


class BatchRefusedError(TaskFailedError):
    """The broker has refused a whole batch, and never will take it. Nothing of it is in the log.

    *place* is its partition, *number* what ``send`` returned for it, *error* Kafka's name of the reason, *detail* the
    broker's own words, or empty. *rows* are the places in the batch of the records that are the reason, as far as the
    broker names them.
    """

    def __init__(
        self,
        place: TopicPartition,
        number: int,
        *,
        error: str,
        advice: str,
        detail: str = "",
        rows: Sequence[int] = (),
    ) -> None:
        self.place = place
        self.number = number
        self.error = error
        self.advice = advice
        self.detail = detail
        self.rows = tuple(rows)
        said = f": {detail.rstrip('.')}" if detail else ""
        super().__init__(
            f"Kafka refused a batch of records for {place}: {error}{said}. {advice}".strip()
        )


_REACT = ProducerReaction
_FOR_READERS: Final[Mapping[Reaction, ProducerReaction]] = {
    Reaction.RETRY: _REACT.RETRY,
    Reaction.REFRESH_METADATA: _REACT.REFRESH,
    Reaction.FIND_COORDINATOR: _REACT.REFRESH,
    Reaction.OUT_OF_RANGE: _REACT.FAIL,
    Reaction.FAIL: _REACT.FAIL,
}
# Of a step with its own producer id and epoch.
_OWNED: Final = {
    "INVALID_PRODUCER_EPOCH": _REACT.FENCED,
    "PRODUCER_FENCED": _REACT.FENCED,
}
# Of a step inside a transaction. The coordinator has forgotten the transactional id, or has not the transaction that the
# producer believes to be in.
_INSIDE: Final = {
    **_OWNED,
    "UNKNOWN_SERVER_ERROR": _REACT.FAIL,
    "INVALID_PRODUCER_ID_MAPPING": _REACT.DOUBTFUL,
    "INVALID_TXN_STATE": _REACT.DOUBTFUL,
    "TRANSACTION_ABORTABLE": _REACT.ABORT,
}
_AT: Final[Mapping[Step, Mapping[str, ProducerReaction]]] = {
    Step.FIND_COORDINATOR: {"UNKNOWN_SERVER_ERROR": _REACT.RETRY},
    Step.TAKE: {
        "UNKNOWN_SERVER_ERROR": _REACT.FAIL,
        # Another producer takes the id at the same moment.
        "INVALID_PRODUCER_EPOCH": _REACT.RETRY,
        "PRODUCER_FENCED": _REACT.RETRY,
    },
    Step.RENEW: {
        **_OWNED,
        "UNKNOWN_SERVER_ERROR": _REACT.FAIL,
        "INVALID_PRODUCER_ID_MAPPING": _REACT.FENCED,
    },
    Step.ADD_PARTITIONS: {
        **_INSIDE,
        "UNKNOWN_TOPIC_OR_PARTITION": _REACT.MISSING,
        # Because of another partition in the same request.
        "OPERATION_NOT_ATTEMPTED": _REACT.RETRY,
    },
    Step.PRODUCE: {
        **_INSIDE,
        "UNKNOWN_TOPIC_OR_PARTITION": _REACT.MISSING,
        "DUPLICATE_SEQUENCE_NUMBER": _REACT.ACCEPTED,
        "OUT_OF_ORDER_SEQUENCE_NUMBER": _REACT.OUT_OF_ORDER,
        # The partition has forgotten the producer, with its oldest records.
        "UNKNOWN_PRODUCER_ID": _REACT.ABORT,
        "CORRUPT_MESSAGE": _REACT.REFUSED,
        "MESSAGE_TOO_LARGE": _REACT.REFUSED,
        "RECORD_LIST_TOO_LARGE": _REACT.REFUSED,
        "INVALID_TIMESTAMP": _REACT.REFUSED,
        "UNSUPPORTED_FOR_MESSAGE_FORMAT": _REACT.REFUSED,
        "UNSUPPORTED_COMPRESSION_TYPE": _REACT.REFUSED,
        "INVALID_RECORD": _REACT.REFUSED,
    },
    Step.ADD_OFFSETS: _INSIDE,
    Step.COMMIT_OFFSETS: {**_INSIDE, "UNKNOWN_TOPIC_OR_PARTITION": _REACT.MISSING},
    Step.END: {
        **_INSIDE,
        "UNKNOWN_SERVER_ERROR": _REACT.DOUBTFUL,
        "TRANSACTION_ABORTABLE": _REACT.DOUBTFUL,
    },
}
_BY_CODE: Final[Mapping[Step, Mapping[int, ProducerReaction]]] = {
    step: {named(name).code: reaction for name, reaction in reactions.items()}
    for step, reactions in _AT.items()
}
# What a step that concerns many partitions does when they are answered differently: the first of these that is among them.
_SEVEREST: Final = (
    _REACT.TIMED_OUT,
    _REACT.FENCED,
    _REACT.DOUBTFUL,
    _REACT.FAIL,
    _REACT.ABORT,
    _REACT.REFUSED,
    _REACT.MISSING,
    _REACT.OUT_OF_ORDER,
    _REACT.REFRESH,
    _REACT.RETRY,
    _REACT.ACCEPTED,
)
_LATE: Final = (_REACT.FENCED, _REACT.DOUBTFUL, _REACT.ABORT)

_BROKER_LOG: Final = "The broker's log says what it could not do."
_ADVICE: Final[Mapping[str, str]] = {
    "UNKNOWN_SERVER_ERROR": _BROKER_LOG,
    "CORRUPT_MESSAGE": "The batch was damaged on its way, or before; its checksum does not match its bytes.",
    "OFFSET_METADATA_TOO_LARGE": "Raise offset.metadata.max.bytes of the brokers.",
    "INVALID_COMMIT_OFFSET_SIZE": "Raise max.message.bytes of the topic __consumer_offsets.",
    "INVALID_REQUIRED_ACKS": "The broker does not accept acks=all.",
    "UNSUPPORTED_COMPRESSION_TYPE": "Choose another compression.type, or a topic whose broker supports it.",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT": "The topic has an old message format; raise its message.format.version.",
}
# Where a partition is named whose offset is committed, and to which nothing is written.
_ADVICE_OF_COMMITS: Final[Mapping[str, str]] = {
    "UNKNOWN_TOPIC_OR_PARTITION": (
        "The topic and the partition whose offset is committed must exist on that cluster; create them."
    ),
    "TOPIC_AUTHORIZATION_FAILED": (
        "Grant this client Read on the topic: Kafka asks for it from whoever commits offsets of its partitions."
    ),
}


def reaction(step: Step, code: int, *, outlived: bool = False) -> ProducerReaction:
    """What to do about *code*, which is not that of success, in an answer at *step*.

    *outlived* says that the transaction has been open for longer than its time-out, by a monotonic clock: what the
    broker then says of another producer is true of its own end of the transaction. A code that is not known fails.
    """
    entry = error_code(code)
    if entry is None:
        raise ValueError(f"{NONE} is the code of success")
    found = _BY_CODE[step].get(code, _FOR_READERS[entry.reaction])
    return _REACT.TIMED_OUT if outlived and found in _LATE else found


def severest(step: Step, codes: Iterable[int], *, outlived: bool = False) -> int | None:
    """The one of *codes*, of an answer about many partitions, that counts; ``None`` when all are those of success."""
    errors = [code for code in codes if code != NONE]
    return min(
        errors,
        key=lambda code: _SEVEREST.index(reaction(step, code, outlived=outlived)),
        default=None,
    )


def error_name(code: int) -> str:
    """Kafka's name of *code*."""
    entry = error_code(code)
    return "NONE" if entry is None else entry.name


def advice(step: Step, code: int) -> str:
    """What a user can do about *code* at *step*, in a sentence; empty when its name says all."""
    name = error_name(code)
    if step is Step.COMMIT_OFFSETS and name in _ADVICE_OF_COMMITS:
        return _ADVICE_OF_COMMITS[name]
    entry = error_code(code)
    own = _ADVICE.get(name) or advice_for(KafkaError(code))
    return own or (entry.advice if entry else "")
