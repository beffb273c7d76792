"""Which tasks' sources are away is reported once, until something is delivered again."""

from __future__ import annotations

from headrace.runtime.batch_progress import SourceWaits
from headrace.runtime.micro_batch import MicroBatch
from headrace.task.slot_report import Outcome, SlotReport
from runtime.test_micro_batch import micro_batch


def beat(batch: MicroBatch, away: str | None, *, records: int = 0, slot: int = 0) -> None:
    """A slot is heard."""
    batch.beat(batch.tokens()[slot], {"records": records, "source_away": away})


def unreported(waits: SourceWaits, batch: MicroBatch) -> list[tuple[int, str]]:
    """What is news."""
    return waits.unreported(batch.slots)


def test_a_source_that_stays_away_is_told_once_however_it_says_so() -> None:
    """Its sentence may hold a time or a count; and an empty answer in between delivers nothing."""
    waits, batch = SourceWaits(), micro_batch()
    heard: list[tuple[int, str]] = []
    for away in ("away for 1 s", "away for 2 s", None, "away for 1 s"):
        beat(batch, away)
        heard += unreported(waits, batch)

    assert [(0, "away for 1 s")] == heard


def test_after_a_delivery_it_is_told_again() -> None:
    """It was there in between."""
    waits, batch = SourceWaits(), micro_batch()
    heard: list[tuple[int, str]] = []
    for away, records in (("a", 5), ("b", 5), (None, 6), ("c", 6), ("d", 6)):
        beat(batch, away, records=records)
        heard += unreported(waits, batch)

    assert [(0, "a"), (0, "c")] == heard


def test_another_micro_batch_alone_is_no_reason_to_tell_again() -> None:
    """Its slots count from 0; what they deliver there counts."""
    waits, first, second = SourceWaits(), micro_batch(), micro_batch()
    beat(first, "a", records=5)
    heard = unreported(waits, first)
    waits.begin()
    for away, records in (("b", 0), (None, 1), ("c", 1)):
        beat(second, away, records=records)
        heard += unreported(waits, second)

    assert [(0, "a"), (0, "c")] == heard


def test_each_task_has_its_own_source() -> None:
    """What one delivers says nothing of the other; one that has ended waits for nothing."""
    waits, batch = SourceWaits(), micro_batch(tasks=2)
    beat(batch, "a")
    beat(batch, None, records=5, slot=1)
    heard = unreported(waits, batch)
    batch.end(
        batch.tokens()[1], SlotReport(outcome=Outcome.ASKED, progress={"source_away": "late"})
    )

    assert ([(0, "a")], []) == (heard, unreported(waits, batch))


def test_that_sources_are_read_again_is_told_once() -> None:
    """When the last of them answers; not by another micro-batch, whose slots have not been heard."""
    waits, batch = SourceWaits(), micro_batch(tasks=2)
    heard: list[bool] = []
    for slot, away in ((0, None), (0, "a"), (1, "a"), (0, None), (1, None), (0, None)):
        beat(batch, away, slot=slot)
        waits.unreported(batch.slots)
        heard.append(waits.have_ended(batch.slots))
    assert [False, False, False, False, True, False] == heard

    beat(batch, "b", records=1)
    beat(batch, "b", records=2)
    waits.unreported(batch.slots)
    waits.begin()
    assert not waits.have_ended(micro_batch().slots)
