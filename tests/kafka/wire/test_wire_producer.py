"""A producer against brokers that keep Kafka's rules, and answer wrongly, late, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from doubles.producer_brokers import (
    Fault,
    ProducerCluster,
    late,
    lost,
    silent,
    undone,
    with_code,
)
from headrace.connect.errors import (
    ConnectError,
    FencedError,
    ReplanError,
    RetriableError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.error_codes import named
from headrace.kafka.wire.producer import WireProducer
from headrace.kafka.wire.producer_errors import (
    BatchRefusedError,
    ProducerReaction,
    Step,
    error_name,
    reaction,
)
from headrace.kafka.wire.producer_settings import ProducerWireSettings
from headrace.kafka.wire.transaction_state import IllegalTransitionError, ProducerIdentity
from record_batches import Row, batch

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
GROUP = "group"
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def soon(seconds: float = 20) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def labelled(label: str, *, count: int = 1, filler: int = 0) -> UnstampedBatch:
    """A batch that tests find again in a log."""
    value = f"<{label}>".encode() + bytes(filler)
    rows = [Row(offset, 1_700_000_000_000, None, value) for offset in range(count)]
    return UnstampedBatch(batch(rows), count)


def entry(offset: int, place: TopicPartition = T0) -> GroupEntry:
    """An offset to commit."""
    return GroupEntry(place.topic, place.partition, offset, f"at {offset}")


def play(producer: WireProducer, label: str = "a", *, offset: int = 1) -> None:
    """All that a producer does, up to what fails."""
    if producer.identity is None:
        producer.open(soon())
    producer.begin()
    producer.send(T0, labelled(label))
    producer.flush()
    producer.send_group_offsets(GROUP, [entry(offset)])
    producer.commit()


class Stopped(Exception):  # noqa: N818 (what a user raises)
    """The user of a producer does not want to wait any more."""


class Players:
    """Producers of a test, which ends them."""

    def __init__(self, brokers: ProducerCluster) -> None:
        self._brokers = brokers
        self._made: list[tuple[WireProducer, Cluster]] = []

    def producer(
        self,
        transactional_id: str | None = "id",
        *,
        waiting: Callable[[str], None] = lambda _what: None,
        transaction_ms: int = 60_000,
        **settings: float,
    ) -> WireProducer:
        """One that is not open yet."""
        cluster = self._brokers.brokers.cluster(
            request_seconds=settings.get("request_seconds", 5.0)
        )
        made = WireProducer(
            cluster,
            transactional_id=transactional_id,
            settings=ProducerWireSettings(**settings),  # pyright: ignore[reportArgumentType]
            owner="task c-0",
            waiting=waiting,
            transaction_ms=transaction_ms,
        )
        self._made.append((made, cluster))
        return made

    def opened(self, transactional_id: str | None = "id", **settings: float) -> WireProducer:
        """One that is open."""
        made = self.producer(transactional_id, **settings)  # pyright: ignore[reportArgumentType]
        made.open(soon())
        return made

    def close(self) -> None:
        """End them all."""
        for producer, cluster in self._made:
            producer.close()
            cluster.close()


@contextmanager
def playing(
    *places: TopicPartition, version: int = 2, nodes: int = 1
) -> Iterator[tuple[ProducerCluster, Players]]:
    """Brokers, and producers for them."""
    with ProducerCluster(*places, version=version, nodes=nodes) as brokers:
        players = Players(brokers)
        try:
            yield brokers, players
        finally:
            players.close()


def written_again(brokers: ProducerCluster, players: Players, label: str) -> bool:
    """What is done after a failure: another producer is opened, and only then is it read what is committed.

    Returns whether the record had to be written again.
    """
    producer = players.opened()
    brokers.go_on.set()
    is_missing = brokers.offsets[GROUP, T0] != (2, "at 2")
    if is_missing:
        producer.begin()
        producer.send(T0, labelled(label))
        producer.send_group_offsets(GROUP, [entry(2)])
        producer.commit()
    return is_missing


@VERSIONS
def test_a_transaction_has_records_of_many_partitions_and_offsets(version: int) -> None:
    """And is there as a whole."""
    with playing(T0, T1, U0, version=version, nodes=2) as (brokers, players):
        brokers.brokers.leaders[U0] = 2
        producer = players.opened()
        producer.begin()
        numbers = [
            producer.send(place, labelled(f"{place}.{each}"))
            for each in range(3)
            for place in (T0, T1, U0)
        ]
        producer.flush()
        before = brokers.labels(U0, "open")
        producer.send_group_offsets(GROUP, [entry(7), entry(8, U0)])
        producer.commit()

        assert ["u-0.0", "u-0.1", "u-0.2"] == before == brokers.labels(U0, "committed")
        assert [0, 0, 0, 1, 1, 1, 2, 2, 2] == [producer.base_offset(each) for each in numbers]
        assert {(GROUP, T0): (7, "at 7"), (GROUP, U0): (8, "at 8")} == brokers.offsets


@VERSIONS
def test_transactions_follow_on_each_other(version: int) -> None:
    """Aborted ones leave nothing."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened()
        for number, end in enumerate([producer.commit, producer.abort] * 3):
            producer.begin()
            producer.send(T0, labelled(f"{number}"))
            producer.flush()
            producer.send_group_offsets(GROUP, [entry(number)])
            end()

        assert ["0", "2", "4"] == brokers.labels(T0, "committed")
        assert {(GROUP, T0): (4, "at 4")} == brokers.offsets


