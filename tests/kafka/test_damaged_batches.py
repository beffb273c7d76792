"""A fetched batch whose records contradict each other, on its way to brokers in memory: by the sender, and by a task's writer."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from doubles.copied_positions import GROUP, copied
from doubles.producer_brokers import ProducerCluster
from doubles.scripted_broker import DescribeConfigsResponse
from headrace.connect.encoded import EncodedBatches, EncodedHeader
from headrace.connect.errors import PartitionError
from headrace.kafka.batches.errors import DamagedBatchError
from headrace.kafka.batches.headers import LOG_APPEND_TIME, batch_headers
from headrace.kafka.client_config import producer_config
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire_sender import WireSender, make_wire_sender
from record_batches import ZSTD, Row, batch
from task.loop import Loop, ScriptedTask, both_modes

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("a.t", 0)
# Columns are made of 16,384 rows at a time.
ROWS, WRONG_ROW = 20_000, 15_000
GAP, APPEND_TIME, BEFORE = "gap", "log append time", "starts before the position"
BATCHES = pytest.mark.parametrize("reason", [GAP, APPEND_TIME, BEFORE])


@cache
def lying_batch(reason: str, compression: int) -> bytes:
    """A large batch that is to be rebuilt for a *reason*, in which two records have one offset. Its checksum is right."""
    step = 2 if reason == GAP else 1
    lying = [Row(5 + step * at, 1_000, None, b"v%d" % at) for at in range(ROWS)]
    lying[WRONG_ROW] = lying[WRONG_ROW - 1]
    attributes = LOG_APPEND_TIME if reason == APPEND_TIME else 0
    return batch(lying, compression=compression, attributes=attributes)


def fetched(reason: str, *, compression: int = 0) -> EncodedBatches:
    """A batch of five records and the lying one; only that where reading goes on within it."""
    right = batch([Row(at, 1_000, None, b"v") for at in range(5)])
    made = [right, lying_batch(reason, compression)][reason == BEFORE :]
    headers = [batch_headers(each, SOURCE)[0] for each in made]
    next_offset = headers[-1].last_offset + 1
    return EncodedBatches(
        topic=TARGET.topic,
        partition=TARGET.partition,
        source_partition=copied(),
        data=[memoryview(each) for each in made],
        headers=[
            EncodedHeader(each.base_offset, each.last_offset, each.record_count) for each in headers
        ],
        start=7 if reason == BEFORE else 0,
        next_offset=next_offset,
        offset={"offset": next_offset - 1},
    )


@pytest.fixture
def brokers() -> Iterator[ProducerCluster]:
    """One broker, which has the target, and tells no one what a batch may have there."""
    result = DescribeConfigsResponse.DescribeConfigsResult(
        error_code=29, error_message="", resource_type=2, resource_name=TARGET.topic, configs=[]
    )
    with ProducerCluster(TARGET) as made:
        made.brokers.scripts["DescribeConfigs"] = DescribeConfigsResponse(
            throttle_time_ms=0, results=[result]
        )
        yield made


@pytest.fixture
def senders(brokers: ProducerCluster) -> Iterator[dict[bool, WireSender]]:
    """With a transactional id, and without one."""
    host, port = brokers.brokers.brokers[1].address
    server = {"bootstrap.servers": f"{host}:{port}"}
    made = {
        transactional: make_wire_sender(
            producer_config(server, transactional_id="id" if transactional else None)
        )
        for transactional in (True, False)
    }
    for each in made.values():
        each.open()
    yield made
    for each in made.values():
        each.close()


def written(brokers: ProducerCluster, state: str) -> int:
    """How many records are in the target's log, in this *state* of their transaction."""
    return sum(each.count for each in brokers.logs[TARGET] if each.state == state)


@BATCHES
@pytest.mark.parametrize("compression", [0, ZSTD])
def test_of_a_damaged_batch_nothing_is_handed_over(
    brokers: ProducerCluster, senders: dict[bool, WireSender], reason: str, compression: int
) -> None:
    """However far its records are right: what is committed ends before it."""
    sender, batches = senders[True], fetched(reason, compression=compression)
    sender.begin()

    with pytest.raises(DamagedBatchError, match="the offsets of its records do not") as raised:
        sender.send_batches(batches)

    before = [] if raised.value.before is None else list(raised.value.before.headers)
    assert list(batches.headers[:-1]) == before
    sender.flush()
    assert raised.value.records == written(brokers, "open") == 5 * len(before)


@BATCHES
def test_where_damage_is_tolerated_all_of_its_batch_is_passed_over(
    brokers: ProducerCluster, senders: dict[bool, WireSender], reason: str
) -> None:
    """None of its records is written as well."""
    sender, batches = senders[True], fetched(reason)
    sender.tolerate_refused()
    sender.begin()

    sent = sender.send_batches(batches)

    [refused] = sender.refused()
    first = 7 if reason == BEFORE else 5
    assert (first, batches.next_offset - 1) == (refused.first, refused.last)
    sender.commit()
    assert sent == written(brokers, "committed") == 5 * (len(batches) - 1)


@both_modes
@BATCHES
def test_a_damaged_batch_is_not_copied_again_and_again(
    brokers: ProducerCluster, senders: dict[bool, WireSender], reason: str, *, transactional: bool
) -> None:
    """A partition that cannot be read on is tried again from the position that was committed."""
    task = ScriptedTask()
    first = fetched(reason)
    again = first if reason == BEFORE else first.slice(1, 1)
    loop = Loop(task, group=GROUP, takes_encoded=True, transactional=transactional)
    sender: Any = senders[transactional]
    loop.sender = sender

    for each in (first, again, again):
        task.script[:] = [each]
        with pytest.raises(PartitionError, match=f"at offset 5 of partition {SOURCE} is corrupt"):
            loop.run()

    positions = {place: offset for place, (offset, _) in brokers.offsets.items()}
    assert ({} if reason == BEFORE else {("copies", TARGET): 5}) == positions
    state = "committed" if transactional else "plain"
    assert 5 * (len(first) - 1) == written(brokers, state)
    assert 0 == written(brokers, "open")
