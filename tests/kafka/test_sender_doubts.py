"""Rows through our own sender, against brokers that lose, delay and refuse: each is there once, or the sender says that it does not know."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from doubles.producer_brokers import (
    Fault,
    ProducerCluster,
    late,
    lost,
    silent,
    throttled,
    undone,
    with_code,
)
from doubles.scripted_broker import DescribeConfigsResponse, ProduceResponse, Received
from headrace.connect.errors import ConnectError, RetriableError
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.sender import EncodedRecords
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.error_codes import named
from headrace.kafka.wire.producer import WireProducer
from headrace.kafka.wire.producer_settings import ProducerWireSettings
from headrace.kafka.wire.transaction_state import IllegalTransitionError
from headrace.kafka.wire.written_topics import WrittenTopics
from headrace.kafka.wire_sender import Watched, WireSender, batch_settings
from waiting import until

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
VERSIONS = pytest.mark.parametrize("version", [1, 2])
UNANSWERED = {
    "done, connection closed": lost,
    "not done, connection closed": undone,
    "no answer": silent,
    "done later": late,
}
Opening = Callable[..., WireSender]


@contextmanager
def playing(
    *places: TopicPartition, version: int = 2, nodes: int = 1, batch_rows: int = 1
) -> Generator[tuple[ProducerCluster, Opening]]:
    """Brokers, and a maker of open senders for them, which put so many rows into a batch."""
    made = list[WireSender]()
    given = {"bootstrap.servers": "127.0.0.1:1", "batch.num.messages": f"{batch_rows}"}
    settings = batch_settings(producer_config(given).settings)
    opening = partial(Deadline.after, 20.0, time.monotonic)

    with ProducerCluster(*places, version=version, nodes=nodes) as brokers:
        brokers.brokers.scripts["DescribeConfigs"] = DescribeConfigsResponse(
            throttle_time_ms=0, results=[]
        )

        def opened(transactional_id: str | None = "id") -> WireSender:
            cluster = brokers.brokers.cluster(request_seconds=0.3)
            producer = WireProducer(
                cluster,
                transactional_id=transactional_id,
                settings=ProducerWireSettings(request_seconds=0.3, max_request_bytes=100),
                owner="task c-0",
            )
            topics = WrittenTopics(
                cluster, seconds=20, creation_seconds=1, waiting=lambda _what: None
            )
            sender = WireSender(
                cluster, producer, topics, settings=settings, opening=opening, waits=Watched(None)
            )
            made.append(sender)
            sender.open()
            return sender

        try:
            yield brokers, opened
        finally:
            for each in made:
                each.close()


def rows(numbers: Sequence[int], partition: int = 0) -> EncodedRecords:
    """Records that tests find again in a log."""
    values = pa.array([b"<%d>" % each for each in numbers], pa.binary())
    return EncodedRecords(topic="t", values=values, partition=partition)


def send_and_commit(sender: WireSender, numbers: Sequence[int]) -> None:
    """In a transaction of their own."""
    sender.begin()
    sender.send(rows(numbers))
    sender.commit()


def texts(numbers: Sequence[int]) -> list[str]:
    """Their labels."""
    return [f"{each}" for each in numbers]


@pytest.mark.parametrize("fault", UNANSWERED.values(), ids=UNANSWERED)
def test_at_least_once_rows_without_an_answer_are_sent_again_and_are_there_once(
    fault: Fault,
) -> None:
    """With their sequences and in their order, in each partition."""
    with playing(T0, T1) as (brokers, opened):
        sender = opened(None)
        brokers.faults["Produce"] = [None, None, fault, None, fault]
        sender.send(rows(range(15)))
        sender.send(rows(range(15), partition=1))
        brokers.go_on.set()
        sender.flush()
        places = sender.send_each(rows([15, 16]))

        assert texts(range(17)) == brokers.labels(T0, "plain")
        assert texts(range(15)) == brokers.labels(T1, "plain")
        assert [15, 16] == [each.offset for each in places]


def test_at_least_once_no_row_waits_for_the_next_call() -> None:
    """A task may poll for long. Some of them can only be sent when those before are acknowledged."""
    with playing(T0) as (brokers, opened):
        sender = opened(None)
        sender.send(rows(range(20)))

        until(lambda: texts(range(20)) == brokers.labels(T0, "plain"), seconds=20)


@pytest.mark.parametrize("step", ["Produce", "EndTxn"])
@pytest.mark.parametrize("fault", UNANSWERED.values(), ids=UNANSWERED)
@VERSIONS
def test_exactly_once_a_lost_answer_ends_the_sender_and_the_next_one_goes_on(
    version: int, fault: Fault, step: str
) -> None:
    """Nothing follows in the transaction. Whoever opens the id again reads what is committed, and writes the rest."""
    with playing(T0, version=version) as (brokers, opened):
        sender = opened()
        send_and_commit(sender, [0])
        brokers.faults[step] = [fault]
        with pytest.raises(RetriableError):
            send_and_commit(sender, [1, 2, 3])
        before = brokers.received()
        for call in (sender.flush, sender.begin, lambda: sender.send(rows([9]))):
            with pytest.raises(ConnectError):
                call()
        sender.abort()
        assert before == brokers.received()

        following = opened()
        brokers.go_on.set()
        if fault is late:
            assert brokers.came_late.wait(10)
        if "1" not in brokers.labels(T0, "committed"):
            send_and_commit(following, [1, 2, 3])

        assert texts(range(4)) == brokers.labels(T0, "committed")
        assert [] == brokers.labels(T0, "open")


def test_rows_that_the_broker_has_already_are_acknowledged_without_a_place() -> None:
    """It says that, and not where (DUPLICATE_SEQUENCE_NUMBER)."""
    with playing(T0) as (brokers, opened):
        sender = opened(None)
        sender.send_each(rows([0]))
        brokers.faults["Produce"] = [with_code(named("DUPLICATE_SEQUENCE_NUMBER").code)]
        places = sender.send_each(rows([1]))
        sender.flush()

        assert [-1] == [each.offset for each in places]


@VERSIONS
def test_a_gap_fails_the_transaction_and_the_next_one_succeeds(version: int) -> None:
    """The broker has lost records, or the producer (OUT_OF_ORDER_SEQUENCE_NUMBER)."""
    with playing(T0, version=version) as (brokers, opened):
        sender = opened()
        brokers.faults["Produce"] = [with_code(named("OUT_OF_ORDER_SEQUENCE_NUMBER").code)]
        sender.begin()
        sender.send(rows([0, 1]))
        with pytest.raises(RetriableError, match="OUT_OF_ORDER"):
            sender.flush()
        sender.abort()
        send_and_commit(sender, [0, 1])

        assert texts([0, 1]) == brokers.labels(T0, "committed")


@pytest.mark.parametrize("transactional_id", ["id", None])
@VERSIONS
def test_rows_follow_their_leader(version: int, transactional_id: str | None) -> None:
    """While they are being sent; the old leader has refused what it did not take."""
    with playing(T0, version=version, nodes=2) as (brokers, opened):
        sender = opened(transactional_id)
        sender.begin()
        for leader, number in zip(itertools.cycle([1, 2]), range(0, 40, 10), strict=False):
            brokers.brokers.leaders[T0] = leader
            sender.send(rows(range(number, number + 10)))
        sender.commit()

        state = "plain" if transactional_id is None else "committed"
        assert texts(range(40)) == brokers.labels(T0, state)


@pytest.mark.parametrize("transactional_id", ["id", None])
def test_a_quota_is_waited_out(transactional_id: str | None) -> None:
    """Although that takes longer than an answer may: what is sent meanwhile is read after it."""
    seconds = 0.8
    with playing(T0) as (brokers, opened):
        sender = opened(transactional_id)
        brokers.faults["Produce"] = [None, throttled(seconds)]
        sender.begin()
        began = time.monotonic()
        sender.send(rows(range(20)))
        sender.commit()

        state = "plain" if transactional_id is None else "committed"
        assert texts(range(20)) == brokers.labels(T0, state)
        assert time.monotonic() - began >= seconds


@VERSIONS
def test_a_refused_record_is_told_and_the_next_transaction_has_the_others(version: int) -> None:
    """By its size: it was handed over long ago."""
    with playing(T0, version=version) as (brokers, opened):
        sender = opened()
        refused = with_code(named("INVALID_RECORD").code)
        brokers.faults["Produce"] = [None, None, refused]
        sender.begin()
        sender.send(rows([0, 1, 222, 3]))
        with pytest.raises(LateRefusalError, match=r"5 B.*'t': INVALID_RECORD"):
            sender.flush()
        sender.abort()
        send_and_commit(sender, [0, 1, 3])

        assert texts([0, 1, 3]) == brokers.labels(T0, "committed")


def counts(brokers: ProducerCluster, place: TopicPartition) -> list[int]:
    """How many records the batches of a log have."""
    return [each.count for each in brokers.logs[place] if each.state == "committed"]


def test_rows_of_many_calls_share_batches_in_a_transaction() -> None:
    """Those for another partition come after them, and what goes before the end is no longer waited for than that."""
    with playing(T0, T1, batch_rows=1_000) as (brokers, opened):
        sender = opened()
        sender.begin()
        for number in range(50):
            sender.send(rows([number, 100 + number]))
        assert [] == brokers.received("Produce")
        sender.send(rows([777], partition=1))
        sender.send(rows([888]))
        sender.commit()
        send_and_commit(sender, [999])

        assert texts([0, 888, 999]) == brokers.labels(T0, "committed")
        assert [100, 1, 1] == counts(brokers, T0)
        assert texts([777]) == brokers.labels(T1, "committed")


def test_what_cannot_wait_comes_after_the_rows_that_do() -> None:
    """Rows with headers, and rows whose places in Kafka are asked for."""
    with playing(T0, batch_rows=1_000) as (brokers, opened):
        sender = opened()
        sender.begin()
        sender.send(rows([1]))
        sender.send(replace(rows([2]), headers=[[("h", b"x")]]))
        sender.send(rows([3]))
        (place,) = sender.send_each(rows([4]))
        sender.send(rows([5]))
        sender.commit()

        assert texts([1, 2, 3, 4, 5]) == brokers.labels(T0, "committed")
        assert 3 == place.offset


def test_at_least_once_nothing_waits_for_later_rows() -> None:
    """Readers may have them at once."""
    with playing(T0, batch_rows=1_000) as (brokers, opened):
        sender = opened(None)
        for number in range(3):
            sender.send(rows([number]))
        until(lambda: brokers.labels(T0, "plain") == texts([0, 1, 2]))


def test_rows_that_wait_are_gone_with_their_transaction() -> None:
    """They are not in the next one."""
    with playing(T0, batch_rows=1_000) as (brokers, opened):
        sender = opened()
        sender.begin()
        sender.send(rows([1, 2]))
        sender.abort()
        send_and_commit(sender, [3])

        assert texts([3]) == brokers.labels(T0, "committed")
        assert [1] == counts(brokers, T0)


def test_a_call_after_a_failure_raises_it_also_when_its_rows_would_wait() -> None:
    """As the first call after it is to."""
    with playing(T0, batch_rows=1_000) as (brokers, opened):
        brokers.faults["Produce"] = [with_code(named("INVALID_RECORD").code)]
        sender = opened()
        sender.begin()
        sender.send(rows([1]))
        for _ in range(2):
            with pytest.raises(LateRefusalError):
                sender.flush()
        with pytest.raises(LateRefusalError):
            sender.send(rows([2]))
        with pytest.raises(IllegalTransitionError):
            opened("other").send(rows([1]))


def test_of_rows_of_many_calls_the_refused_one_is_told_with_its_call() -> None:
    """The broker names its place in the batch."""
    with playing(T0, batch_rows=1_000) as (brokers, opened):

        def refused(
            cluster: ProducerCluster, received: Received, act: Callable[[], object]
        ) -> object:
            answer = with_code(named("INVALID_RECORD").code)(cluster, received, act)
            error = ProduceResponse.TopicProduceResponse.PartitionProduceResponse.BatchIndexAndErrorMessage
            told = answer.responses[0].partition_responses[0]
            told.record_errors = [error(batch_index=3, batch_index_error_message="No.")]
            return answer

        brokers.faults["Produce"] = [refused]
        sender = opened()
        sender.begin()
        sender.send(replace(rows([1, 2]), number=5))
        sender.send(replace(rows([3, 4]), number=6))
        with pytest.raises(LateRefusalError) as caught:
            sender.commit()

    assert (6, 1) == caught.value.place


def test_what_a_topic_no_longer_takes_is_refused_until_the_transaction_is_aborted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its rows had been handed over; without them there is no commit."""
    limit = [1_000]
    monkeypatch.setattr(WrittenTopics, "max_bytes", lambda _topics, _topic: limit[0])
    with playing(T0, T1, batch_rows=1_000) as (brokers, opened):
        sender = opened()
        sender.begin()
        sender.send(replace(rows([1]), number=8))
        limit[0] = 70
        for attempt in (sender.commit, sender.flush, lambda: sender.send(rows([2], partition=1))):
            with pytest.raises(LateRefusalError, match="the topic takes 70") as caught:
                attempt()
            assert (8, 0) == caught.value.place
        sender.abort()
        limit[0] = 1_000
        send_and_commit(sender, [3])

        assert texts([3]) == brokers.labels(T0, "committed")
