"""Batches that are parts of one buffer, and what of it stays in memory."""

from __future__ import annotations

import gc
import weakref

from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.partition_queue import ProducerBatch
from headrace.kafka.wire.shared_buffers import SharedBuffers


class Buffer(bytearray):
    """One whose end can be observed."""


def halves(buffer: Buffer) -> list[ProducerBatch]:
    """Two batches that share *buffer*."""
    middle = len(buffer) // 2
    parts = [memoryview(buffer)[:middle], memoryview(buffer)[middle:]]
    return [
        ProducerBatch(number, TopicPartition("t", number), UnstampedBatch(part, 1), len(part), 0.0)
        for number, part in enumerate(parts)
    ]


def test_a_batch_that_others_have_overtaken_keeps_its_own_bytes_alone() -> None:
    """Those that are not old share on."""
    shared = SharedBuffers(100)
    first, second = Buffer(b"a" * 20 + b"b" * 20), Buffer(b"c" * 80)
    is_there = weakref.ref(first), weakref.ref(second)
    stuck, young = halves(first)[1], halves(second)[1]
    shared.add(stuck)
    shared.add(young)
    assert stuck.batch.data.obj is first  # pyright: ignore[reportAttributeAccessIssue]
    del first, second
    for number in range(2):
        lone = UnstampedBatch(bytes(40), 1)
        shared.add(ProducerBatch(number, TopicPartition("t", 9), lone, 40, 0.0))
    gc.collect()

    assert b"b" * 20 == stuck.batch.data
    assert (True, False) == tuple(each() is None for each in is_there)


def test_what_was_acknowledged_is_not_kept() -> None:
    """Not until so much was handed over after it, either."""
    shared = SharedBuffers(1 << 30)
    buffer = Buffer(b"a" * 40)
    is_there = weakref.ref(buffer)
    first, second = halves(buffer)
    shared.add(first)
    shared.add(second)
    del first, second, buffer
    gc.collect()

    assert is_there() is None


def test_a_batch_with_a_buffer_of_its_own_is_left_as_it_is() -> None:
    """It would be copied for nothing."""
    shared = SharedBuffers(10)
    own = memoryview(Buffer(b"a" * 40))
    batch = ProducerBatch(0, TopicPartition("t", 0), UnstampedBatch(own, 1), 40, 0.0)
    shared.add(batch)
    for each in halves(Buffer(b"b" * 80)):
        shared.add(each)

    assert batch.batch.data is own
