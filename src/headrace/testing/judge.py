"""Counts what is really in Kafka, with another client library than the one that wrote it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from kafka.consumer.fetcher import ConsumerRecord

from kafka import KafkaConsumer, TopicPartition  # pyright: ignore[reportAttributeAccessIssue]

_WAIT_MS = 20
# Long enough for a busy machine; a reader that has reached the end returns at once.
_SECONDS = 180.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How many records were expected and found; *lost*, *twice* and *foreign* count single records."""

    expected: int
    found: int
    lost: int
    twice: int
    foreign: int

    @property
    def exactly_once(self) -> bool:
        """Whether every record is there once, and nothing else."""
        return not (self.lost or self.twice or self.foreign)


def judged(
    bootstrap: str,
    topic: str,
    expected: Iterable[bytes],
    *,
    form: Callable[[bytes], bytes] = bytes,
) -> Verdict:
    """Compare *topic*'s committed values, each normalised by *form*, with the *expected* ones.

    As multisets; null counts as no bytes.
    """
    wanted = Counter(expected)
    found = Counter(form(record.value or b"") for record in committed_records(bootstrap, topic))
    extra = found - wanted
    foreign = sum(count for value, count in extra.items() if value not in wanted)
    return Verdict(
        expected=wanted.total(),
        found=found.total(),
        lost=(wanted - found).total(),
        twice=extra.total() - foreign,
        foreign=foreign,
    )


def committed_records(
    bootstrap: str, *topics: str, seconds: float = _SECONDS
) -> Iterator[ConsumerRecord]:
    """Every record of *topics* that a ``read_committed`` consumer sees, those of a partition in their order.

    Raises ``TimeoutError`` when the end is not reached in time, because a transaction is still open.
    """
    with closing(_consumer(bootstrap)) as consumer:
        partitions = _partitions(consumer, *topics)
        consumer.assign(partitions)
        ends: dict[TopicPartition, int] = {}
        deadline = time.monotonic() + seconds
        while not _is_read(consumer, partitions, ends):
            if time.monotonic() > deadline:
                named = ", ".join(topics)
                raise TimeoutError(f"{named} was not read to its end: a transaction is still open.")
            for records in consumer.poll(timeout_ms=_WAIT_MS).values():
                yield from records


def _is_read(
    consumer: KafkaConsumer,
    partitions: Iterable[TopicPartition],
    ends: dict[TopicPartition, int],
) -> bool:
    """Whether each partition was read to where its log ended at its first fetch; *ends* keeps that."""
    for each in partitions:
        # The end of the log, not of its committed part: records after an open transaction count, too.
        end = consumer.highwater(each)
        if end is not None:
            ends.setdefault(each, end)
    return all(each in ends and (consumer.position(each) or 0) >= ends[each] for each in partitions)


@contextmanager
def committed_ends(bootstrap: str) -> Generator[Callable[[str], int]]:
    """A function that returns how far a ``read_committed`` consumer may read a topic, transaction markers included.

    0 for a topic that does not exist. All calls use one consumer, which asks only for the ends of the topic's partitions.
    """
    consumer = _consumer(bootstrap)

    def end(topic: str) -> int:
        partitions = _partitions(consumer, topic)
        return sum(consumer.end_offsets(partitions).values()) if partitions else 0

    with closing(consumer):
        yield end


def _consumer(bootstrap: str) -> KafkaConsumer:
    return KafkaConsumer(
        bootstrap_servers=bootstrap,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        group_id=None,
        max_poll_records=20_000,
        fetch_max_bytes=64 * 1024 * 1024,
        max_partition_fetch_bytes=16 * 1024 * 1024,
        # The broker waits at most this long before it answers that there is nothing more.
        fetch_max_wait_ms=_WAIT_MS,
        retry_backoff_ms=_WAIT_MS,
    )


def _partitions(consumer: KafkaConsumer, *topics: str) -> list[TopicPartition]:
    return [
        TopicPartition(topic, number)
        for topic in topics
        for number in consumer.partitions_for_topic(topic) or ()
    ]
