"""About how many bytes there are to read: the estimate, and the samples that it is made from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from doubles.scripted_broker import ScriptedCluster
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka import connection, record_sizes
from headrace.spark.kafka.record_sizes import RecordSizes, sampled
from headrace.spark.kafka.subscription import checked_options

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


class Samples:
    """Answers with *means*, and keeps what it was asked for."""

    def __init__(self, **means: float) -> None:
        self.means = {TopicPartition("t", int(key[1:])): mean for key, mean in means.items()}
        self.asked: list[Mapping[TopicPartition, int]] = []

    def __call__(self, begins: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, float]:
        """A sample."""
        self.asked.append(begins)
        return {place: self.means[place] for place in begins if place in self.means}


def test_the_bytes_of_a_batch_are_those_of_its_partitions() -> None:
    """Each with its own mean, in proportion to its backlog."""
    sizes = RecordSizes(Samples(t0=100.0, t1=10.0))

    assert 55 == sizes.offsets_in(100 * 50 + 10 * 5, {T0: (0, 100), T1: (50, 60)})


def test_all_is_read_where_it_is_not_too_much() -> None:
    """And at least one record, however large it is."""
    sizes = RecordSizes(Samples(t0=100.0))

    assert 10 == sizes.offsets_in(10_000, {T0: (0, 10)})
    assert 1 == sizes.offsets_in(5, {T0: (0, 10)})


def test_a_partition_without_a_sample_is_as_the_others() -> None:
    """Its leader may be away for the moment."""
    sizes = RecordSizes(Samples(t0=100.0))

    assert 10 == sizes.offsets_in(1_000, {T0: (0, 50), T1: (0, 50)})


def test_records_are_not_taken_for_tiny_where_there_is_no_sample() -> None:
    """About a kilobyte is usual: a limit of 10 MB must not let millions pass."""
    sizes = RecordSizes(Samples())

    assert 9_765 == sizes.offsets_in(10_000_000, {T0: (0, 50_000_000)})


def test_few_samples_are_taken_at_a_time() -> None:
    """First ones where they begin now, and a few of the oldest again."""
    begins = {TopicPartition("t", number): (number, 1_000) for number in range(70)}
    samples = Samples(**{f"t{number}": 1.0 for number in range(70)})
    sizes = RecordSizes(samples)
    for _ in range(3):
        sizes.offsets_in(1_000, begins)

    assert [50, 30, 10] == [len(each) for each in samples.asked]
    assert {T0: 0, T1: 1} == {place: samples.asked[1][place] for place in (T0, T1)}
    assert T0 not in samples.asked[2]


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    """A broker with three partitions, of which the last one is empty."""
    with ScriptedCluster(T0, T1, T2) as made:
        for place, count in ((T0, 2), (T1, 10)):
            made.append(place, 0, count)
        yield made
    for each in connection._idle.values():
        each.close()
        each._cluster.close()
    connection._idle.clear()
    connection._connected.cache_clear()


def test_a_sample_is_the_mean_of_the_first_batches(
    scripted: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the partitions that have one; the others are not waited for long, nor what is lost."""
    monkeypatch.setattr(record_sizes, "_SAMPLE_SECONDS", 1.0)
    host, port = scripted.brokers[1].address
    given = {"kafka.bootstrap.servers": f"{host}:{port}", "subscribe": "t"}
    length = len(scripted.logs[T0][0][2])
    gone = TopicPartition("t", 9)
    means = sampled(checked_options(given), {T0: 0, T1: 5, T2: 0, gone: 0})

    assert {T0: length / 2, T1: length / 10} == means
