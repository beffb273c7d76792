"""Fetching from brokers that a test scripts: what moves, is away, lies, or is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from doubles.scripted_broker import FetchResponse, Received, ScriptedCluster, record_batch
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.connection import LoginRefusedError
from headrace.kafka.wire.fetcher import (
    FetchedRecords,
    Fetcher,
    FetchRange,
    FetchSettings,
    OffsetOutOfRangeError,
    TopicMissingError,
    TopicRecreatedError,
)
from waiting import until

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))
FETCH = 1


@pytest.fixture
def scripted() -> Iterator[ScriptedCluster]:
    """Two brokers; the first one leads all partitions at first."""
    with ScriptedCluster(T0, T1, T2, nodes=2) as made:
        yield made


def soon(seconds: float = 20) -> Deadline:
    """Time enough."""
    return Deadline.after(seconds)


def fetcher(scripted: ScriptedCluster, *ranges: FetchRange, **settings: Any) -> Fetcher:  # noqa: ANN401
    """A fetcher of these, on a client of its own."""
    settings.setdefault("max_wait_ms", 10)
    return Fetcher(scripted.cluster(request_seconds=2.0), ranges, FetchSettings(**settings))


def of(place: TopicPartition, start: int = 0, end: int | None = None) -> FetchRange:
    """A range of whichever topic has the name."""
    return FetchRange(place=place, start=start, end=end)


def read(fetched: Fetcher, deadline: Deadline | None = None) -> list[FetchedRecords]:
    """All that comes until every range is finished."""
    deadline, found = deadline or soon(), list[FetchedRecords]()
    while not fetched.finished:
        found += fetched.poll(deadline)
        assert not deadline.expired
    return found


def keep_polling(fetched: Fetcher, seconds: float) -> None:
    """Until it raises; what was in flight before may come first."""
    while True:
        fetched.poll(soon(seconds))


def spans(found: list[FetchedRecords]) -> list[tuple[TopicPartition, int, int]]:
    """Where each was asked for, and where the next request begins."""
    return [(each.place, each.fetch_offset, each.next_offset) for each in found]


def close(fetched: Fetcher) -> None:
    """The fetcher and the cluster under it."""
    fetched.close()
    fetched._cluster.close()


def test_batches_come_as_they_were_received(scripted: ScriptedCluster) -> None:
    """With their headers, and the offsets that the broker told of the partition."""
    batches = scripted.append(T0, 0, 5) + scripted.append(T0, 5, 3)
    fetched = fetcher(scripted, of(T0, 2, 8))
    [found] = read(fetched)
    close(fetched)

    assert batches == bytes(found.data)
    assert found.data.readonly
    assert [(0, 4), (5, 7)] == [(each.base_offset, each.last_offset) for each in found.headers]
    assert (2, 8) == (found.fetch_offset, found.next_offset)
    assert (8, 8) == (found.high_watermark, found.last_stable_offset)


def test_the_next_request_is_under_way_before_anything_is_handed_out(
    scripted: ScriptedCluster,
) -> None:
    """It begins where the batches end, and the broker works while they are decoded."""
    scripted.append(T0, 0, 5)
    fetched = fetcher(scripted, of(T0))
    [found] = fetched.poll(soon())
    until(lambda: len(scripted.brokers[1].named("Fetch")) >= 2)
    offsets = [
        request.topics[0].partitions[0].fetch_offset
        for request in scripted.brokers[1].named("Fetch")
    ]
    close(fetched)

    assert 5 == found.next_offset
    assert [0, 5] == offsets[:2]


def test_one_request_at_a_time_is_in_flight(scripted: ScriptedCluster) -> None:
    """However often it is polled meanwhile."""
    fetched = fetcher(scripted, of(T0), max_wait_ms=10)
    scripted.scripts["Fetch"] = lambda *_: time.sleep(0.3)
    for _ in range(3):
        with suppress(RetriableError):
            fetched.poll(soon(0.05))
    close(fetched)

    assert 1 == len(scripted.brokers[1].named("Fetch"))


def test_an_end_is_an_end(scripted: ScriptedCluster) -> None:
    """A batch that ends after it is the last one, and nothing more is asked for."""
    scripted.append(T0, 0, 5)
    scripted.append(T0, 5, 5)
    scripted.max_batches = 1
    fetched = fetcher(scripted, of(T0, 0, 7), of(T1, 3, 3))
    found = read(fetched)
    close(fetched)

    assert [(T0, 0, 5), (T0, 5, 10)] == spans(found)
    assert {T0: 10, T1: 3} == fetched.positions
    assert [] == fetched.poll(soon(0))
    assert 2 == len(scripted.brokers[1].named("Fetch"))


def test_partitions_take_turns(scripted: ScriptedCluster) -> None:
    """Where an answer has room for one, each partition is the first one in its turn."""
    for place in (T0, T1, T2):
        for offset in range(3):
            scripted.append(place, offset)
    scripted.max_batches = 1
    fetched = fetcher(scripted, *(of(place, 0, 3) for place in (T0, T1, T2)))
    found = read(fetched)
    close(fetched)

    assert [T0, T1, T2] * 3 == [each.place for each in found]


def test_offsets_that_a_cleaner_removed_do_not_hang(scripted: ScriptedCluster) -> None:
    """The next batch is after the end: the range is finished with it."""
    scripted.append(T0, 0, 2)
    scripted.append(T0, 9, 1)
    fetched = fetcher(scripted, of(T0, 0, 6))

    assert [(T0, 0, 10)] == spans(read(fetched))
    close(fetched)


def test_e55_a_gap_before_an_offset_that_cannot_be_read_yet_does_not_hang(
    scripted: ScriptedCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker says that there are offsets up to the end, and again and again has no batch for them."""
    scripted.append(T0, 0, 2)
    scripted.append(T0, 8, 1)
    scripted.bounds[T0] = (0, 9)
    plain = scripted.fetch

    def hiding(node: int, received: Received) -> FetchResponse:
        """Hides the batch of a transaction that is open, which begins at the last stable offset."""
        answer = plain(node, received)
        part = answer.responses[0].partitions[0]
        part.last_stable_offset = 8
        if received.message.topics[0].partitions[0].fetch_offset >= 2:
            part.records = b""
        return answer

    scripted.scripts["Fetch"] = hiding
    fetched = fetcher(scripted, of(T0, 2, 8))

    assert [] == read(fetched)
    assert {T0: 8} == fetched.positions
    assert "no record batch for the offsets 2 to 7" in caplog.text
    close(fetched)


