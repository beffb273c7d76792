"""Rows as record batches: every row is in one, where its key belongs, and each partition keeps the order."""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from column_batches import logged
from headrace.kafka.batches.encoding import Encoding, RecordTooLargeError
from headrace.kafka.partitioner import java_partition
from headrace.kafka.row_batches import RowBatch, StickyPartitions, columns_of, row_batches
from headrace.kafka.sender import EncodedRecords
from record_batches import read

NOW = 1_700_000_000_123
STICKY = 3


def records(
    values: list[bytes | None],
    *,
    keys: list[bytes | None] | None = None,
    timestamps: list[int | None] | int | None = 7,
    headers: list[list[tuple[str, bytes | None]]] | None = None,
    partition: int | None = None,
) -> EncodedRecords:
    """Records for the topic t."""
    times = pa.array(timestamps, pa.int64()) if isinstance(timestamps, list) else timestamps
    return EncodedRecords(
        topic="t",
        values=pa.array(values, pa.binary()),
        keys=None if keys is None else pa.array(keys, pa.binary()),
        headers=headers,
        timestamps=times,
        partition=partition,
    )


def batched(
    given: EncodedRecords, how: Encoding | None = None, *, partitions: int = 5
) -> list[RowBatch]:
    """The batches; those of records without keys go to one partition."""
    return list(
        row_batches(
            columns_of(given, now=NOW),
            how or Encoding(),
            keys=given.keys,
            partition=given.partition,
            partitions=lambda: partitions,
            sticky=lambda _count, _nbytes: STICKY,
        )
    )


keys = st.none() | st.binary(max_size=8)
headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)


@given(
    st.lists(st.tuples(keys, st.none() | st.binary(max_size=20), headers), max_size=40),
    st.sampled_from([100, 10_000]),
)
def test_each_row_goes_where_its_key_belongs(
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]], batch_bytes: int
) -> None:
    """All of them, in their order, whatever is in them."""
    given = records(
        [value for _, value, _ in rows],
        keys=[key for key, _, _ in rows],
        headers=[list(each) for _, _, each in rows],
        timestamps=list(range(len(rows))),
    )

    batches = batched(given, Encoding(batch_bytes=batch_bytes))

    assert list(range(len(rows))) == sorted(row for each in batches for row in each.rows)
    by_partition = defaultdict[int, list[RowBatch]](list)
    for each in batches:
        by_partition[each.partition].append(each)
    for partition, found in by_partition.items():
        numbers = [row for each in found for row in each.rows]
        assert numbers == sorted(numbers)
        for row, record in zip(numbers, read(logged(each.batch for each in found)), strict=True):
            key, value, named = rows[row]
            assert (row, key, value, named) == (
                record.timestamp,
                record.key,
                record.value,
                record.headers,
            )
            assert partition == (STICKY if key is None else java_partition(key, 5))


def test_a_partition_that_is_given_counts_for_all() -> None:
    """Whatever their keys are; nobody is asked how many there are."""
    given = records([b"1", b"2"], keys=[b"a", None], partition=4)

    (batch,) = row_batches(
        columns_of(given, now=NOW),
        Encoding(),
        keys=given.keys,
        partition=4,
        partitions=lambda: pytest.fail("asked"),
        sticky=lambda *_: pytest.fail("asked"),
    )

    assert (4, [0, 1]) == (batch.partition, batch.rows.tolist())


def test_no_rows_ask_for_nothing() -> None:
    """Not even how many partitions there are."""
    empty = columns_of(records([]), now=NOW)

    assert [] == list(
        row_batches(
            empty,
            Encoding(),
            keys=None,
            partition=None,
            partitions=lambda: pytest.fail("asked"),
            sticky=lambda *_: pytest.fail("asked"),
        )
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [NOW, NOW, NOW]),
        (5, [5, 5, 5]),
        (-1, [NOW, NOW, NOW]),
        ([0, None, -1], [0, NOW, NOW]),
    ],
)
def test_a_record_without_a_time_gets_that_of_sending(
    given: list[int | None] | int | None, expected: list[int]
) -> None:
    """As with Java's producer."""
    (batch,) = batched(records([b"1", b"2", b"3"], timestamps=given, partition=0))

    assert expected == [record.timestamp for record in read(logged([batch.batch]))]


def test_a_record_that_is_too_large_is_named_by_its_row() -> None:
    """Also where others are for other partitions."""
    given = records([b"v", b"w", b"x" * 500, b"y"], keys=[b"a", b"b", b"c", b"d"])

    with pytest.raises(RecordTooLargeError) as caught:
        batched(given, Encoding(batch_bytes=100, max_bytes=300))

    assert 2 == caught.value.row


def test_records_without_keys_stay_with_a_partition_until_a_batch_is_full() -> None:
    """Then they go to the next one, after the last to the first; topics do not know of each other."""
    sticky = StickyPartitions(1000, first=lambda count: count - 1)

    chosen = [sticky.next("t", 3, nbytes) for nbytes in (400, 600, 1, 999, 5000, 1, 1)]

    assert [2, 2, 0, 0, 1, 2, 2] == chosen
    assert 1 == sticky.next("u", 2, 10)
    assert 0 == sticky.next("t", 2, 10)
