"""Copied records that are not written: which they are, what comes before and after them, and what their errors say."""

from __future__ import annotations

import pytest

from headrace.connect.encoded import EncodedBatches, EncodedHeader
from headrace.kafka.batches.decoding import Decoding, decoded
from headrace.kafka.batches.errors import CorruptBatchError, UnforwardableError
from headrace.kafka.batches.forwarding import SourceRun
from headrace.kafka.batches.headers import batch_headers
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.refused_records import refused_by_broker, refused_unsent
from headrace.kafka.topic_partition import TopicPartition
from record_batches import Row, batch

PLACE = TopicPartition("t", 0)
SOURCE = {"topic": "t", "partition": 0}
TOO_LARGE = UnforwardableError(PLACE, 7, "it is too large", advice="Do it.")
DAMAGED = CorruptBatchError(PLACE, 5, "its checksum is wrong")


def made(first: int, count: int = 5) -> bytes:
    """A batch whose values are its offsets."""
    return batch([Row(first + at, 1_000, b"k", b"%d" % (first + at)) for at in range(count)])


def three(*, start: int = 0) -> EncodedBatches:
    """Batches of five records each; the positions count as a mirror's do: the last offset that is copied."""
    return EncodedBatches(
        topic="A.t",
        partition=0,
        source_partition=SOURCE,
        data=[memoryview(made(first)) for first in (0, 5, 10)],
        headers=[EncodedHeader(first, first + 4, 5) for first in (0, 5, 10)],
        start=start,
        next_offset=17,
        offset={"offset": 16, "clusterId": "c"},
    )


def firsts(batches: EncodedBatches | None) -> list[int]:
    """The offsets at which the batches begin."""
    return [] if batches is None else [each.base_offset for each in batches.headers]


def test_a_damaged_batch_is_refused_with_its_bytes() -> None:
    """One error for all of it: nobody knows its records."""
    before, refused, rest = refused_unsent(three(), DAMAGED, 5)

    assert ([], [10]) == (firsts(before), firsts(rest))
    assert rest is not None
    assert (10, 17, {"offset": 16, "clusterId": "c"}) == (rest.start, rest.next_offset, rest.offset)
    [(key, error)] = refused.errors()
    assert key is None
    assert "t-0, offsets 5 to 9: its checksum is wrong." == str(error)
    assert error.bad is not None
    assert (made(5), "A.t") == (error.bad.raw, error.bad.topic)
    assert {"offset": 9, "clusterId": "c"} == error.bad.source_offset
    assert 0 == refused.handed_over


def test_what_was_not_sent_before_the_damage_is_left_to_be_sent() -> None:
    """From where nothing was sent yet."""
    before, _, rest = refused_unsent(three(start=2), DAMAGED, 2)

    assert before is not None
    assert ([0], 2, 5) == (firsts(before), before.start, before.next_offset)
    assert [10] == firsts(rest)


def test_a_record_that_is_too_large_is_refused_alone() -> None:
    """The others of its batch come after it."""
    before, refused, rest = refused_unsent(three(), TOO_LARGE, 7)

    assert before is None or before.start == 7
    assert rest is not None
    assert ([5, 10], 8) == (firsts(rest), rest.start)
    [(key, error)] = refused.errors()
    assert error.bad is not None
    assert (b"k", b"7") == (key, error.bad.raw)
    assert "t-0, offset 7: it is too large. Do it." == str(error)
    assert {"offset": 7, "clusterId": "c"} == error.bad.source_offset


def test_what_does_not_say_where_it_is_cannot_be_refused_alone() -> None:
    """Everything behind it would be guessed."""
    with pytest.raises(CorruptBatchError):
        refused_unsent(three(), CorruptBatchError(PLACE, -1, "no one knows"), 0)


def test_a_damaged_batch_that_is_sent_in_part_is_an_error() -> None:
    """No position lies within it: what is sent may not be committed."""
    with pytest.raises(CorruptBatchError, match="its checksum is wrong"):
        refused_unsent(three(), DAMAGED, 7)


def test_of_a_refused_batch_the_broker_may_take_the_other_records() -> None:
    """Where it has said which are the reason; source offsets may have gaps."""
    runs = [SourceRun(100, 2), SourceRun(200, 3)]

    refused, left = refused_by_broker(
        three().released(), runs, UnstampedBatch(made(0), 5), TOO_LARGE, rows=(1, 3)
    )

    assert [b"1", b"3"] == [error.bad and error.bad.raw for _, error in refused.errors()]
    assert (101, 201, 2) == (refused.first, refused.last, refused.handed_over)
    assert left is not None
    assert (SourceRun(100, 1), SourceRun(200, 1), SourceRun(202, 1)) == left.runs
    octets = memoryview(left.batch.data)
    headers, how = batch_headers(octets, PLACE), Decoding(check_crcs=False)
    [columns] = decoded(octets, headers, place=PLACE, start=0, how=how)
    assert [b"0", b"2", b"4"] == columns["value"].to_pylist()


@pytest.mark.parametrize("data", [made(0), made(0)[:-3] + b"\xff\xff\xff"], ids=["read", "unread"])
def test_without_a_reason_all_of_a_refused_batch_is(data: bytes) -> None:
    """Record by record, or, where it cannot be read, as it is."""
    refused, left = refused_by_broker(
        three().released(), [SourceRun(0, 5)], UnstampedBatch(data, 5), TOO_LARGE, rows=()
    )

    raws = [error.bad and error.bad.raw for _, error in refused.errors()]
    assert ([b"%d" % at for at in range(5)] if data == made(0) else [data]) == raws
    assert (0, 4, 5) == (refused.first, refused.last, refused.handed_over)
    assert left is None
