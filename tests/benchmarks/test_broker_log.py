"""Counting what a broker's log holds."""

from __future__ import annotations

import struct
from pathlib import Path

from benchmarks.broker_log import Batch, PartitionLog, Tally, parsed_batch


def log_batch(*, records: int = 1, landed: int = 5, attributes: int = 0, body: bytes = b"x" * 20):
    """A batch as the broker stores it, of producer 7."""
    head = struct.pack(
        ">qiibIhiqqqhii", 0, 49 + len(body), 0, 2, 0, attributes, 0, 1, landed, 7, 0, 0, records
    )
    return head + body


def log_marker(*, commit: bool):
    """A commit or abort marker of producer 7, landed at 9."""
    record = bytes([0x18, 0, 0, 0, 0x08]) + struct.pack(">hh", 0, int(commit)) + bytes(8)
    return log_batch(landed=9, attributes=0x30, body=record)


def sent(records: int, *, producer: int = 7, transactional: bool = True, landed: int = 5) -> Batch:
    """A batch of records."""
    return Batch(
        size=100,
        records=records,
        landed_ms=landed,
        producer=producer,
        transactional=transactional,
        committed=None,
    )


def ended(*, committed: bool, producer: int = 7, landed: int = 9) -> Batch:
    """A marker."""
    return Batch(
        size=78,
        records=1,
        landed_ms=landed,
        producer=producer,
        transactional=True,
        committed=committed,
    )


def test_header_fields():
    """A stored batch has its size with the bytes before it, its records, time and producer."""
    stored = log_batch(records=12, landed=77, attributes=0x10)

    batch = parsed_batch(stored)

    assert batch is not None
    assert (len(stored), 12, 77, 7, True, None) == (
        batch.size,
        batch.records,
        batch.landed_ms,
        batch.producer,
        batch.transactional,
        batch.committed,
    )


def test_markers_tell_commit_from_abort():
    """The type of a control record is what ends a transaction one way or the other."""
    ends = [parsed_batch(log_marker(commit=commit)) for commit in (True, False)]

    assert [True, False] == [end.committed for end in ends if end is not None]


def test_records_count_when_their_marker_comes():
    """Records of an open transaction are not committed; the marker's time is their time."""
    tally = Tally()
    tally.add(sent(10))
    before = tally.committed
    tally.add(ended(committed=True))

    assert (0, 10, 5, 9, 1) == (
        before,
        tally.committed,
        tally.first_landed_ms,
        tally.last_committed_ms,
        tally.transactions,
    )


def test_aborted_records_never_count():
    """What was aborted is not committed by the producer's next transaction."""
    tally = Tally()
    for batch in (sent(10), ended(committed=False), sent(3), ended(committed=True)):
        tally.add(batch)

    assert 3 == tally.committed


def test_producers_end_their_own_transactions():
    """A marker ends the transaction of its producer only."""
    tally = Tally()
    for batch in (sent(10, producer=1), sent(5, producer=2), ended(committed=True, producer=2)):
        tally.add(batch)

    assert (5, [tally.last_committed_ms]) == (tally.committed, tally.commits_ms)


def test_records_without_transaction_count_at_once():
    """At least once, a record is there as soon as it has landed."""
    tally = Tally()
    tally.add(sent(4, transactional=False, landed=6))

    assert (4, 6) == (tally.committed, tally.last_committed_ms)


def test_following_a_log_that_grows(tmp_path: Path):
    """A batch counts once, when it is whole, and the next segment is found."""
    first, second = tmp_path / "00000000000000000000.log", tmp_path / "00000000000000000002.log"
    stored = log_batch(records=2)
    log = PartitionLog(tmp_path)
    counts = [log.follow().committed]
    first.write_bytes(stored + stored[:70])
    counts.append(log.follow().committed)
    first.write_bytes(stored + stored)
    second.write_bytes(stored)
    counts.append(log.follow().committed)

    assert [0, 2, 6] == counts
