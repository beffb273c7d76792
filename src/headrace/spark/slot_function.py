"""The function that Spark carries to its Python processes: one row in, one slot run, one row out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa

from headrace.slot.entry import run_slot
from headrace.slot.plugin_folders import make_importable
from headrace.slot.work import SlotTicket

OUTCOME_SCHEMA = "slot long, outcome string, reason string"

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def slot_function(
    tickets: Sequence[SlotTicket], plugin_folders: Sequence[str] = ()
) -> ArrowFunction:
    """For ``mapInArrow`` over ``range(len(tickets))`` with as many partitions: runs a slot per row.

    *plugin_folders* are imported from, too, where the slot's machine has them.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make_importable(plugin_folders)
        for batch in batches:
            for slot in batch.column("id").to_pylist():
                report = run_slot(tickets[slot])
                yield _row(slot, report.outcome, report.reason)

    return run


def warm(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: makes a Python process load everything a slot needs, and nothing else."""
    for batch in batches:
        for slot in batch.column("id").to_pylist():
            yield _row(slot, "warm", None)


def _row(slot: int, outcome: str, reason: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "slot": pa.array([slot], pa.int64()),
            "outcome": pa.array([outcome], pa.utf8()),
            "reason": pa.array([reason], pa.utf8()),
        }
    )
