"""What a task reads of its ranges, on brokers that a test scripts, and what is kept for the next task."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder

from doubles.scripted_broker import FetchResponse, Received, ScriptedCluster
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka import connection
from headrace.spark.kafka.planning import OffsetRange
from headrace.spark.kafka.reading import DataLossError, KafkaInputPartition, RangeReader
from headrace.spark.kafka.subscription import checked_options

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    """One broker with two partitions of twenty records, in batches of two, of which an answer has one."""
    with ScriptedCluster(T0, T1) as made:
        for place in (T0, T1):
            made.logs[place] = [(at, at + 2, batch(at, 2)) for at in range(0, 20, 2)]
            made.bounds[place] = (0, 20)
        made.max_batches = 1
        yield made
    for each in connection._idle.values():
        each.close()
        each._cluster.close()
    connection._idle.clear()
    connection._connected.cache_clear()


def batch(base_offset: int, count: int) -> bytes:
    """A record batch, with its offset as the value of each record."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000,
    )
    for number in range(count):
        value = str(base_offset + number).encode()
        builder.append(number, timestamp=1, key=None, value=value, headers=[])
    built = bytes(builder.build())
    # The checksum does not cover the base offset.
    return base_offset.to_bytes(8, "big") + built[8:]


def reader(scripted: ScriptedCluster, **more: str) -> RangeReader:
    """The reader of a query of these brokers."""
    host, port = scripted.brokers[1].address
    given = {
        "kafka.bootstrap.servers": f"{host}:{port}",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": "5000",
        "kafka.fetch.max.wait.ms": "10",
    }
    return RangeReader(checked_options(given | more))


def task(
    scripted: ScriptedCluster, *ranges: tuple[TopicPartition, int, int]
) -> KafkaInputPartition:
    """A task that reads these."""
    return KafkaInputPartition(tuple(OffsetRange(*each, scripted.ids["t"]) for each in ranges))


def offsets(batches: Iterator[pa.RecordBatch]) -> list[tuple[int, int]]:
    """Partition and offset of every record."""
    return [
        (partition.as_py(), offset.as_py())
        for each in batches
        for partition, offset in zip(each["partition"], each["offset"], strict=True)
    ]


def of(place: TopicPartition, start: int, end: int) -> list[tuple[int, int]]:
    """All records between."""
    return [(place.partition, offset) for offset in range(start, end)]


def test_a_range_is_read_from_its_start_to_its_end(scripted: ScriptedCluster) -> None:
    """Although batches begin before the one and end after the other; with several, each in order."""
    found = offsets(reader(scripted).read(task(scripted, (T0, 3, 8), (T1, 0, 5))))

    assert of(T0, 3, 8) + of(T1, 0, 5) == sorted(found)


def test_the_next_task_uses_the_connections_again(scripted: ScriptedCluster) -> None:
    """And nothing of the one before; also when that one was not read to its end."""
    read = reader(scripted).read
    first = read(task(scripted, (T0, 0, 20)))
    next(first)
    first.close()  # pyright: ignore[reportAttributeAccessIssue] (it is a generator)
    asked = len(scripted.brokers[1].named("ApiVersions"))

    assert of(T0, 6, 11) == offsets(read(task(scripted, (T0, 6, 11))))
    assert asked == len(scripted.brokers[1].named("ApiVersions"))


def test_a_task_that_is_given_up_late_takes_nothing_from_the_next_one(
    scripted: ScriptedCluster,
) -> None:
    """Its generator may be closed by the collector, while another task reads the same partition."""
    read = reader(scripted).read
    abandoned = read(task(scripted, (T0, 0, 20)))
    next(abandoned)
    second = read(task(scripted, (T0, 6, 20)))
    found = [next(second)]
    abandoned.close()  # pyright: ignore[reportAttributeAccessIssue]
    found += second

    assert of(T0, 6, 20) == offsets(iter(found))
    assert 1 == len(connection._idle)


def test_few_fetchers_are_kept(scripted: ScriptedCluster) -> None:
    """Queries with settings of their own come and go; the connections of the oldest are closed."""
    for number in range(connection._MOST + 3):
        one = reader(scripted, **{"kafka.fetch.max.bytes": str(1_000_000 + number)})
        assert of(T0, 0, 2) == offsets(one.read(task(scripted, (T0, 0, 2))))

    assert connection._MOST == len(connection._idle)


@pytest.mark.parametrize("codes", [[29], [2]], ids=["authorization", "damaged"])
def test_a_range_that_fails_fails_its_task(scripted: ScriptedCluster, codes: list[int]) -> None:
    """Although the rest of the task's ranges has arrived; the next task is not the worse for it."""
    scripted.codes[T0] = codes
    read = reader(scripted).read
    with pytest.raises(TaskFailedError, match="t-0 at offset 0"):
        offsets(read(task(scripted, (T0, 0, 2), (T1, 0, 2))))

    assert of(T0, 0, 2) == offsets(read(task(scripted, (T0, 0, 2))))


def test_records_that_are_gone_fail_the_task_with_their_range(scripted: ScriptedCluster) -> None:
    """All that was deleted before the log's start, up to where the range ends."""
    scripted.codes[T0] = [1]
    scripted.bounds[T0] = (100, 200)

    with pytest.raises(
        DataLossError, match=r"offsets 0 to 9 of t-0 cannot be read.*failOnDataLoss"
    ):
        offsets(reader(scripted).read(task(scripted, (T0, 0, 10), (T1, 0, 2))))


def test_records_that_are_gone_are_logged_by_option(
    scripted: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """What is left of the range is read."""
    scripted.logs[T0] = scripted.logs[T0][2:]
    scripted.codes[T0] = [1]
    scripted.bounds[T0] = (4, 20)
    lenient = reader(scripted, failOnDataLoss="false")

    assert of(T0, 4, 8) == offsets(lenient.read(task(scripted, (T0, 0, 8))))
    assert "The offsets 0 to 3 of t-0 cannot be read" in caplog.text


def test_a_task_says_that_it_was_throttled(
    scripted: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise nobody knows why a query is slow; each task says its own time."""
    plain = scripted.fetch
    times = iter([1_500, 200, 40])

    def throttled(node: int, received: Received) -> FetchResponse:
        answer = plain(node, received)
        answer.throttle_time_ms = next(times, 0)
        return answer

    scripted.scripts["Fetch"] = throttled
    read = reader(scripted).read
    offsets(read(task(scripted, (T0, 0, 4))))
    assert "throttled a task for 1700 ms" in caplog.text
    offsets(read(task(scripted, (T0, 4, 6))))

    assert "throttled a task for 40 ms" in caplog.text


def test_a_task_says_that_nothing_came(scripted: ScriptedCluster) -> None:
    """Rather than end as if there were nothing."""
    scripted.logs[T0] = []
    hasty = reader(scripted, **{"kafka.default.api.timeout.ms": "300"})

    with pytest.raises(RetriableError, match=r"sent nothing for 0\.3 s; t-0 is at offset 5"):
        offsets(hasty.read(task(scripted, (T0, 5, 8))))