def test_the_first_version_names_its_partitions_and_groups() -> None:
    """Once each."""
    with playing(T0, T1, version=1) as (brokers, players):
        producer = players.opened()
        producer.begin()
        for each in range(6):
            producer.send((T0, T1)[each % 2], labelled(f"{each}"))
        producer.flush()
        producer.send_group_offsets(GROUP, [entry(1)])
        producer.send_group_offsets(GROUP, [entry(2)])
        producer.commit()
        names = ("AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn")

        assert ["AddPartitionsToTxn", "AddOffsetsToTxn", *["TxnOffsetCommit"] * 2, "EndTxn"] == (
            brokers.received(*names)
        )


def test_the_second_version_names_none_of_them() -> None:
    """They join by themselves, and the epoch rises."""
    with playing(T0) as (brokers, players):
        producer = players.opened()
        epochs = list[int]()
        for _ in range(2):
            producer.begin()
            producer.send(T0, labelled("a"))
            producer.send_group_offsets(GROUP, [entry(1)])
            producer.commit()
            assert producer.identity is not None
            epochs.append(producer.identity.epoch)

        assert [1, 2] == epochs
        assert [] == brokers.received("AddPartitionsToTxn", "AddOffsetsToTxn")


@VERSIONS
@pytest.mark.parametrize("end", ["commit", "abort"])
def test_a_transaction_without_anything_asks_no_broker(version: int, end: str) -> None:
    """There is nothing to end, and a broker would refuse it."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened()
        for _ in range(2):
            producer.begin()
            getattr(producer, end)()

        assert [] == brokers.received("EndTxn")


def test_an_idempotent_producer_has_no_transactions() -> None:
    """What would begin and end one does nothing."""
    with playing(T0) as (brokers, players):
        producer = players.opened(None)
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.commit()
        producer.abort()
        producer.send_group_offsets(GROUP, [entry(3)])

        assert ["a"] == brokers.labels(T0, "plain")
        assert {(GROUP, T0): (3, "at 3")} == brokers.offsets
        assert [] == brokers.received("EndTxn", "TxnOffsetCommit", "FindCoordinator")[1:]


def test_many_batches_of_a_partition_stay_in_order() -> None:
    """Whatever is in flight, and whoever else gets some."""
    with playing(T0, T1, nodes=2) as (brokers, players):
        brokers.brokers.leaders[T1] = 2
        producer = players.opened(max_request_bytes=400)
        producer.begin()
        for each in range(200):
            producer.send((T0, T1)[each % 2], labelled(f"{each}", count=1 + each % 3))
        producer.commit()

        assert [f"{each}" for each in range(0, 200, 2)] == brokers.labels(T0, "committed")
        assert [f"{each}" for each in range(1, 200, 2)] == brokers.labels(T1, "committed")


@pytest.mark.parametrize(("partitions", "sizes"), [(100, [100]), (250, [100, 100, 50])])
def test_small_batches_of_many_partitions_share_requests(partitions: int, sizes: list[int]) -> None:
    """Those that are handed over while others are in flight; of 100 at most, as a broker makes files for the first batch of each."""
    places = [TopicPartition("t", number) for number in range(partitions)]
    with playing(*places) as (brokers, players):
        producer = players.opened()
        producer.begin()
        for each in places:
            producer.send(each, labelled("a"))
        producer.commit()

        requests = [
            each.message
            for broker in brokers.brokers.brokers.values()
            for each in broker.received
            if each.name == "Produce"
        ]
        assert sizes == [len(each.topic_data[0].partition_data) for each in requests]
        assert all(["a"] == brokers.labels(each, "committed") for each in places)


@pytest.mark.parametrize(("buffer_bytes", "bound"), [(5_000, 5_000), (1 << 30, 6_000)])
def test_bytes_in_flight_are_bounded(buffer_bytes: int, bound: int) -> None:
    """``send`` waits for room, also for a batch that is larger than the bound; whatever is allowed, no more than keeps leaders busy."""
    with playing(T0) as (brokers, players):
        producer = players.opened(
            buffer_bytes=buffer_bytes, max_request_bytes=1_000, most_in_flight=3
        )
        producer.begin()
        most = 0
        for each in range(20):
            producer.send(T0, labelled(f"{each}", filler=1_500))
            most = max(most, producer._delivery.nbytes)
        producer.send(T0, labelled("large", filler=9_000))
        producer.commit()

        assert most <= bound
        assert 21 == len(brokers.labels(T0, "committed"))


def test_the_identity_may_come_from_elsewhere() -> None:
    """Then the broker is not asked for one."""
    with playing(T0) as (brokers, players):
        driver = players.opened()
        assert driver.identity is not None
        producer = players.producer()
        producer.open(soon(), identity=driver.identity)
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.commit()

        assert ["a"] == brokers.labels(T0, "committed")
        assert 1 == len(brokers.received("InitProducerId"))


@VERSIONS
def test_an_identity_that_came_from_elsewhere_is_used_once(version: int) -> None:
    """After what was not answered the producer goes on by InitProducerId with its own id and epoch."""
    with playing(T0, version=version) as (brokers, players):
        given = players.opened().identity
        producer = players.producer()
        producer.open(soon(), identity=given)
        brokers.faults["Produce"] = [lost]
        producer.begin()
        producer.send(T0, labelled("a"))
        with pytest.raises(RetriableError):
            producer.flush()
        producer.open(soon(), identity=given)
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.commit()
        inits = [
            each.message
            for each in brokers.brokers.brokers[1].received
            if each.name == "InitProducerId"
        ]

        assert ["a"] == brokers.labels(T0, "committed") == brokers.labels(T0, "aborted")
        assert given == (inits[-1].producer_id, inits[-1].producer_epoch)
        assert 2 == len(inits)


# ----------------------------------------------------------------- doubt


UNANSWERED = {
    "done, connection closed": lost,
    "not done, connection closed": undone,
    "no answer": silent,
    "done later": late,
}


IN_TRANSACTIONS = [
    ("AddPartitionsToTxn", 1),
    ("AddOffsetsToTxn", 1),
    *((name, version) for name in ("Produce", "TxnOffsetCommit", "EndTxn") for version in (1, 2)),
]


@pytest.mark.parametrize("fault", UNANSWERED.values(), ids=UNANSWERED)
@pytest.mark.parametrize(("name", "version"), IN_TRANSACTIONS)
def test_nothing_follows_on_what_was_not_answered(name: str, fault: Fault, version: int) -> None:
    """The transaction is neither ended nor gone on with; the next producer aborts it, and everything is there once."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened(request_seconds=0.3)
        brokers.faults[name] = [None, fault]
        producer.begin()
        producer.send(T0, labelled("first"))
        producer.send_group_offsets(GROUP, [entry(1)])
        producer.commit()
        before = len(brokers.received())
        with pytest.raises(RetriableError) as raised:
            play(producer, "second", offset=2)
        asked = brokers.received()[before:]
        with pytest.raises(RetriableError):
            producer.begin()
        producer.abort()
        producer.close()
        is_written_again = written_again(brokers, players, "second")
        if fault is late:
            assert brokers.came_late.wait(10)

        assert name in str(raised.value)
        assert [name] == asked[asked.index(name) :]
        assert ["first", "second"] == brokers.labels(T0, "committed")
        assert is_written_again is not (name == "EndTxn" and fault is lost)
        assert [] == brokers.labels(T0, "open")