def test_what_remote_storage_has_not_brought_yet_is_no_gap(scripted: ScriptedCluster) -> None:
    """Offsets before what the leader has itself are waited for, however long that takes."""
    scripted.append(T0, 0, 2)
    scripted.append(T0, 8, 1)
    plain, bounds = scripted.fetch, scripted.list_offsets
    answers = iter(range(8))

    def slow(node: int, received: Received) -> FetchResponse:
        answer = plain(node, received)
        if next(answers, None) is not None:
            answer.responses[0].partitions[0].records = b""
        return answer

    def local(node: int, received: Received) -> Any:  # noqa: ANN401
        answer = bounds(node, received)
        if received.message.topics[0].partitions[0].timestamp == -4:
            answer.topics[0].partitions[0].offset = 8
        return answer

    scripted.scripts |= {"Fetch": slow, "ListOffsets": local}
    scripted.bounds[T0] = (0, 9)
    fetched = fetcher(scripted, of(T0, 0, 8))

    assert [(T0, 0, 9)] == spans(read(fetched))
    close(fetched)


@pytest.mark.parametrize("code", [3, 5, 6, 9, 56, 72, 74, 75, 78, -1, 100])
def test_what_a_retry_resolves_is_retried(scripted: ScriptedCluster, code: int) -> None:
    """Moved leaders, brokers that start, topics that one of them has not heard of yet: nothing is lost."""
    scripted.append(T0, 0, 2)
    scripted.append(T1, 0, 2)
    scripted.codes[T0] = [code, code]
    fetched = fetcher(scripted, of(T0, 0, 2), of(T1, 0, 2))

    assert [(T0, 0, 2), (T1, 0, 2)] == sorted(spans(read(fetched)))
    close(fetched)


