"""Fetched batches on their way: as they are, or rebuilt for a reason, and the same records either way."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from column_batches import logged
from headrace.connect.encoded import EncodedBatches, EncodedHeader
from headrace.kafka.batches.checksums import crc32c
from headrace.kafka.batches.compression import Compression
from headrace.kafka.batches.errors import CorruptBatchError, UnforwardableError
from headrace.kafka.batches.forwarding import (
    BatchForwarding,
    ForwardingLimits,
    Prepared,
    Reason,
    source_place,
)
from headrace.kafka.batches.headers import (
    CONTROL,
    CRC_BEGINS,
    LOG_APPEND_TIME,
    batch_headers,
)
from headrace.kafka.topic_partition import TopicPartition
from java_batches import JAVA, java_rows
from record_batches import COMPRESSIONS, GZIP, LZ4, PLACE, SNAPPY, ZSTD, Row, batch, read, rows

NOTHING_SMALL = ForwardingLimits(small_records=0)


def fetched(*batches: bytes, start: int = 0, together: bool = False) -> EncodedBatches:
    """*batches* of a source partition that has another name at the target; *together* in one answer, behind other bytes."""
    answers = [memoryview(b"answer" + b"".join(batches))[6:]] if together else batches
    found = [
        (memoryview(data)[each.position : each.end], each)
        for data in answers
        for each in batch_headers(data, PLACE)
    ]
    next_offset = max((each.last_offset for _, each in found), default=start - 1) + 1
    return EncodedBatches(
        topic="source.orders",
        partition=PLACE.partition,
        source_partition={"cluster": "source", **PLACE._asdict()},
        data=[data for data, _ in found],
        headers=[
            EncodedHeader(each.base_offset, each.last_offset, each.record_count)
            for _, each in found
        ],
        start=start,
        next_offset=next_offset,
        offset={"offset": next_offset},
    )


def ways(prepared: Sequence[Prepared]) -> list[Reason | None]:
    """Why each of *prepared* was rebuilt, ``None`` for what was not."""
    return [each.reason for each in prepared]


def source_offsets(prepared: Sequence[Prepared]) -> list[int]:
    """The source offset of each record."""
    return [run.first + at for each in prepared for run in each.runs for at in range(run.records)]


def assert_same(written: Sequence[Row], prepared: Sequence[Prepared]) -> None:
    """The records of *prepared* are those that were *written*, each known by its source offset."""
    found = read(logged(each.batch for each in prepared))
    offsets = source_offsets(prepared)

    # What the broker appended becomes a producer's time, and a record without one stays so.
    expected = [row._replace(timestamp_type=0, headers=list(row.headers)) for row in written]
    assert expected == [
        row._replace(offset=offset) for row, offset in zip(found, offsets, strict=True)
    ]
    for each in prepared:
        assert (each.runs[0].first, sum(run.records for run in each.runs)) == (
            each.first_offset,
            each.batch.record_count,
        )


def simple(first: int, count: int, *, size: int = 10, **how: int) -> bytes:
    """A batch of *count* records of *size* bytes from the offset *first* on."""
    return batch([Row(first + at, 1000 + at, b"k", b"v" * size) for at in range(count)], **how)  # type: ignore[arg-type]


@given(rows(max_size=15), st.data())
def test_every_record_goes_on(written: list[Row], data: st.DataObject) -> None:
    """Whatever the batches are and wherever reading starts: all records from there on, in order, each with its offset."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(written)), max_size=8)))
    parts = [written[a:b] for a, b in pairwise([0, *cuts, len(written)]) if written[a:b]]
    made = [batch(part, compression=data.draw(st.sampled_from(COMPRESSIONS))) for part in parts]
    start = data.draw(st.sampled_from([0, *(row.offset for row in written)]))
    limits = ForwardingLimits(
        max_bytes=20_000,
        batch_bytes=data.draw(st.sampled_from([100, 5000])),
        small_records=data.draw(st.sampled_from([0, 2, 100])),
        compression=data.draw(st.none() | st.just(Compression(ZSTD))),
    )

    forwarding = BatchForwarding()
    batches = fetched(*made, start=start, together=data.draw(st.booleans()))
    prepared = list(forwarding.prepared(batches, limits))

    assert_same([row for row in written if row.offset >= start], prepared)
    sent = [part for part in parts if part[-1].offset >= start]
    assert len(sent) == sum(each.batches for each in forwarding.counted.values())


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_a_whole_batch_goes_on_untouched(compression: int) -> None:
    """Its bytes are those that were fetched, in the same memory."""
    made = simple(70, 200, compression=compression)
    batches = fetched(made)

    (prepared,) = BatchForwarding().prepared(batches, ForwardingLimits())

    assert prepared.batch.data is batches.data[0]
    assert (None, 70, 269) == (prepared.reason, prepared.first_offset, prepared.last_offset)


