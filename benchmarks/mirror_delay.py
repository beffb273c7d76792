"""Records that are written to a topic at a steady rate, and when a reader of its copy has them."""

from __future__ import annotations

import struct
import threading
import time
from types import TracebackType
from typing import Final, NamedTuple, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.contender import BenchmarkError

_TICK_SECONDS: Final = 0.01
_NUMBER_AND_TIME: Final = struct.Struct(">qd")


class PacedWriter:
    """Writes *rate* records a second, of *size* bytes, to partition 0 of *topic*, on a thread of its own.

    Each has its number, which begins at 0, and when it was written.
    """

    def __init__(self, bootstrap: str, topic: str, *, rate: int, size: int) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True}
        )
        self._topic = topic
        self._rate = rate
        self._padding = bytes(size - _NUMBER_AND_TIME.size)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        self._producer.flush()

    def _write(self) -> None:
        began, written = time.monotonic(), 0
        while not self._over.wait(_TICK_SECONDS):
            due = int((time.monotonic() - began) * self._rate)
            while written < due:
                value = _NUMBER_AND_TIME.pack(written, time.time()) + self._padding
                self._producer.produce(self._topic, value, partition=0)
                written += 1
            self._producer.poll(0)


class Arrival(NamedTuple):
    """A record that was written and read, in seconds since the epoch."""

    written: float
    read: float

    @property
    def delay(self) -> float:
        """Seconds."""
        return self.read - self.written


class CopyReader:
    """Reads the committed records of partition 0 of a copy. One thread owns it.

    Raises BenchmarkError for a record that is missing, or there twice, as soon as it is noticed.
    """

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "benchmark",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "fetch.queue.backoff.ms": 5,
                # The topic is there only when the first record is copied.
                "topic.metadata.refresh.interval.ms": 200,
                "allow.auto.create.topics": False,
                "log_level": 0,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, 0)])
        self._expected = 0

    def read(self, seconds: float) -> list[Arrival]:
        """What arrives within *seconds*."""
        arrived = list[Arrival]()
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            arrived += self._next(left)
        return arrived

    def first(self, seconds: float) -> list[Arrival]:
        """The next that arrive; raises BenchmarkError when none has within *seconds*."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if arrived := self._next(min(left, 1.0)):
                return arrived
        raise BenchmarkError(f"No record was copied within {seconds:g} s.")

    def close(self) -> None:
        """Release the connections."""
        self._consumer.close()

    def _next(self, seconds: float) -> list[Arrival]:
        # It waits for as many as it is asked for.
        first = self._consumer.poll(seconds)
        if first is None:
            return []
        now, arrived = time.time(), list[Arrival]()
        for message in (first, *self._consumer.consume(10_000, 0)):
            value = message.value()
            if message.error() is not None or not isinstance(value, bytes):
                # The topic or its leader may not be there yet.
                continue
            number, written = _NUMBER_AND_TIME.unpack_from(value)
            if number != self._expected:
                raise BenchmarkError(f"Record {number} was read instead of {self._expected}.")
            self._expected += 1
            arrived.append(Arrival(written, now))
        return arrived