@pytest.mark.parametrize(("code", "asked"), [(78, 1), (6, 2)])
def test_who_leads_is_asked_again_where_that_is_in_doubt(
    scripted: ScriptedCluster, code: int, asked: int
) -> None:
    """A leader that only answers later is asked again itself."""
    scripted.append(T0, 0, 2)
    scripted.codes[T0] = [code]
    one = FetchRange(place=T0, start=0, end=2, topic_id=scripted.ids["t"])
    fetched = fetcher(scripted, one)

    assert [(T0, 0, 2)] == spans(read(fetched))
    assert asked == len(scripted.brokers[1].named("Metadata"))
    close(fetched)


def test_a_broker_that_is_too_old_is_said_to_be(scripted: ScriptedCluster) -> None:
    """By the next poll."""
    scripted.append(T0, 0, 2)
    fetched = fetcher(scripted, of(T0))
    fetched.poll(soon())
    [leader] = fetched._leaders.values()
    assert leader.connection is not None
    leader.connection._versions[FETCH] = (0, 3)

    with pytest.raises(TaskFailedError, match=r"FetchRequest.*for the fetch of records.*0\.11"):
        keep_polling(fetched, 5)
    close(fetched)


def test_a_leader_that_has_moved_is_followed(scripted: ScriptedCluster) -> None:
    """From the position that was reached, with others' positions untouched."""
    scripted.append(T0, 0, 2)
    scripted.append(T1, 0, 2)
    fetched = fetcher(scripted, of(T0, 0, 4), of(T1, 0, 4))
    before = fetched.poll(soon())
    scripted.leaders[T0] = 2
    scripted.append(T0, 2, 2)
    scripted.append(T1, 2, 2)
    after = read(fetched)
    close(fetched)

    assert [(T0, 0, 2), (T0, 2, 4), (T1, 0, 2), (T1, 2, 4)] == sorted(spans(before + after))
    assert scripted.brokers[2].named("Fetch")


def test_two_leaders_are_asked_side_by_side(scripted: ScriptedCluster) -> None:
    """Each with its own partitions, and each answer handed out by itself."""
    scripted.leaders[T1] = 2
    scripted.append(T0, 0, 2)
    scripted.append(T1, 0, 2)
    fetched = fetcher(scripted, of(T0, 0, 2), of(T1, 0, 2))
    first, second = fetched.poll(soon()), fetched.poll(soon())
    close(fetched)

    assert {T0, T1} == {each.place for each in first + second}
    assert [1, 1] == [len(first), len(second)]


def test_a_connection_that_is_lost_is_made_again(scripted: ScriptedCluster) -> None:
    """And the same offset asked for."""
    scripted.append(T0, 0, 2)
    lost, plain = iter([None, None]), scripted.fetch
    scripted.scripts["Fetch"] = lambda node, received: next(lost, plain(node, received))
    fetched = fetcher(scripted, of(T0, 0, 2))

    assert [(T0, 0, 2)] == spans(read(fetched))
    close(fetched)


def test_an_answer_that_is_none_is_asked_for_again(scripted: ScriptedCluster) -> None:
    """Bytes that are not as the protocol says, and an answer to another request."""
    scripted.append(T0, 0, 2)
    broken, plain = iter([b"\0\0\0\4\0\0\0\x63", b"\0\0\0\6\0\0\0\2\0\0"]), scripted.fetch
    scripted.scripts["Fetch"] = lambda node, received: next(broken, plain(node, received))
    fetched = fetcher(scripted, of(T0, 0, 2))

    assert [(T0, 0, 2)] == spans(read(fetched))
    close(fetched)


