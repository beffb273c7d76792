"""The functions that Spark runs in its Python processes: one row in, one slot run, one row out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext

from headrace.class_path import make_importable
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.reader import ArrowFlush, read_part
from headrace.task.sql.step import FrameTypes
from headrace.task.sql.writer import write_part
from headrace.task.worker_task import run_slot

OUTCOME_SCHEMA = "slot long, outcome string, reason string"

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def slot_function(
    tickets: Sequence[SlotTicket], plugin_folders: Sequence[str] = ()
) -> ArrowFunction:
    """For ``mapInArrow`` over ``range(len(tickets))`` with as many partitions: runs a slot per row.

    Modules are also imported from *plugin_folders*, if the slot's machine has them.
    """

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make_importable(plugin_folders)
        for batch in batches:
            for slot in batch.column("id").to_pylist():
                report = run_slot(tickets[slot])
                yield _row(slot, report.outcome, report.reason)

    return run


def reading_function(
    tickets: Sequence[SlotTicket],
    types: FrameTypes,
    flush: ArrowFlush,
    plugin_folders: Sequence[str] = (),
) -> ArrowFunction:
    """For ``mapInArrow`` as :func:`slot_function`: reads a slot's share per row, and yields it as rows of frames."""

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make_importable(plugin_folders)
        for batch in batches:
            for slot in batch.column("id").to_pylist():
                yield from read_part(tickets[slot].for_reading(), types, flush)

    return read


def writing_function(
    tickets: Sequence[SlotTicket], plugin_folders: Sequence[str] = ()
) -> ArrowFunction:
    """For ``mapInArrow`` after :func:`reading_function`: writes what was read in the same task."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        make_importable(plugin_folders)
        slot = _this_slot()
        report = write_part(tickets[slot], batches)
        yield _row(slot, report.outcome, report.reason)

    return write


def _this_slot() -> int:
    # The range has one row per partition, and no later step moves rows between partitions.
    context = TaskContext.get()
    assert context is not None, "only called in Spark's Python processes"
    return context.partitionId()


def warm(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """For ``mapInArrow``: makes a Python process import everything that a slot needs, and does nothing else."""
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