@VERSIONS
def test_the_same_producer_goes_on_with_its_own_id_and_epoch(version: int) -> None:
    """Whatever was open is aborted."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened()
        before = producer.identity
        brokers.faults["Produce"] = [None, lost]
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.flush()
        producer.send(T0, labelled("b"))
        with pytest.raises(RetriableError):
            producer.flush()
        producer.open(soon())
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.send(T0, labelled("b"))
        producer.commit()
        inits = [
            each.message
            for each in brokers.brokers.brokers[1].received
            if each.name == "InitProducerId"
        ]

        assert ["a", "b"] == brokers.labels(T0, "committed") == brokers.labels(T0, "aborted")
        assert before == (inits[1].producer_id, inits[1].producer_epoch)


@VERSIONS
def test_the_same_producer_never_takes_its_id_back(version: int) -> None:
    """From a newer owner."""
    with playing(T0, version=version) as (brokers, players):
        old = players.opened()
        brokers.faults["Produce"] = [lost]
        old.begin()
        old.send(T0, labelled("a"))
        with pytest.raises(RetriableError):
            old.flush()
        new = players.opened()
        for _ in range(2):
            with pytest.raises(FencedError, match="'id'"):
                old.open(soon())
        new.begin()
        new.send(T0, labelled("b"))
        new.commit()

        assert ["b"] == brokers.labels(T0, "committed")


@pytest.mark.parametrize("fault", [lost, undone, silent], ids=["done", "not done", "silent"])
def test_a_start_that_was_not_answered_is_repeated(fault: Fault) -> None:
    """Nothing depends on how often an id was taken."""
    with playing(T0) as (brokers, players):
        brokers.faults["InitProducerId"] = [fault]
        producer = players.opened(request_seconds=0.3)
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.commit()

        assert ["a"] == brokers.labels(T0, "committed")
        assert 2 == len(brokers.received("InitProducerId"))


def test_a_user_who_stops_waiting_leaves_the_transaction() -> None:
    """The answer was not awaited, so nothing follows."""

    def waiting(what: str) -> None:
        raise Stopped(what)

    with playing(T0) as (brokers, players):
        producer = players.producer(waiting=waiting)
        producer.open(soon())
        brokers.faults["EndTxn"] = [silent]
        producer.begin()
        producer.send(T0, labelled("a"))
        with pytest.raises(Stopped, match="EndTxn"):
            producer.commit()
        with pytest.raises(RetriableError, match="interrupted"):
            producer.begin()


def test_a_user_hears_about_once_a_second_what_is_waited_for() -> None:
    """While records are not acknowledged."""
    heard = list[tuple[str, float]]()

    def waiting(what: str) -> None:
        heard.append((what, time.monotonic()))
        if len(heard) == 2:
            brokers.go_on.set()

    with playing(T0) as (brokers, players):
        producer = players.producer(waiting=waiting)
        producer.open(soon())
        brokers.faults["Produce"] = [silent]
        producer.begin()
        producer.send(T0, labelled("a"))
        with pytest.raises(RetriableError):
            producer.flush()

        assert ["records to be acknowledged"] * 2 == [what for what, _ in heard]
        assert 0.8 < heard[1][1] - heard[0][1] < 8


# ----------------------------------------------------------------- answered errors


@VERSIONS
@pytest.mark.parametrize(
    "names",
    [
        ["NOT_LEADER_OR_FOLLOWER"],
        ["NOT_ENOUGH_REPLICAS", "KAFKA_STORAGE_ERROR"],
        ["CONCURRENT_TRANSACTIONS"] * 3,
        ["LEADER_NOT_AVAILABLE", "REQUEST_TIMED_OUT"],
    ],
)
def test_a_refusal_that_passes_is_repeated_in_order(names: list[str], version: int) -> None:
    """With the same sequences; what was in flight behind it follows."""
    with playing(T0, T1, version=version) as (brokers, players):
        producer = players.opened(max_request_bytes=100)
        brokers.faults["Produce"] = [None, *(with_code(named(name).code) for name in names)]
        producer.begin()
        for each in range(30):
            producer.send((T0, T1)[each % 2], labelled(f"{each}"))
        producer.commit()

        assert [f"{each}" for each in range(0, 30, 2)] == brokers.labels(T0, "committed")
        assert [f"{each}" for each in range(1, 30, 2)] == brokers.labels(T1, "committed")


@VERSIONS
def test_a_leader_that_moves_is_followed(version: int) -> None:
    """In the middle of a transaction; the old one has refused what it did not take."""
    with playing(T0, version=version, nodes=2) as (brokers, players):
        producer = players.opened(max_request_bytes=100)
        producer.begin()
        for each in range(40):
            if each == 20:
                brokers.brokers.leaders[T0] = 2
            producer.send(T0, labelled(f"{each}"))
        producer.commit()

        assert [f"{each}" for each in range(40)] == brokers.labels(T0, "committed")


@pytest.mark.parametrize("fault", [lost, undone, silent], ids=["done", "not done", "silent"])
def test_without_transactions_what_was_not_answered_is_sent_again(fault: Fault) -> None:
    """With its sequences, so that it is there once."""
    with playing(T0, T1) as (brokers, players):
        producer = players.opened(None, request_seconds=0.3, max_request_bytes=100)
        brokers.faults["Produce"] = [None, None, fault, None, fault]
        for each in range(30):
            producer.send((T0, T1)[each % 2], labelled(f"{each}"))
        producer.flush()

        assert [f"{each}" for each in range(0, 30, 2)] == brokers.labels(T0, "plain")
        assert [f"{each}" for each in range(1, 30, 2)] == brokers.labels(T1, "plain")


def test_without_transactions_records_are_waited_for_until_their_time_is_over() -> None:
    """Then the producer is of no more use."""
    with playing(T0) as (brokers, players):
        producer = players.opened(None, delivery_seconds=1.0)
        brokers.faults["Produce"] = [with_code(named("NOT_ENOUGH_REPLICAS").code)] * 1000
        producer.send(T0, labelled("a"))
        for _ in range(2):
            with pytest.raises(RetriableError, match=r"t-0.*delivery.timeout.ms.*NOT_ENOUGH"):
                producer.flush()


@VERSIONS
def test_a_gap_that_no_earlier_batch_explains_aborts(version: int) -> None:
    """The log has lost records, or the broker the producer; the next transaction may succeed."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened()
        brokers.faults["Produce"] = [with_code(named("OUT_OF_ORDER_SEQUENCE_NUMBER").code)]
        producer.begin()
        producer.send(T0, labelled("a"))
        with pytest.raises(RetriableError, match="OUT_OF_ORDER"):
            producer.flush()
        producer.abort()
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.commit()

        assert ["a"] == brokers.labels(T0, "committed")


