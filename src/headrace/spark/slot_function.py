"""The functions that Spark runs in its Python processes: one row in, one slot run, one row out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark import TaskContext, cloudpickle

from headrace import __version__
from headrace.class_path import make_importable
from headrace.task.slot_report import Outcome
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


def for_this_version(
    function: ArrowFunction, *, tells: bool = True, version: str = __version__
) -> ArrowFunction:
    """*function*, and in a process whose headrace is not of this *version* instead a row that says so, or no row unless it *tells*.

    The reason in that row is the machine and its version, with a space between them.
    """
    # Python unpickles a function by the names of modules and classes, and another version may have others. So it is unpickled only once
    # the version is known, and `run` refers to nothing of headrace.
    pickled, refused = cloudpickle.dumps(function), str(Outcome.REFUSED)

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import pickle  # noqa: PLC0415
        import platform  # noqa: PLC0415

        from headrace import __version__ as found  # noqa: PLC0415

        if found == version:
            yield from pickle.loads(pickled)(batches)  # noqa: S301 (the worker's own)
            return
        try:
            # If both versions get as far as to the claim, the driver refuses it at once. The row comes with the end of the whole job.
            for _ in pickle.loads(pickled)(batches):  # noqa: S301
                pass
        except Exception:  # noqa: BLE001, S110 (how it fails between two versions says nothing)
            pass
        if tells:
            context = TaskContext.get()
            yield pa.RecordBatch.from_pydict(
                {
                    "slot": pa.array([context.partitionId() if context else 0], pa.int64()),
                    "outcome": pa.array([refused], pa.utf8()),
                    "reason": pa.array([f"{platform.node()} {found}"], pa.utf8()),
                }
            )

    return run


def _row(slot: int, outcome: str, reason: str | None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(
        {
            "slot": pa.array([slot], pa.int64()),
            "outcome": pa.array([outcome], pa.utf8()),
            "reason": pa.array([reason], pa.utf8()),
        }
    )