def test_a_broker_that_is_away_is_no_empty_log(scripted: ScriptedCluster) -> None:
    """A poll without anything raises, and names the partition, the broker and the reason; it goes on later."""
    scripted.append(T0, 0, 2)
    fetched = fetcher(scripted, of(T0))
    fetched.poll(soon())
    scripted.brokers[1].stop()

    with pytest.raises(RetriableError, match="t-0"):
        keep_polling(fetched, 0.3)
    close(fetched)


def test_a_partition_without_a_leader_is_no_empty_log(scripted: ScriptedCluster) -> None:
    """Others go on; when nothing comes from them it is said, and when it has a leader it comes."""
    scripted.append(T0, 0, 2)
    scripted.append(T1, 0, 2)
    scripted.leaders[T0] = -1
    fetched = fetcher(scripted, of(T0, 0, 2), of(T1))
    first = fetched.poll(soon())
    with pytest.raises(RetriableError, match="t-0: it has no leader"):
        fetched.poll(soon(0.2))
    scripted.leaders[T0] = 1
    later = fetched.poll(soon())
    close(fetched)

    assert [(T1, 0, 2)] == spans(first)
    assert [(T0, 0, 2)] == spans(later)


def test_a_reason_that_partitions_share_is_said_once() -> None:
    """With the first of them, and how many there are besides."""
    places = [TopicPartition("t", number) for number in range(5)]
    with ScriptedCluster(*places) as scripted:
        scripted.leaders.update(dict.fromkeys(places, -1))
        fetched = fetcher(scripted, *map(of, places))
        with pytest.raises(RetriableError) as raised:
            keep_polling(fetched, 0.2)
        close(fetched)

    assert "(t-0, t-1, t-2 and 2 more: it has no leader)" in str(raised.value)


def test_a_log_without_news_is_no_failure(scripted: ScriptedCluster) -> None:
    """It is empty until the deadline."""
    fetched = fetcher(scripted, of(T0))

    assert [] == fetched.poll(soon(0.2))
    assert not fetched.finished
    close(fetched)


def test_an_offset_out_of_range_is_raised_with_the_logs_bounds(scripted: ScriptedCluster) -> None:
    """Once, after the others' data; the partition waits for a decision."""
    scripted.append(T1, 0, 2)
    scripted.codes[T0] = [1]
    scripted.bounds[T0] = (100, 200)
    fetched = fetcher(scripted, of(T0, 7, 200), of(T1, 0, 2))
    first = fetched.poll(soon())
    with pytest.raises(OffsetOutOfRangeError, match=r"Offset 7 of t-0 .* 100 .* 200") as raised:
        fetched.poll(soon())
    assert (T0, 7, 100, 200) == (
        raised.value.place,
        raised.value.offset,
        raised.value.log_start,
        raised.value.log_end,
    )
    assert [(T1, 0, 2)] == spans(first)
    assert fetched.finished
    scripted.append(T0, 100, 100)
    fetched.add([of(T0, 100, 200)])
    assert [(T0, 100, 200)] == spans(read(fetched))
    close(fetched)


def test_bounds_that_one_may_not_ask_for_are_a_failure(scripted: ScriptedCluster) -> None:
    """No retry gives the right to read them."""
    plain = scripted.list_offsets

    def refused(node: int, received: Received) -> Any:  # noqa: ANN401
        answer = plain(node, received)
        answer.topics[0].partitions[0].error_code = 29
        return answer

    scripted.scripts["ListOffsets"] = refused
    scripted.codes[T0] = [1]
    fetched = fetcher(scripted, of(T0, 7, 9))

    with pytest.raises(TaskFailedError, match=r"TOPIC_AUTHORIZATION_FAILED\. Grant"):
        read(fetched)
    close(fetched)