@pytest.mark.parametrize("name", JAVA)
def test_what_java_has_written_goes_on(name: str) -> None:
    """Formats before 2 are rebuilt, and batches with the broker's time; a record without a time has none."""
    prepared = list(BatchForwarding().prepared(fetched(JAVA[name]), NOTHING_SMALL))

    assert_same(java_rows(name), prepared)
    kind = Reason.LOG_APPEND_TIME if "LogAppend" in name else None
    assert {Reason.OLD_FORMAT if name[0] in "01" else kind} == set(ways(prepared))


def test_a_batch_that_starts_before_the_position_is_cut() -> None:
    """The others of the same answer go on as they are."""
    batches = fetched(simple(0, 10), simple(10, 10), start=4)

    prepared = list(BatchForwarding().prepared(batches, NOTHING_SMALL))

    assert [Reason.STARTS_BEFORE, None] == ways(prepared)
    assert [*range(4, 20)] == source_offsets(prepared)


def test_a_batch_with_gaps_is_rebuilt_without_them() -> None:
    """The broker refuses it as it is; its runs say which source offset each record had."""
    kept = [0, 1, 5, 6, 7, 9]
    made = batch([Row(at, at, b"k", None) for at in kept], fields={"last_delta": 12})

    (prepared,) = BatchForwarding().prepared(fetched(made), NOTHING_SMALL)

    assert (Reason.GAP, ((0, 2), (5, 3), (9, 1))) == (prepared.reason, prepared.runs)
    assert_same([Row(at, at, b"k", None) for at in kept], [prepared])


def test_a_batch_that_compaction_has_emptied_is_left_out() -> None:
    """The cleaner keeps it for the producer's sequence."""
    empty = batch([], fields={"last_delta": 3})

    prepared = list(BatchForwarding().prepared(fetched(empty, simple(4, 2)), NOTHING_SMALL))

    assert [4, 5] == source_offsets(prepared)


def test_a_large_batch_is_split() -> None:
    """As many records together as the target takes."""
    made = simple(5, 100, size=1000)
    limits = ForwardingLimits(max_bytes=30_000, batch_bytes=1_000_000)

    forwarding = BatchForwarding()
    prepared = list(forwarding.prepared(fetched(made), limits))

    assert [Reason.TOO_LARGE] * 4 == ways(prepared)
    assert all(len(each.batch.data) <= 30_000 for each in prepared)
    assert [*range(5, 105)] == source_offsets(prepared)
    assert len(made) == forwarding.counted[Reason.TOO_LARGE].nbytes


def test_a_record_that_the_target_cannot_take_is_named() -> None:
    """Topic, partition and offset of the source, and what to do; what comes before it is handed out."""
    large = batch([Row(2, 0, None, b"v"), Row(3, 0, None, b"v" * 50_000)])
    prepared = BatchForwarding().prepared(
        fetched(simple(0, 2), large), ForwardingLimits(max_bytes=30_000, small_records=0)
    )

    assert [0, 1, 2] == source_offsets([next(prepared) for _ in range(2)])
    with pytest.raises(UnforwardableError, match=r"offset 3 of orders-3 .*'source\.orders'") as no:
        next(prepared)

    assert (PLACE, 3) == (no.value.place, no.value.offset)
    assert "max.message.bytes" in no.value.advice


