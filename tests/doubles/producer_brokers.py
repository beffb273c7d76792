"""Brokers that keep Kafka's rules for producers, and answer as a test says: wrongly, late, or not at all."""

from __future__ import annotations

import re
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from doubles.scripted_broker import (
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    InitProducerIdResponse,
    OffsetCommitResponse,
    ProduceResponse,
    Received,
    ScriptedCluster,
    TxnOffsetCommitResponse,
)
from headrace.kafka.topic_partition import TopicPartition

_PRODUCER: Final = struct.Struct(">qhii")
_PRODUCER_AT: Final = 43
_ATTRIBUTES_AT: Final = 22
_RECORDS_AT: Final = 61
_TRANSACTIONAL: Final = 0x10
_LABEL: Final = re.compile(rb"<([\w. -]+)>")

NOT_LEADER, OUT_OF_ORDER, INVALID_EPOCH, INVALID_STATE, FENCED = 6, 45, 47, 48, 90

Fault = Callable[["ProducerCluster", Received, Callable[[], Any]], Any]
"""What a broker does with a request instead of acting on it and answering, which it can do by the function."""


def with_code(code: int) -> Fault:
    """Answers with an error, and does nothing."""
    return lambda cluster, received, _act: cluster.error(received, code)


def throttled(seconds: float) -> Fault:
    """Does it and answers at once, with a quota's pause, in which it reads nothing more of the client."""

    def fault(cluster: ProducerCluster, _received: Received, act: Callable[[], Any]) -> Any:  # noqa: ANN401
        answer = act()
        answer.throttle_time_ms = int(seconds * 1000)
        cluster.reads_from = time.monotonic() + seconds
        return answer

    return fault


def lost(cluster: ProducerCluster, received: Received, act: Callable[[], Any]) -> None:
    """Does it, and closes the connection instead of answering."""
    act()


def undone(cluster: ProducerCluster, received: Received, act: Callable[[], Any]) -> None:
    """Closes the connection, and does nothing."""


def silent(cluster: ProducerCluster, received: Received, act: Callable[[], Any]) -> None:
    """Does nothing and answers nothing, and keeps the connection until the test says that it ends."""
    cluster.go_on.wait(30)


def late(cluster: ProducerCluster, received: Received, act: Callable[[], Any]) -> None:
    """As ``silent``; but does it at last."""
    cluster.go_on.wait(30)
    act()
    cluster.came_late.set()


@dataclass(slots=True)
class Appended:
    """A batch in a log; *state* is ``open`` until its transaction ends, ``plain`` without one."""

    label: str
    producer: tuple[int, int]
    sequence: int
    count: int
    state: str
    offset: int


@dataclass(slots=True)
class Transaction:
    """What a coordinator knows of a transactional id."""

    producer_id: int
    epoch: int = -1
    is_open: bool = False
    places: set[TopicPartition] = field(default_factory=set[TopicPartition])
    groups: set[str] = field(default_factory=set[str])
    pending: dict[tuple[str, TopicPartition], tuple[int, str | None]] = field(
        default_factory=dict[tuple[str, TopicPartition], tuple[int, str | None]]
    )
    previous: tuple[int, bool] | None = None
    """The epoch and the outcome of the last end, on the second version."""