@VERSIONS
def test_a_refused_batch_is_named(version: int) -> None:
    """By every call until the abort; the next transaction knows nothing of it."""
    with playing(T0, T1, version=version) as (brokers, players):
        producer = players.opened(max_request_bytes=100)
        brokers.faults["Produce"] = [None, with_code(named("MESSAGE_TOO_LARGE").code)]
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.flush()
        number = producer.send(T0, labelled("b"))
        for call in (producer.flush, producer.commit, producer.begin):
            with pytest.raises(
                BatchRefusedError, match=r"t-0: MESSAGE_TOO_LARGE\..*max\.message"
            ) as raised:
                call()
            assert (T0, number) == (raised.value.place, raised.value.number)
        producer.abort()
        producer.begin()
        producer.send(T0, labelled("c"))
        producer.commit()

        assert (["a"], ["c"]) == (brokers.labels(T0, "aborted"), brokers.labels(T0, "committed"))


@VERSIONS
def test_a_refused_batch_may_be_dropped(version: int) -> None:
    """Those behind it, also those that were in flight, follow in the same transaction."""
    with playing(T0, T1, version=version) as (brokers, players):
        producer = players.opened(max_request_bytes=100)
        refused = with_code(named("INVALID_RECORD").code)
        brokers.faults["Produce"] = [None, refused, None, None, None, refused]
        producer.begin()
        numbers, dropped = list[int](), list[int]()
        while True:
            try:
                while len(numbers) < 8:
                    label = f"{len(numbers)}"
                    numbers.append(producer.send(T0, labelled(label, count=2)))
                producer.commit()
            except BatchRefusedError as error:
                dropped.append(numbers.index(error.number))
                producer.drop(error.number)
            else:
                break
        left = [f"{each}" for each in range(8) if each not in dropped]

        assert 2 == len(dropped)
        assert left == brokers.labels(T0, "committed")