def test_a_record_that_fits_when_it_is_compressed_goes_on() -> None:
    """What counts is what is sent."""
    made = batch([Row(2, 0, None, b"v" * 50_000)], compression=GZIP)
    batches = fetched(made, start=0)
    limits = ForwardingLimits(max_bytes=len(made) - 1 + 100, small_records=0)

    assert [None] == ways(list(BatchForwarding().prepared(batches, limits)))
    made = batch([Row(1, 0, None, b""), Row(2, 0, None, b"v" * 50_000)], compression=GZIP)
    prepared = list(BatchForwarding().prepared(fetched(made, start=2), limits))
    assert [Reason.STARTS_BEFORE] == ways(prepared)


def test_small_batches_are_gathered() -> None:
    """Those of one compression that follow each other, up to a size; one that stands alone goes on as it is."""
    made = [
        *(simple(at, 1) for at in range(100)),
        simple(100, 500),
        simple(600, 1),
        simple(601, 500),
        *(simple(1101 + at, 1, size=1000, compression=ZSTD) for at in range(10)),
    ]

    forwarding = BatchForwarding()
    prepared = list(forwarding.prepared(fetched(*made), ForwardingLimits(batch_bytes=20_000)))

    assert [None, None, None] == [way for way in ways(prepared) if way is None]
    assert [*range(1111)] == source_offsets(prepared)
    assert (110, 3) == (
        forwarding.counted[Reason.SMALL].batches,
        forwarding.counted[None].batches,
    )
    assert 5 == len(prepared)
    codecs = [
        header.compression
        for header in batch_headers(logged(each.batch for each in prepared), PLACE)
    ]
    assert {ZSTD, 0} == set(codecs)
    assert ZSTD == codecs[-1]


def test_what_is_prepared_again_behind_a_refused_record_is_counted_once() -> None:
    """It is in the same group as that, and counts when it is handed over."""
    made = [simple(0, 2), simple(2, 1, size=5000), simple(3, 2), simple(5, 2)]
    forwarding, limits = BatchForwarding(), ForwardingLimits(max_bytes=2000)
    with pytest.raises(UnforwardableError, match="offset 2"):
        list(forwarding.prepared(fetched(*made), limits))
    assert {Reason.SMALL: 1} == {way: each.batches for way, each in forwarding.counted.items()}

    list(forwarding.prepared(fetched(*made[2:], start=3), limits))
    assert {Reason.SMALL: 3} == {way: each.batches for way, each in forwarding.counted.items()}


def test_what_is_gathered_keeps_its_bytes() -> None:
    """Also what a decoder would read as something else, as a header whose key is no text."""
    made = [bytearray(batch([Row(at, 7, b"k", b"v", [("name", b"x")])])) for at in range(2)]
    for each in made:
        each[each.index(b"name")] = 0xFF
        struct.pack_into(">I", each, CRC_BEGINS - 4, crc32c(each[CRC_BEGINS:]))

    (prepared,) = BatchForwarding().prepared(fetched(*map(bytes, made)), ForwardingLimits())

    assert Reason.SMALL == prepared.reason
    assert 2 == bytes(prepared.batch.data).count(b"\xffame\x02x")


def test_small_batches_are_gathered_with_what_is_rebuilt_anyway() -> None:
    """One batch less is sent."""
    made = [simple(0, 10), simple(10, 1), simple(11, 300)]

    prepared = list(BatchForwarding().prepared(fetched(*made, start=3), ForwardingLimits()))

    assert [Reason.STARTS_BEFORE, None] == ways(prepared)
    assert [*range(3, 311)] == source_offsets(prepared)