class ProducerCluster:
    """Brokers whose logs take each sequence once and in order, and whose transactions are of *version*.

    *faults* maps the name of a request to what happens with the next ones of that name, ``None`` for nothing unusual.
    """

    def __init__(
        self,
        *places: TopicPartition,
        version: int = 2,
        nodes: int = 1,
        versions: Mapping[int, tuple[int, int]] | None = None,
    ) -> None:
        self.version = version
        self.brokers = ScriptedCluster(
            *places, nodes=nodes, versions=versions, features={"transaction.version": version}
        )
        self.faults: dict[str, list[Fault | None]] = {}
        self.logs: dict[TopicPartition, list[Appended]] = {each: [] for each in places}
        self.offsets: dict[tuple[str, TopicPartition], tuple[int, str | None]] = {}
        self.transactions: dict[str, Transaction] = {}
        self.go_on = threading.Event()
        self.came_late = threading.Event()
        self.reads_from = 0.0
        """Until when, by the monotonic clock, a quota keeps the brokers from reading requests."""
        self._lock = threading.RLock()
        self._producer_ids = 0
        handlers: dict[str, Callable[[int, Received], Any]] = {
            "AddOffsetsToTxn": self._add_offsets,
            "AddPartitionsToTxn": self._add_partitions,
            "EndTxn": self._end,
            "InitProducerId": self._init,
            "OffsetCommit": self._commit,
            "Produce": self._produce,
            "TxnOffsetCommit": self._commit_in_transaction,
        }
        self.brokers.scripts |= {
            name: self._faulty(name, handler) for name, handler in handlers.items()
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.go_on.set()
        for each in self.brokers.brokers.values():
            each.stop()

    def labels(self, place: TopicPartition, *states: str) -> list[str]:
        """The batches of a log that are in one of *states*, by what their records hold in angle brackets."""
        with self._lock:
            return [each.label for each in self.logs[place] if each.state in states]

    def received(self, *names: str) -> list[str]:
        """The names of the requests that have come so far, of these only if there are any."""
        found = [each.name for broker in self.brokers.brokers.values() for each in broker.received]
        return [each for each in found if not names or each in names]

    def take(self, transactional_id: str) -> None:
        """Another producer takes the id."""
        with self._lock:
            self._abort_open(self.transactions[transactional_id])

    def error(self, received: Received, code: int) -> Any:  # noqa: ANN401 (the library has no common type)
        """The answer to a request that has this error in all its parts."""
        message, none = received.message, Transaction(-1)
        answers: dict[str, Callable[[], Any]] = {
            "Produce": lambda: self._produce_answer(message, lambda _place, _batch: (code, -1)),
            "AddPartitionsToTxn": lambda: self._added_answer(message, code),
            "TxnOffsetCommit": lambda: _committed_answer(TxnOffsetCommitResponse, message, code),
            "OffsetCommit": lambda: _committed_answer(OffsetCommitResponse, message, code),
            "InitProducerId": lambda: _identity(-1, -1, code),
            "EndTxn": lambda: _ended(none, code),
            "AddOffsetsToTxn": lambda: AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=code),
        }
        return answers[received.name]()

    # ------------------------------------------------------------- requests

    def _faulty(self, name: str, handler: Callable[[int, Received], Any]) -> Any:  # noqa: ANN401
        def script(node: int, received: Received) -> Any:  # noqa: ANN401
            def act() -> Any:  # noqa: ANN401
                with self._lock:
                    return handler(node, received)

            time.sleep(max(0.0, self.reads_from - time.monotonic()))
            with self._lock:
                faults = self.faults.get(name)
                fault = faults.pop(0) if faults else None
            return act() if fault is None else fault(self, received, act)

        return script

    def _init(self, _node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message
        if message.transactional_id is None:
            self._producer_ids += 1
            return _identity(self._producer_ids, 0)
        known = self.transactions.get(message.transactional_id)
        if known is None:
            self._producer_ids += 1
            known = self.transactions[message.transactional_id] = Transaction(self._producer_ids)
        own = getattr(message, "producer_id", -1), getattr(message, "producer_epoch", -1)
        current = known.producer_id, known.epoch
        if own[0] >= 0 and own != current:
            is_repeated = known.previous is not None and own == (known.producer_id, known.epoch - 1)
            return _identity(*current) if is_repeated else _identity(-1, -1, FENCED)
        self._abort_open(known)
        return _identity(known.producer_id, known.epoch)

    def _abort_open(self, known: Transaction) -> None:
        self._finish(known, is_commit=False)
        known.epoch += 1
        known.previous = None

    def _add_partitions(self, _node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message
        known, code = self._owned(
            message.v3_and_below_transactional_id,
            message.v3_and_below_producer_id,
            message.v3_and_below_producer_epoch,
        )
        if not code:
            known.is_open = True
            known.places |= {
                TopicPartition(topic.name, number)
                for topic in message.v3_and_below_topics
                for number in topic.partitions
            }
        return self._added_answer(message, code)

    def _add_offsets(self, _node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message
        known, code = self._owned(
            message.transactional_id, message.producer_id, message.producer_epoch
        )
        if not code:
            known.is_open = True
            known.groups.add(message.group_id)
        return AddOffsetsToTxnResponse(throttle_time_ms=0, error_code=code)

    def _commit_in_transaction(self, _node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message
        known, code = self._owned(
            message.transactional_id, message.producer_id, message.producer_epoch
        )
        if not code and received.version >= 5:
            known.is_open = True
            known.groups.add(message.group_id)
        if not code and not (known.is_open and message.group_id in known.groups):
            code = INVALID_STATE
        if not code:
            known.pending |= {
                (message.group_id, TopicPartition(topic.name, each.partition_index)): (
                    each.committed_offset,
                    each.committed_metadata,
                )
                for topic in message.topics
                for each in topic.partitions
            }
        return _committed_answer(TxnOffsetCommitResponse, message, code)

    def _commit(self, _node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message
        self.offsets |= {
            (message.group_id, TopicPartition(topic.name, each.partition_index)): (
                each.committed_offset,
                each.committed_metadata,
            )
            for topic in message.topics
            for each in topic.partitions
        }
        return _committed_answer(OffsetCommitResponse, message, 0)

    def _end(self, _node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message
        known = self.transactions[message.transactional_id]
        own, is_second = (message.producer_id, message.producer_epoch), received.version >= 5
        if is_second and known.previous == (message.producer_epoch, message.committed):
            return _ended(known, 0)
        if own != (known.producer_id, known.epoch):
            return _ended(known, FENCED)
        if not known.is_open and not (is_second and not message.committed):
            return _ended(known, INVALID_STATE)
        self._finish(known, is_commit=message.committed)
        if is_second:
            known.previous = known.epoch, message.committed
            known.epoch += 1
        return _ended(known, 0)

    def _finish(self, known: Transaction, *, is_commit: bool) -> None:
        for log in self.logs.values():
            for each in log:
                if each.state == "open" and each.producer[0] == known.producer_id:
                    each.state = "committed" if is_commit else "aborted"
        if is_commit:
            self.offsets |= known.pending
        known.is_open = False
        known.places.clear()
        known.groups.clear()
        known.pending.clear()

    def _owned(self, name: str, producer_id: int, epoch: int) -> tuple[Transaction, int]:
        known = self.transactions[name]
        is_ours = (producer_id, epoch) == (known.producer_id, known.epoch)
        return known, 0 if is_ours else FENCED

    def _produce(self, node: int, received: Received) -> Any:  # noqa: ANN401
        message = received.message

        def append(place: TopicPartition, batch: bytes) -> tuple[int, int]:
            if self.brokers.leaders.get(place) != node:
                return NOT_LEADER, -1
            known = None
            if message.transactional_id is not None:
                known = self.transactions[message.transactional_id]
            return self._append(place, batch, known, joins=received.version >= 12)

        return self._produce_answer(message, append)

    def _append(
        self, place: TopicPartition, batch: bytes, known: Transaction | None, *, joins: bool
    ) -> tuple[int, int]:
        """Error code and base offset."""
        producer_id, epoch, sequence, count = _PRODUCER.unpack_from(batch, _PRODUCER_AT)
        if known is not None:
            if (producer_id, epoch) != (known.producer_id, known.epoch):
                return INVALID_EPOCH, -1
            assert batch[_ATTRIBUTES_AT] & _TRANSACTIONAL
            if joins:
                known.is_open = True
                known.places.add(place)
            if not known.is_open or place not in known.places:
                return INVALID_STATE, -1
        log = self.logs[place]
        own = [each for each in log if each.producer == (producer_id, epoch)]
        for each in own[-5:]:
            if (each.sequence, each.count) == (sequence, count):
                return 0, each.offset
        # Of a producer that it does not know, a broker takes any sequence.
        if own and sequence != (own[-1].sequence + own[-1].count) % 2**31:
            return OUT_OF_ORDER, -1
        offset = log[-1].offset + log[-1].count if log else 0
        found = _LABEL.search(batch, _RECORDS_AT)
        label = found[1].decode() if found else ""
        state = "plain" if known is None else "open"
        log.append(Appended(label, (producer_id, epoch), sequence, count, state, offset))
        return 0, offset

    def _produce_answer(
        self,
        message: Any,  # noqa: ANN401
        append: Callable[[TopicPartition, bytes], tuple[int, int]],
    ) -> Any:  # noqa: ANN401
        topic_class = ProduceResponse.TopicProduceResponse
        topics = []
        for topic in message.topic_data:
            results = []
            for each in topic.partition_data:
                code, offset = append(TopicPartition(topic.name, each.index), bytes(each.records))
                results.append(
                    topic_class.PartitionProduceResponse(
                        index=each.index, error_code=code, base_offset=offset
                    )
                )
            topics.append(topic_class(name=topic.name, partition_responses=results))
        return ProduceResponse(throttle_time_ms=0, responses=topics)

    def _added_answer(self, message: Any, code: int) -> Any:  # noqa: ANN401
        topic_class = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult
        result_class = topic_class.AddPartitionsToTxnPartitionResult
        return AddPartitionsToTxnResponse(
            throttle_time_ms=0,
            results_by_topic_v3_and_below=[
                topic_class(
                    name=topic.name,
                    results_by_partition=[
                        result_class(partition_index=number, partition_error_code=code)
                        for number in topic.partitions
                    ],
                )
                for topic in message.v3_and_below_topics
            ],
        )


def _identity(producer_id: int, epoch: int, code: int = 0) -> Any:  # noqa: ANN401
    return InitProducerIdResponse(
        throttle_time_ms=0, error_code=code, producer_id=producer_id, producer_epoch=epoch
    )


def _ended(known: Transaction, code: int) -> Any:  # noqa: ANN401
    return EndTxnResponse(
        throttle_time_ms=0,
        error_code=code,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
    )


def _committed_answer(kind: Any, message: Any, code: int) -> Any:  # noqa: ANN401
    name = f"{kind.__name__}Topic"
    topic_class = getattr(kind, name)
    partition_class = getattr(topic_class, f"{kind.__name__}Partition")
    return kind(
        throttle_time_ms=0,
        topics=[
            topic_class(
                name=topic.name,
                partitions=[
                    partition_class(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )
