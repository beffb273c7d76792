"""What leaves with a producer's fields: nothing without them, and no other record than was there."""

from __future__ import annotations

import struct
from typing import Final

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    batch_headers,
)
from headrace.kafka.batches.producer_batch import UnstampedBatch, stamped
from record_batches import COMPRESSIONS, PLACE, Row, batch, read, rows, sealed

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
bits = st.sampled_from([0, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON, 0x80])
numbers = st.integers(0, 3) | st.integers(-1, 3) | st.integers(-(2**31), 2**31)
octets = st.integers(0, 255)


def unbroken(rows: list[Row]) -> list[Row]:
    """*rows* without gaps between offsets."""
    return [row._replace(offset=rows[0].offset + at) for at, row in enumerate(rows)]


def whole(batch: UnstampedBatch, **fields: int | bool) -> bytes:
    """What is sent of *batch*; fields that do not matter are left out."""
    given = {"producer_id": 5, "epoch": 0, "sequence": 0, "transactional": True, **fields}
    return b"".join(bytes(part) for part in stamped(batch, **given))  # type: ignore[arg-type]


@given(st.data())
def test_nothing_leaves_a_transaction_without_its_producer(data: st.DataObject) -> None:
    """Whatever goes in: it is refused, or has a producer's id, epoch and sequence and the transactional bit, and no other one."""
    written = data.draw(rows(max_size=5))
    attributes = sum(data.draw(st.sets(bits)))
    made = bytearray(
        batch(written, compression=data.draw(st.sampled_from(COMPRESSIONS)), attributes=attributes)
    )
    for at, octet in data.draw(st.just({}) | st.dictionaries(st.integers(0, 69), octets)).items():
        made[at % len(made)] = octet
    producer_id, epoch, sequence = data.draw(st.tuples(numbers, numbers, numbers))
    given = UnstampedBatch(made, len(written))
    try:
        sent = whole(given, producer_id=producer_id, epoch=epoch, sequence=sequence)
    except ValueError:
        return
    offset, length, leader, magic, crc, found, delta, _, _, *own, count = HEADER.unpack_from(sent)

    assert [producer_id, epoch, sequence] == own
    assert min(own) >= 0
    assert TRANSACTIONAL == found & ~7
    assert (0, len(sent) - 12, -1, 2) == (offset, length, leader, magic)
    assert count == delta + 1
    assert crc == google_crc32c.value(sent[21:])


@given(rows(), st.sampled_from(COMPRESSIONS), st.sets(st.sampled_from(["was", "is"])))
def test_records_are_those_that_were_there(
    written: list[Row], compression: int, transactional: set[str]
) -> None:
    """From offset 0 on; whether the source had a transaction of its own does not matter."""
    written = unbroken(written)
    made = batch(
        written,
        compression=compression,
        transactional="was" in transactional,
        producer_id=9_000,
    )

    sent = whole(
        UnstampedBatch(memoryview(made), len(written)), transactional="is" in transactional
    )

    (header,) = batch_headers(sent, PLACE)
    assert [row._replace(offset=at) for at, row in enumerate(written)] == read(sent)
    assert ("is" in transactional, 5) == (header.is_transactional, header.producer_id)


def test_a_delete_horizon_is_not_kept() -> None:
    """Times count from the base timestamp all the same, and the target's cleaner counts by its own clock."""
    written = [Row(at, 1000 + at, b"k", None, []) for at in range(3)]
    made = batch(written, attributes=DELETE_HORIZON)

    sent = whole(UnstampedBatch(made, 3))

    assert written == read(sent)
    assert TRANSACTIONAL == HEADER.unpack_from(sent)[5]


def test_damage_is_not_hidden() -> None:
    """A batch that goes on with the checksum that it had goes on with a wrong one, if that was wrong."""
    damaged = bytearray(batch([Row(0, 0, None, b"v" * 100, [])]))
    damaged[-20] ^= 1

    sent = whole(UnstampedBatch(damaged, 1, has_checksum=True))

    with pytest.raises(CorruptBatchError, match="checksum"):
        read(sent)


def test_records_are_not_copied() -> None:
    """The second part is the memory that came in."""
    made = bytearray(batch([Row(0, 0, b"k", b"v", [])]))

    _, records = stamped(
        UnstampedBatch(made, 1), producer_id=1, epoch=0, sequence=0, transactional=True
    )

    made[-2] ^= 1
    assert made[61:] == records


@pytest.mark.parametrize(
    ("made", "count", "reason"),
    [
        (batch([Row(0, 0, None, b"v")], attributes=CONTROL), 1, "transaction marker"),
        (batch([Row(0, 0, None, b"v")], attributes=LOG_APPEND_TIME), 1, "broker's time"),
        (batch([Row(0, 0, None, b"v"), Row(2, 0, None, b"v")]), 2, "2 records in 3 offsets"),
        (batch([Row(0, 0, None, b"v")]), 2, "1 records"),
        (batch([Row(0, 0, None, b"v")]) + b"more", 1, "no batch"),
        (batch([Row(0, 0, None, b"v")])[:-1], 1, "no batch"),
        (batch([Row(0, 0, None, b"v")]).replace(b"\x02", b"\x01", 1), 1, "format 2"),
        (sealed(bytearray(batch([]))), 0, "no batch"),
        (b"", 0, "no batch"),
    ],
)
def test_what_would_be_other_records_is_refused(made: bytes, count: int, reason: str) -> None:
    """A mistake of the caller: these are rebuilt, or not sent at all."""
    with pytest.raises(ValueError, match=reason):
        whole(UnstampedBatch(made, count))


@pytest.mark.parametrize(
    "wrong", [{"producer_id": -1}, {"epoch": -1}, {"sequence": -1}, {"sequence": 1 << 31}]
)
def test_no_batch_is_without_a_producer(wrong: dict[str, int]) -> None:
    """Within a transaction and outside: the broker would not know the batch again."""
    made = UnstampedBatch(batch([Row(0, 0, None, b"v")]), 1)
    for transactional in (True, False):
        with pytest.raises(ValueError, match="no producer id"):
            whole(made, transactional=transactional, **wrong)