def test_an_offset_that_a_new_leader_does_not_know_yet_is_in_range(
    scripted: ScriptedCluster,
) -> None:
    """The log's bounds have the last word."""
    scripted.append(T0, 5, 2)
    scripted.codes[T0] = [1]
    scripted.bounds[T0] = (0, 7)
    fetched = fetcher(scripted, of(T0, 5, 7))

    assert [(T0, 5, 7)] == spans(read(fetched))
    close(fetched)


def test_a_topic_that_was_created_again_is_another_one(scripted: ScriptedCluster) -> None:
    """Its offsets mean nothing in the new one: neither a start before nor a fetch on the way takes it for the old one."""
    scripted.append(T0, 0, 2)
    fetched = fetcher(scripted, of(T0))
    assert [(T0, 0, 2)] == spans(fetched.poll(soon()))
    old, new = scripted.ids["t"], UUID(int=99)
    scripted.ids["t"] = new
    stale = fetcher(scripted, FetchRange(place=T0, start=2, topic_id=old))

    for each in (fetched, stale):
        with pytest.raises(TopicRecreatedError, match="created again") as raised:
            keep_polling(each, 2)
        assert (T0, old, new) == (raised.value.place, raised.value.expected, raised.value.found)
        # As Kafka's tools print it.
        assert "there is one with the id AAAAAAAAAAAAAAAAAAAAYw now" in str(raised.value)
        close(each)


def test_a_topic_that_is_gone_is_asked_for_until_that_is_certain(
    scripted: ScriptedCluster,
) -> None:
    """Then it is raised, and others are read; brokers learn of topics one after the other."""
    gone = TopicPartition("gone", 0)
    scripted.append(T0, 0, 2)
    fetched = fetcher(scripted, of(T0, 0, 2), of(gone))
    assert [(T0, 0, 2)] == spans(fetched.poll(soon()))

    began = time.monotonic()
    with pytest.raises(TopicMissingError, match="gone-0"):
        fetched.poll(soon())
    assert fetched.finished
    assert 2 < time.monotonic() - began
    close(fetched)


def test_a_topic_of_which_a_broker_hears_late_is_read(scripted: ScriptedCluster) -> None:
    """It does not know it for a second."""
    scripted.append(T0, 0, 2)
    fetched = fetcher(scripted, of(T0, 0, 2))
    plain, began = scripted.metadata, time.monotonic()

    def late(node: int, received: Received) -> Any:  # noqa: ANN401
        answer = plain(node, received)
        if time.monotonic() - began < 1:
            answer.topics[0].error_code, answer.topics[0].partitions = 3, []
        return answer

    scripted.scripts["Metadata"] = late

    assert [(T0, 0, 2)] == spans(read(fetched))
    close(fetched)


@pytest.mark.parametrize(("code", "advice"), [(29, "Grant"), (2, "damaged"), (9_999, "newer")])
def test_what_no_retry_resolves_is_raised(
    scripted: ScriptedCluster, code: int, advice: str
) -> None:
    """With the partition, the offset and what to do; others are read."""
    scripted.append(T1, 0, 2)
    scripted.codes[T0] = [code]
    fetched = fetcher(scripted, of(T0, 7), of(T1, 0, 2))

    assert [(T1, 0, 2)] == spans(fetched.poll(soon()))
    with pytest.raises(TaskFailedError, match=f"t-0 at offset 7: .*{advice}"):
        read(fetched)
    assert fetched.finished
    close(fetched)


def test_a_header_that_lies_fails_its_partition_only(scripted: ScriptedCluster) -> None:
    """The others' batches come first."""
    scripted.append(T1, 0, 2)
    lie = bytearray(record_batch(0))
    lie[16] = 9
    scripted.logs[T0] = [(0, 1, bytes(lie))]
    fetched = fetcher(scripted, of(T0, 0, 1), of(T1, 0, 2))

    assert [(T1, 0, 2)] == spans(fetched.poll(soon()))
    with pytest.raises(CorruptBatchError, match="t-0"):
        read(fetched)
    close(fetched)