@VERSIONS
def test_every_refused_batch_is_raised(version: int) -> None:
    """Also those that were refused together, one after the other."""
    with playing(T0, T1, U0, version=version) as (brokers, players):
        producer = players.opened()
        brokers.faults["Produce"] = [with_code(named("INVALID_RECORD").code)]
        producer.begin()
        for place in (T0, T1, U0):
            producer.send(place, labelled("refused"))
            producer.send(place, labelled("behind"))
        raised = list[TopicPartition]()
        while True:
            try:
                producer.commit()
            except BatchRefusedError as error:
                raised.append(error.place)
                producer.drop(error.number)
            else:
                break

        assert {T0, T1, U0} == set(raised)
        assert 3 == len(raised)
        assert [["behind"]] * 3 == [brokers.labels(each, "committed") for each in (T0, T1, U0)]


def test_only_a_batch_that_was_refused_is_dropped() -> None:
    """A caller cannot lose another one so."""
    with playing(T0) as (_brokers, players):
        producer = players.opened()
        producer.begin()
        number = producer.send(T0, labelled("a"))

        with pytest.raises(ValueError, match="refused"):
            producer.drop(number)


def test_a_transaction_in_which_all_was_dropped_ends() -> None:
    """The broker would not commit what it does not know."""
    with playing(T0) as (brokers, players):
        producer = players.opened()
        brokers.faults["Produce"] = [with_code(named("INVALID_RECORD").code)]
        producer.begin()
        number = producer.send(T0, labelled("a"))
        with pytest.raises(BatchRefusedError):
            producer.flush()
        producer.drop(number)
        producer.commit()
        producer.begin()
        producer.send(T0, labelled("b"))
        producer.commit()

        assert ["b"] == brokers.labels(T0, "committed")


