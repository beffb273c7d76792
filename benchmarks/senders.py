"""Both senders alone: values that are there already, to one partition, to twelve and to a thousand by key, exactly once.

What is measured is the CPU time of this process, in which the client library has its threads, too.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.contender import BenchmarkError
from benchmarks.figure import Figure
from benchmarks.measuring import BROKER_SETTINGS
from benchmarks.samples import json_line
from headrace.broker import Broker
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import EncodedRecords, Sender
from headrace.kafka.wire_sender import make_wire_sender

KEY: Final = "senders"
"""Names it on the command line."""

_MAKERS: Final = {"wire": make_wire_sender, "client": make_sender}
# As many as files are read into at a time.
_ROWS: Final = 13_000
_KEYS: Final = 10_000
_BLOCKS_OF_TRANSACTION: Final = 60
_MOST_SECONDS: Final = 120
_PAUSE_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True)
class _Case:
    title: str
    partitions: int
    by_key: bool


_CASES: Final = (
    _Case("one partition", 1, by_key=False),
    _Case("12 partitions, by key", 12, by_key=True),
    _Case("1,000 partitions, by key", 1_000, by_key=True),
)


def sender_figures(folder: Path, records: int, *, rounds: int) -> Sequence[Figure]:
    """CPU seconds per million records of each sender and kind of topic, by the medians of some *rounds*.

    The wire may take as much as the client library. Raises BenchmarkError when records are missing.
    """
    figures = list[Figure]()
    with Broker(folder / "broker", properties=BROKER_SETTINGS) as broker:
        for case in _CASES:
            target = _Target(broker.bootstrap, case)
            # The broker makes what it needs for each partition with the first batch.
            target.seconds("client", 0)
            took = dict[str, list[float]]()
            for _ in range(rounds):
                for sender in _MAKERS:
                    took.setdefault(sender, []).append(target.seconds(sender, records))
            client = statistics.median(took["client"])
            figures += [
                Figure(
                    title=f"headrace.sender={sender}, {case.title}",
                    value=statistics.median(found),
                    unit="CPU s per million",
                    most=client if sender == "wire" else None,
                )
                for sender, found in took.items()
            ]
    return figures


class _Target:
    """A new topic of a *case*, and what is sent to it again and again."""

    def __init__(self, bootstrap: str, case: _Case) -> None:
        self._bootstrap = bootstrap
        self._topic = f"to-{case.partitions}"
        self._places = [TopicPartition(self._topic, number) for number in range(case.partitions)]
        self._sent = self._markers = 0
        admin = AdminClient({"bootstrap.servers": bootstrap})
        new = NewTopic(self._topic, case.partitions, 1)
        admin.create_topics([new])[self._topic].result(60)
        self._wait_for_all()
        lines = [json_line(number).strip().encode() for number in range(_ROWS)]
        keys = [f"key-{number % _KEYS}".encode() for number in range(_ROWS)]
        self._block = EncodedRecords(
            topic=self._topic,
            values=pa.array(lines, pa.binary()),
            keys=pa.array(keys, pa.binary()) if case.by_key else None,
        )

    def seconds(self, sender: str, records: int) -> float:
        """CPU seconds per million of *records* or some more, the sender's start and first transaction left out."""
        config = producer_config({"bootstrap.servers": self._bootstrap}, transactional_id=sender)
        made = _MAKERS[sender](config, owner=sender)
        try:
            made.open()
            # What is learnt of a topic, and the connections to its leaders, belong to the start.
            self._transaction(made, 1)
            before, began = self._sent, time.process_time()
            while self._sent - before < records:
                self._transaction(made, _BLOCKS_OF_TRANSACTION)
            took = time.process_time() - began
        finally:
            made.close()
        self._wait_for_all()
        return took / max(1, self._sent - before) * 1e6

    def _transaction(self, made: Sender, blocks: int) -> None:
        made.begin()
        for _ in range(blocks):
            made.send(self._block)
            self._sent += _ROWS
        made.commit()
        # Each partition gets some of the rows, and so the end of the transaction.
        self._markers += len(self._places)

    def _wait_for_all(self) -> None:
        """Return when the topic has all partitions and records, and the ends of transactions."""
        reader = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "benchmark"})
        until = time.monotonic() + _MOST_SECONDS
        try:
            wanted = self._sent + self._markers
            while (found := self._end(reader)) != wanted:
                if time.monotonic() > until:
                    raise BenchmarkError(f"{self._topic} ends at {found}, and should at {wanted}.")
                time.sleep(_PAUSE_SECONDS)
        finally:
            reader.close()

    def _end(self, reader: Consumer) -> int | None:
        """How many are committed; ``None`` before the broker has all partitions."""
        try:
            return sum(reader.get_watermark_offsets(place, 20)[1] for place in self._places)
        except KafkaException:
            return None