@pytest.mark.parametrize(
    ("codec", "expected"),
    [(0, Reason.SMALL), (SNAPPY, Reason.SMALL), (LZ4, Reason.SMALL), (GZIP, None), (ZSTD, None)],
)
def test_what_costs_much_to_compress_is_gathered_only_when_it_is_tiny(
    codec: int, expected: Reason | None
) -> None:
    """Compressing again costs more than a batch does."""
    large, tiny = random.Random(1).randbytes(5_000), b"t"
    for value, reason in ((large, expected), (tiny, Reason.SMALL)):
        made = [batch([Row(at, 0, None, value)], compression=codec) for at in range(3)]
        prepared = list(BatchForwarding().prepared(fetched(*made), ForwardingLimits()))
        assert {reason} == set(ways(prepared))


@pytest.mark.parametrize("checked", [True, False])
def test_a_damaged_batch_is_never_forwarded(checked: bool) -> None:  # noqa: FBT001
    """Its place is named; who has checked it already need not do so again."""
    damaged = bytearray(simple(10, 200))
    damaged[-4] ^= 1
    prepared = BatchForwarding(check_crcs=checked).prepared(
        fetched(simple(0, 10), bytes(damaged)), NOTHING_SMALL
    )

    assert 0 == next(prepared).first_offset
    if not checked:
        assert 10 == next(prepared).first_offset
        return
    with pytest.raises(CorruptBatchError, match="at offset 10 of partition orders-3 is corrupt"):
        next(prepared)


def test_a_damaged_batch_is_never_rebuilt() -> None:
    """What was decoded before it is handed out."""
    damaged = bytearray(simple(10, 20))
    damaged[-4] ^= 1
    prepared = BatchForwarding().prepared(
        fetched(simple(0, 10), bytes(damaged), start=5), ForwardingLimits()
    )

    assert [*range(5, 10)] == source_offsets([next(prepared)])
    with pytest.raises(CorruptBatchError, match="at offset 10 of partition orders-3 is corrupt"):
        next(prepared)


def test_bytes_that_are_no_whole_batch_are_an_error() -> None:
    """Of whoever cut them."""
    whole = fetched(simple(0, 10), simple(10, 10))
    cut = EncodedBatches(
        topic=whole.topic,
        partition=0,
        source_partition=whole.source_partition,
        data=[whole.data[0], whole.data[1][:-1]],
        headers=whole.headers,
        start=0,
        next_offset=20,
        offset={"offset": 20},
    )
    prepared = BatchForwarding().prepared(cut, NOTHING_SMALL)

    assert 0 == next(prepared).first_offset
    with pytest.raises(CorruptBatchError, match="not one whole batch"):
        next(prepared)


def test_a_transaction_marker_is_an_error_of_the_caller() -> None:
    """Rebuilt, it would become a record."""
    with pytest.raises(ValueError, match="offset 0"):
        list(BatchForwarding().prepared(fetched(simple(0, 1, attributes=CONTROL)), NOTHING_SMALL))


def test_nothing_to_send_is_nothing() -> None:
    """Without batches, or with all of them before the position."""
    assert [] == list(BatchForwarding().prepared(fetched(), NOTHING_SMALL))
    assert [] == list(BatchForwarding().prepared(fetched(simple(0, 5), start=5), NOTHING_SMALL))


def test_the_source_is_named_as_far_as_it_is_known() -> None:
    """Otherwise the target is."""
    batches = fetched(simple(0, 1, attributes=LOG_APPEND_TIME))

    assert PLACE == source_place(batches)
    other = EncodedBatches(
        topic="t",
        partition=1,
        source_partition={"file": "x"},
        data=[],
        headers=[],
        start=0,
        next_offset=0,
        offset={"offset": 0},
    )
    assert TopicPartition("t", 1) == source_place(other)