def test_what_is_before_a_header_that_lies_is_handed_out(scripted: ScriptedCluster) -> None:
    """And a range that ends there is finished: who reads what follows meets the error."""
    scripted.append(T0, 0, 2)
    lie = bytearray(record_batch(2))
    lie[16] = 9
    scripted.logs[T0].append((2, 3, bytes(lie)))
    whole, part = fetcher(scripted, of(T0, 0, 3)), fetcher(scripted, of(T0, 0, 2))

    assert [(T0, 0, 2)] == spans(whole.poll(soon()))
    with pytest.raises(CorruptBatchError, match="at offset 2 of partition t-0"):
        whole.poll(soon())
    assert {T0: 2} == whole.positions
    assert [(T0, 0, 2)] == spans(read(part))
    close(whole)
    close(part)


def test_a_batch_that_is_cut_off_is_asked_for_again(scripted: ScriptedCluster) -> None:
    """After another partition's it may be; alone it may not, and is an error and no endless loop."""
    scripted.append(T0, 0, 2)
    whole = record_batch(0, 2)
    scripted.logs[T1] = [(0, 2, whole[:-1])]
    fetched = fetcher(scripted, of(T0, 0, 2), of(T1, 0, 2))
    assert [(T0, 0, 2)] == spans(fetched.poll(soon()))

    with pytest.raises(TaskFailedError, match=r"cut off .* t-1 at offset 0"):
        read(fetched)
    close(fetched)


def test_a_batch_that_is_cut_off_again_and_again_is_an_error(scripted: ScriptedCluster) -> None:
    """Also among others that always bring something: its length may be damaged, which no checksum tells."""
    damaged = bytearray(record_batch(0, 2))
    damaged[9] = 1
    scripted.logs[T1] = [(0, 2, bytes(damaged))]
    for offset in range(30):
        scripted.append(T0, offset)
    plain = scripted.fetch

    def one_at_a_time(node: int, received: Received) -> FetchResponse:
        answer = plain(node, received)
        for part in answer.responses[0].partitions:
            if part.partition_index == 0:
                part.records = bytes(part.records)[: len(record_batch(0))]
        return answer

    scripted.scripts["Fetch"] = one_at_a_time
    fetched = fetcher(scripted, of(T0, 0, 30), of(T1, 0, 2))
    with pytest.raises(TaskFailedError, match=r"cut off .* t-1 at offset 0"):
        keep_polling(fetched, 1)
    before = fetched.positions[T0]
    close(fetched)

    assert 3 <= before < 10


def test_throttling_is_reported(scripted: ScriptedCluster) -> None:
    """And nothing else: the broker itself waits."""
    scripted.append(T0, 0, 2)
    plain = scripted.fetch

    def throttled(node: int, received: Received) -> FetchResponse:
        answer = plain(node, received)
        answer.throttle_time_ms = 1_500
        return answer

    scripted.scripts["Fetch"] = throttled
    fetched = fetcher(scripted, of(T0, 0, 2))
    read(fetched)
    close(fetched)

    assert 1_500 == fetched.throttled_ms


@pytest.mark.parametrize("version", [4, 7, 11, 12])
def test_topics_are_named_where_brokers_have_no_ids_for_fetch(version: int) -> None:
    """As low as version 4."""
    with ScriptedCluster(T0, versions={FETCH: (0, version)}) as scripted:
        scripted.append(T0, 0, 2)
        fetched = fetcher(scripted, of(T0, 0, 2))
        found = read(fetched)
        close(fetched)

        assert [(T0, 0, 2)] == spans(found)
        assert "t" == scripted.brokers[1].named("Fetch")[0].topics[0].topic


def test_topics_are_named_where_one_has_no_id(scripted: ScriptedCluster) -> None:
    """Brokers that speak of ids may still not have one for each topic."""
    scripted.append(T0, 0, 2)
    plain = scripted.metadata

    def without_id(node: int, received: Received) -> Any:  # noqa: ANN401
        answer = plain(node, received)
        answer.topics[0].topic_id = UUID(int=0)
        return answer

    scripted.scripts["Metadata"] = without_id
    fetched = fetcher(scripted, of(T0, 0, 2))
    read(fetched)
    close(fetched)

    assert {12} == {each.version for each in scripted.brokers[1].received if each.name == "Fetch"}