@VERSIONS
def test_an_abort_waits_for_what_is_in_flight(version: int) -> None:
    """So that nothing of it arrives in the next transaction."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened(max_request_bytes=100)
        for number in range(5):
            producer.begin()
            for each in range(10):
                producer.send(T0, labelled(f"{number}.{each}"))
            producer.abort()
        producer.begin()
        producer.send(T0, labelled("kept"))
        producer.commit()

        assert ["kept"] == brokers.labels(T0, "committed")
        assert [] == brokers.labels(T0, "open")


@VERSIONS
def test_a_newer_producer_fences(version: int) -> None:
    """At the next request, whichever that is; the older one is of no more use."""
    with playing(T0, version=version) as (brokers, players):
        old = players.opened()
        old.begin()
        old.send(T0, labelled("old"))
        old.flush()
        new = players.opened()
        new.begin()
        new.send(T0, labelled("new"))
        new.commit()
        for call in (old.commit, old.begin, lambda: old.open(soon())):
            with pytest.raises(FencedError, match=r"'id'.*task c-0"):
                call()
        old.abort()

        assert ["new"] == brokers.labels(T0, "committed")


@VERSIONS
def test_a_transaction_that_was_too_long_looks_the_same_and_is_told_apart(version: int) -> None:
    """By the producer's own clock."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened(transaction_ms=100)
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.flush()
        brokers.take("id")
        time.sleep(0.15)
        with pytest.raises(TransactionTimedOutError, match="task c-0") as raised:
            producer.commit()

        assert raised.value.open_seconds > raised.value.timeout_seconds == 0.1
        assert not raised.value.in_outage


