"""Topics that become more, and are written into on and on: plainly, and in transactions of which some are aborted."""

from __future__ import annotations

import random
import threading
from collections.abc import Generator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Producer

from spark.kafka.tables import Topics

_SECONDS = 300.0
_SENT_AT_ONCE, _PAUSE_SECONDS = 120, 0.3


class Records:
    """Writes on and on into partitions that become more: plainly, and in transactions of which some are aborted."""

    def __init__(self, topics: Topics, chance: random.Random) -> None:
        self._topics, self._chance = topics, random.Random(chance.random())
        self._partitions = list[tuple[str, int]]()
        self._ended = threading.Event()
        self.acknowledged = list[str]()

    def create(self, partitions: int) -> None:
        """One more topic."""
        topic = self._topics.create(f"t{len({topic for topic, _ in self._partitions})}", partitions)
        self._partitions += [(topic, number) for number in range(partitions)]

    def grow(self) -> None:
        """One more partition of some topic, or one more topic."""
        if self._chance.random() < 0.3:
            self.create(2)
            return
        topic, _ = self._chance.choice(self._partitions)
        number = sum(topic == other for other, _ in self._partitions)
        self._topics.grow(topic, number + 1)
        self._partitions.append((topic, number))

    @property
    def names(self) -> list[str]:
        """The topics."""
        return sorted({topic for topic, _ in self._partitions})

    @contextmanager
    def written(self) -> Generator[None]:
        """While this lasts, records are written."""
        thread = threading.Thread(target=self._write, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join(_SECONDS)

    def _write(self) -> None:
        settings = {"enable.idempotence": True, "topic.metadata.refresh.interval.ms": 500}
        plain = self._topics.producer(**settings)
        transactional: Producer | None = None
        while not self._ended.wait(_PAUSE_SECONDS):
            topic, partition = self._chance.choice(self._partitions)
            values = self._topics.values(topic, self._chance.randrange(1, _SENT_AT_ONCE), partition)
            try:
                if self._chance.random() < 0.5:
                    self._send(plain, topic, partition, values)
                    continue
                transactional = transactional or self._begun()
                self._topics.produce(transactional, topic, values, partition)
                if self._chance.random() < 0.3:
                    transactional.abort_transaction(30)
                else:
                    transactional.commit_transaction(30)
                    self.acknowledged += values
                transactional.begin_transaction()
            except KafkaException:
                # What became of it is the other client's to say; another producer ends what is open.
                transactional = None
        self._begun().abort_transaction(30)

    def _send(self, producer: Producer, topic: str, partition: int, values: list[str]) -> None:
        def note(error: KafkaError | None, message: object) -> None:
            if error is None:
                self.acknowledged.append(message.value().decode())  # pyright: ignore[reportAttributeAccessIssue, reportUnknownArgumentType, reportUnknownMemberType]

        for value in values:
            producer.produce(topic, value=value, partition=partition, on_delivery=note)
        producer.flush(60)

    def _begun(self) -> Producer:
        while True:
            try:
                return self._topics.transactional("writer")
            except KafkaException:
                continue