def test_what_was_removed_comes_no_more(scripted: ScriptedCluster) -> None:
    """Although it was in flight; what replaces it begins at its own start."""
    scripted.append(T0, 0, 2)
    scripted.append(T0, 2, 2)
    scripted.append(T1, 0, 2)
    scripted.max_batches = 1
    fetched = fetcher(scripted, of(T0), of(T1))
    assert [(T0, 0, 2)] == spans(fetched.poll(soon()))
    fetched.remove([T1])
    fetched.add([of(T0, 1, 4)])

    assert [(T0, 1, 2), (T0, 2, 4)] == spans(read(fetched))
    close(fetched)


def test_a_broker_that_stops_answering_is_given_up(scripted: ScriptedCluster) -> None:
    """After the time of a request; the next connection may do better."""
    scripted.append(T0, 0, 2)
    slow, plain = iter([1.5]), scripted.fetch

    def script(node: int, received: Received) -> FetchResponse:
        time.sleep(next(slow, 0))
        return plain(node, received)

    scripted.scripts["Fetch"] = script
    fetched = Fetcher(
        scripted.cluster(request_seconds=0.3), [of(T0, 0, 2)], FetchSettings(max_wait_ms=10)
    )

    assert [(T0, 0, 2)] == spans(read(fetched))
    assert 2 <= len(scripted.brokers[1].named("Fetch"))
    close(fetched)


def test_a_caller_that_was_away_for_long_still_gets_its_answer(scripted: ScriptedCluster) -> None:
    """It is there, so it is not late, and no new connection is made."""
    scripted.append(T0, 0, 2)
    fetched = Fetcher(
        scripted.cluster(request_seconds=0.1), [of(T0)], FetchSettings(max_wait_ms=10)
    )
    scripted.append(T0, 2, 2)
    scripted.max_batches = 1
    fetched.poll(soon())
    time.sleep(0.4)

    assert [(T0, 2, 4)] == spans(fetched.poll(soon()))
    assert 2 == len(scripted.brokers[1].named("ApiVersions"))
    close(fetched)


def test_an_error_of_a_request_for_what_was_removed_brings_nothing_back(
    scripted: ScriptedCluster,
) -> None:
    """Although it concerns all that was asked for: the range that replaces it is the only one."""
    for offset in range(0, 20, 2):
        scripted.append(T0, offset, 2)
    scripted.max_batches = 1
    plain = scripted.fetch
    numbers = count(1)

    def failing(node: int, received: Received) -> FetchResponse:
        answer = plain(node, received)
        if next(numbers) == 2:
            answer.error_code, answer.responses = -1, []
        return answer

    scripted.scripts["Fetch"] = failing
    fetched = fetcher(scripted, of(T0, 0, 20))
    assert [(T0, 0, 2)] == spans(fetched.poll(soon()))
    fetched.add([of(T0, 6, 10)])

    assert [(T0, 6, 8), (T0, 8, 10)] == spans(read(fetched))
    assert {T0: 10} == fetched.positions
    close(fetched)


def test_an_error_that_comes_with_the_last_data_is_still_to_be_raised(
    scripted: ScriptedCluster,
) -> None:
    """Of two leaders, one says that an offset is out of range; the answer of the other finishes all that is left."""
    scripted.leaders[T1] = 2
    scripted.append(T1, 0, 2)
    scripted.codes[T0] = [1]
    scripted.bounds[T0] = (100, 200)
    plain = scripted.fetch

    def slow(node: int, received: Received) -> FetchResponse:
        time.sleep(0.4 if node == 2 else 0)
        return plain(node, received)

    scripted.scripts["Fetch"] = slow
    fetched = fetcher(scripted, of(T0, 7, 200), of(T1, 0, 2))

    with pytest.raises(OffsetOutOfRangeError, match="t-0"):
        read(fetched)
    assert {T0: 7, T1: 2} == fetched.positions
    close(fetched)