def test_an_outage_that_lasts_too_long_is_said_with_the_time_out() -> None:
    """The next transaction may well be faster."""
    with playing(T0) as (brokers, players):
        producer = players.opened(transaction_ms=1_500)
        producer.begin()
        producer.send(T0, labelled("a"))
        producer.flush()
        producer.send_group_offsets(GROUP, [entry(1)])
        for each in brokers.brokers.brokers.values():
            each.stop()
        producer.send(T0, labelled("b"))
        began = time.monotonic()
        with pytest.raises(TransactionTimedOutError) as raised:
            producer.flush()

        assert raised.value.in_outage
        assert time.monotonic() - began < 4


@pytest.mark.parametrize(
    ("name", "code", "part"),
    [
        ("InitProducerId", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "transactional ids"),
        ("InitProducerId", "INVALID_TRANSACTION_TIMEOUT", "transaction.max.timeout.ms"),
        ("Produce", "TOPIC_AUTHORIZATION_FAILED", "Write.* on the topic"),
        ("TxnOffsetCommit", "GROUP_AUTHORIZATION_FAILED", "Read on the group"),
        ("TxnOffsetCommit", "OFFSET_METADATA_TOO_LARGE", "offset.metadata.max.bytes"),
        ("EndTxn", "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "transactional ids"),
    ],
)
def test_what_no_retry_resolves_says_what_to_do(name: str, code: str, part: str) -> None:
    """And is raised by every call until the abort."""
    with playing(T0) as (brokers, players):
        producer = players.producer()
        brokers.faults[name] = [with_code(named(code).code)] * 2
        for _ in range(2):
            with pytest.raises(TaskFailedError, match=f"{code}.*{part}"):
                play(producer)


def test_a_topic_that_is_not_there_is_an_error_after_some_seconds() -> None:
    """Brokers learn of a new one after each other, so it is waited for a little."""
    with playing(T0) as (_brokers, players):
        producer = players.opened()
        producer.begin()
        producer.send(U0, labelled("a"))
        began = time.monotonic()
        with pytest.raises(ReplanError, match=r"u-0.*UNKNOWN_TOPIC_OR_PARTITION.*Create the topic"):
            producer.flush()
        lasted = time.monotonic() - began
        producer.abort()

        assert 4 < lasted < 9


def test_a_topic_that_is_made_meanwhile_is_found() -> None:
    """As a mirror makes it just before."""
    with playing(T0, U0) as (brokers, players):
        brokers.brokers.errors["u"] = 3
        producer = players.producer(waiting=lambda _what: brokers.brokers.errors.clear())
        producer.open(soon())
        producer.begin()
        producer.send(U0, labelled("a"))
        producer.commit()

        assert ["a"] == brokers.labels(U0, "committed")


CALLS = {
    "InitProducerId": Step.TAKE,
    "AddPartitionsToTxn": Step.ADD_PARTITIONS,
    "Produce": Step.PRODUCE,
    "AddOffsetsToTxn": Step.ADD_OFFSETS,
    "TxnOffsetCommit": Step.COMMIT_OFFSETS,
    "EndTxn": Step.END,
}
RAISED: dict[ProducerReaction, tuple[type[ConnectError], ...]] = {
    ProducerReaction.OUT_OF_ORDER: (RetriableError,),
    ProducerReaction.REFUSED: (BatchRefusedError,),
    ProducerReaction.ABORT: (RetriableError,),
    ProducerReaction.DOUBTFUL: (RetriableError,),
    ProducerReaction.FENCED: (FencedError,),
    ProducerReaction.FAIL: (TaskFailedError,),
}
EVERY_CODE = {
    "to 59": [-1, *range(1, 60)],
    "from 60": range(60, 134),
}


@pytest.mark.parametrize("codes", EVERY_CODE.values(), ids=EVERY_CODE)
@pytest.mark.parametrize("name", CALLS)
def test_every_error_code_at_every_step_does_what_the_table_says(
    name: str, codes: Sequence[int]
) -> None:
    """On the first version, which has all steps; whatever it was, the records are there once in the end."""
    with playing(T0, version=1) as (brokers, players):
        producer = players.opened()
        for code in codes:
            found = reaction(CALLS[name], code)
            if found in (ProducerReaction.MISSING, ProducerReaction.ACCEPTED):
                # The one takes seconds, and has a test of its own; the other would be a lie of this broker.
                continue
            label = f"{name} {code}"
            if name == "InitProducerId":
                producer = players.producer()
            brokers.faults[name] = [with_code(code)]
            expected = RAISED.get(found)
            if expected is None:
                play(producer, label)
            else:
                with pytest.raises(expected) as raised:
                    play(producer, label)
                assert error_name(code) in str(raised.value) or found is ProducerReaction.FENCED
                if not is_usable(producer):
                    producer.close()
                    producer = players.opened()
                play(producer, label)

            assert [label] == brokers.labels(T0, "committed")[-1:], label
        labels = brokers.labels(T0, "committed")

        assert sorted(set(labels)) == sorted(labels)
        assert [] == brokers.labels(T0, "open")


def is_usable(producer: WireProducer) -> bool:
    """Whether it is after the abort that follows on every failure."""
    try:
        producer.abort()
        producer.begin()
        producer.abort()
    except (ConnectError, IllegalTransitionError):
        return False
    return True


# ----------------------------------------------------------------- misuse


def test_calls_that_do_not_fit_are_refused() -> None:
    """And change nothing."""
    with playing(T0) as (brokers, players):
        producer = players.producer()
        for call in (producer.begin, lambda: producer.send(T0, labelled("a"))):
            with pytest.raises(IllegalTransitionError):
                call()
        producer.open(soon())
        for call in (
            lambda: producer.send(T0, labelled("a")),
            lambda: producer.send_group_offsets(GROUP, [entry(1)]),
            producer.commit,
        ):
            with pytest.raises(IllegalTransitionError):
                call()
        producer.begin()
        for call in (producer.begin, lambda: producer.open(soon())):
            with pytest.raises(IllegalTransitionError):
                call()
        producer.send(T0, labelled("b"))
        producer.commit()

        assert ["b"] == brokers.labels(T0, "committed")


def test_a_batch_that_must_not_be_sent_is_not() -> None:
    """Neither is what was to go with it lost or doubled; the next transaction knows nothing of it."""
    with playing(T0, T1, version=1) as (brokers, players):
        producer = players.opened()
        producer.begin()
        producer.send(T0, labelled("a"))
        whole = labelled("b")
        producer.send(T1, UnstampedBatch(bytes(whole.data)[:-1], 1))
        with pytest.raises(ValueError, match="batch"):
            producer.flush()
        producer.abort()
        producer.begin()
        producer.send(T0, labelled("c"))
        producer.send(T1, labelled("d"))
        producer.commit()

        assert (["c"], ["d"]) == (
            brokers.labels(T0, "committed"),
            brokers.labels(T1, "committed"),
        )


def test_a_broker_that_is_away_at_the_start_is_an_error_at_the_deadline() -> None:
    """With the reason."""
    with playing(T0) as (brokers, players):
        producer = players.producer()
        for each in brokers.brokers.brokers.values():
            each.stop()

        with pytest.raises(RetriableError, match="was not reached"):
            producer.open(soon(0.5))


@VERSIONS
def test_a_transaction_of_which_nothing_was_sent_is_aborted(version: int) -> None:
    """The second version has nothing to abort then, and says so to nobody."""
    with playing(T0, version=version) as (brokers, players):
        producer = players.opened()
        brokers.faults["Produce"] = [with_code(named("TOPIC_AUTHORIZATION_FAILED").code)]
        producer.begin()
        producer.send(T0, labelled("a"))
        with pytest.raises(TaskFailedError):
            producer.flush()
        producer.abort()
        producer.begin()
        producer.send(T0, labelled("b"))
        producer.commit()

        assert ["b"] == brokers.labels(T0, "committed")


def test_an_idle_connection_that_the_broker_closes_is_replaced() -> None:
    """Nothing was in flight, so nothing is in doubt."""
    with playing(T0, version=1) as (brokers, players):
        producer = players.opened()
        producer.begin()
        for label in ("a", "b"):
            producer.send(T0, labelled(label))
            producer.flush()
            producer.send_group_offsets(GROUP, [entry(1)])
            brokers.brokers.brokers[1].disconnect()
        producer.commit()

        assert ["a", "b"] == brokers.labels(T0, "committed")


def test_identities_have_a_type() -> None:
    """They cross from the driver to its slots."""
    assert (1, 2) == ProducerIdentity(1, 2)
