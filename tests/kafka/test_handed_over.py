"""Batches that were handed over: which record was refused, and what was copied where."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from headrace.kafka.batches.errors import UnforwardableError
from headrace.kafka.batches.forwarding import SourceRun
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.gathered_rows import RowNumbers
from headrace.kafka.handed_over import CopiedRun, HandedOver, RowOrigin, SourceOrigin
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.producer_errors import BatchRefusedError

TARGET = TopicPartition("source.t", 1)
PLACE = TopicPartition("t", 1)
SOURCE = {"cluster": "source", "topic": "t", "partition": 1}
ROWS = RowOrigin(
    "t",
    np.array([9, 0, -1, 3]),
    np.array([9, -1, 5, 7]),
    np.array([2, 3, 1]),
    RowNumbers(starts=(0, 2), numbers=(4, 5)),
)


def refused(error: str, *, number: int = 0, rows: tuple[int, ...] = ()) -> BatchRefusedError:
    """The broker refuses the batch of that number."""
    return BatchRefusedError(
        TARGET, number, error=error, advice="Do it.", detail="It is so.", rows=rows
    )


def copied(*runs: tuple[int, int], target: TopicPartition = TARGET) -> SourceOrigin:
    """A batch of copied records, by the first source offsets and numbers of its runs."""
    return SourceOrigin(SOURCE, PLACE, target, [SourceRun(*run) for run in runs])


@pytest.mark.parametrize(
    ("error", "rows", "sizes", "place"),
    [
        ("MESSAGE_TOO_LARGE", (), (3, 7), None),
        ("INVALID_RECORD", (2, 0), (0, None), (4, 1)),
        ("INVALID_RECORD", (), (None, 5), None),
        ("INVALID_TIMESTAMP", (1,), (3, 7), (5, 1)),
    ],
)
def test_a_refused_record_is_told_by_its_sizes(
    error: str,
    rows: tuple[int, ...],
    sizes: tuple[int | None, int | None],
    place: tuple[int, int] | None,
) -> None:
    """And by its place, where the broker names it; otherwise it is the largest, where that is the reason, or the first."""
    handed = HandedOver()
    handed.add_rows(0, ROWS)

    found = handed.refusal(refused(error, rows=rows))

    assert isinstance(found, LateRefusalError)
    assert ("t", *sizes) == (found.topic, found.key_bytes, found.value_bytes)
    assert place == found.place
    assert f"{error}: It is so. Do it." in str(found)


def test_what_befalls_a_whole_batch_of_rows_stays_as_it_is() -> None:
    """As does what is not known."""
    handed = HandedOver()
    handed.add_rows(0, ROWS)
    damaged, unknown = refused("CORRUPT_MESSAGE"), refused("INVALID_RECORD", number=1)

    assert damaged is handed.refusal(damaged)
    assert unknown is handed.refusal(unknown)


@pytest.mark.parametrize(
    ("rows", "first", "last", "told"),
    [
        ((), 10, 25, "records at the offsets 10 to 25 of t-1"),
        ((1,), 11, 11, "record at offset 11 of t-1"),
        ((2,), 20, 20, "record at offset 20 of t-1"),
        ((99,), 25, 25, "record at offset 25 of t-1"),
    ],
)
def test_a_refused_copy_is_told_by_source_offsets(
    rows: tuple[int, ...], first: int, last: int, told: str
) -> None:
    """Those of the record that the broker names, or of all in the batch; it survives pickling."""
    handed = HandedOver()
    handed.add_copied(0, copied((10, 2), (20, 6)))

    found = pickle.loads(pickle.dumps(handed.refusal(refused("INVALID_TIMESTAMP", rows=rows))))

    assert isinstance(found, UnforwardableError)
    assert (PLACE, first, last) == (found.place, found.offset, found.last)
    assert str(found) == (
        f"The {told} cannot be copied: Kafka refused a batch for source.t-1: INVALID_TIMESTAMP: It is so. Do it."
    )


def test_runs_that_go_on_on_both_sides_are_one() -> None:
    """Across batches; gaps at the source, markers at the target and other partitions end them."""
    other = TopicPartition("source.t", 2)
    handed = HandedOver()
    bases: dict[int, int | None] = {0: 100, 1: 0, 2: 110, 3: 121, 4: None, 5: 130}
    handed.add_copied(0, copied((10, 10)))
    handed.add_copied(1, copied((5, 1), target=other))
    handed.add_copied(2, copied((20, 5), (26, 5)))
    handed.add_copied(3, copied((31, 4)))
    handed.add_copied(4, copied((35, 4)))
    handed.add_copied(5, copied((39, 1)))

    assert [
        CopiedRun(SOURCE, TARGET, 10, 100, 15),
        CopiedRun(SOURCE, other, 5, 0, 1),
        CopiedRun(SOURCE, TARGET, 26, 115, 5),
        CopiedRun(SOURCE, TARGET, 31, 121, 4),
        CopiedRun(SOURCE, TARGET, 39, 130, 1),
    ] == handed.copied(bases.get)


def test_acknowledged_rows_are_forgotten() -> None:
    """Also those after one that is stuck. What was copied is kept until the transaction ends."""
    handed, batches = HandedOver(), range(100)
    for number in batches:
        handed.add_rows(number, ROWS)
        handed.forget_acknowledged(lambda each: each not in (0, 99))
    handed.add_copied(100, copied((0, 1)))
    errors = [refused("INVALID_RECORD", number=number) for number in range(101)]
    kept = [each for each in batches if handed.refusal(errors[each]) is not errors[each]]

    assert (0, 99) == (kept[0], kept[-1])
    assert len(kept) <= 16
    handed.forget_rows()
    assert errors[99] is handed.refusal(errors[99])
    assert isinstance(handed.refusal(errors[100]), UnforwardableError)
    handed.forget()
    assert errors[100] is handed.refusal(errors[100])