def test_errors_of_what_was_removed_are_not_raised(scripted: ScriptedCluster) -> None:
    """A fetcher serves one task after the other, and none fails for another one's partitions."""
    scripted.codes = {T0: [29], T1: [29]}
    scripted.append(T2, 0, 2)
    fetched = fetcher(scripted, of(T0, 7), of(T1, 8))
    with pytest.raises(TaskFailedError, match="Grant"):
        fetched.poll(soon())
    assert {T0: 7, T1: 8} == fetched.positions
    fetched.remove([T0, T1])
    fetched.add([of(T2, 0, 2)])

    assert [(T2, 0, 2)] == spans(read(fetched))
    close(fetched)


def test_what_is_known_of_leaders_is_not_asked_again(scripted: ScriptedCluster) -> None:
    """For the next range of a topic with a known id; until it turns out to be wrong."""
    for offset in range(3):
        scripted.append(T0, offset)
    scripted.max_batches = 1
    known = scripted.ids["t"]
    fetched = fetcher(scripted, FetchRange(place=T0, start=0, end=1, topic_id=known))
    read(fetched)
    fetched.add([FetchRange(place=T0, start=1, end=2, topic_id=known)])
    read(fetched)
    asked = len(scripted.brokers[1].named("Metadata"))
    scripted.leaders[T0] = 2
    fetched.add([FetchRange(place=T0, start=2, end=3, topic_id=known)])
    found = read(fetched)
    close(fetched)

    assert 1 == asked
    assert [(T0, 2, 3)] == spans(found)


def test_a_replica_that_is_nearer_is_fetched_from(scripted: ScriptedCluster) -> None:
    """As the leader says to a client in that rack; and from the leader again when the replica fails."""
    plain = scripted.fetch
    racks = list[str]()

    def nearer(node: int, received: Received) -> FetchResponse:
        racks.append(received.message.rack_id)
        if node == 2:
            scripted.leaders[T0] = 2
        answer = plain(node, received)
        scripted.leaders[T0] = 1
        part = answer.responses[0].partitions[0]
        if node == 1 and len(scripted.brokers[2].named("Fetch")) < 2:
            part.records, part.preferred_read_replica = b"", 2
        elif node == 2 and len(scripted.brokers[2].named("Fetch")) == 2:
            part.records, part.error_code = b"", 6
        return answer

    for offset in range(3):
        scripted.append(T0, offset)
    scripted.max_batches = 1
    scripted.scripts["Fetch"] = nearer
    client = scripted.cluster(rack="here")
    fetched = Fetcher(client, [of(T0, 0, 3)], FetchSettings(max_wait_ms=10))
    found = read(fetched)
    close(fetched)

    assert [(T0, 0, 1), (T0, 1, 2), (T0, 2, 3)] == spans(found)
    assert 2 == len(scripted.brokers[2].named("Fetch"))
    assert {"here"} == set(racks)


def test_what_has_arrived_comes_before_the_error_of_the_next_request(
    scripted: ScriptedCluster,
) -> None:
    """A login that is not renewed any more takes nothing away."""
    scripted.append(T0, 0, 2)
    scripted.append(T0, 2, 2)
    scripted.max_batches = 1
    fetched = fetcher(scripted, of(T0))
    assert [(T0, 0, 2)] == spans(fetched.poll(soon()))
    [leader] = fetched._leaders.values()
    assert leader.connection is not None
    until(lambda: len(scripted.brokers[1].named("Fetch")) >= 2)

    def refuse(*_: object, **__: object) -> None:
        raise LoginRefusedError("not any more")

    leader.connection.send = refuse

    assert [(T0, 2, 4)] == spans(fetched.poll(soon()))
    with pytest.raises(TaskFailedError, match="not any more"):
        fetched.poll(soon())
    close(fetched)
