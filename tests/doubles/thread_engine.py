"""An engine without Spark and without processes: each slot in a thread, for tests that want to be quick."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from headrace.connect.errors import TaskFailedError
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from headrace.task.worker_task import run_slot


class ThreadEngine:
    """Implements ``Engine``; *jobs* counts the micro-batches that it was given.

    Nothing can end a slot that hangs, so a test lets go what it holds.
    """

    def __init__(self, *, slots: int = 2) -> None:
        self.slots = slots
        self.is_starting = False
        self.jobs = 0

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Run one thread per ticket and wait for all of them."""
        refuse_sql(sql_stage)
        self.jobs += 1
        threads = [
            threading.Thread(target=run_slot, args=(ticket,), name="test-slot", daemon=True)
            for ticket in tickets
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

    def close(self) -> None:
        """Nothing to release."""


def refuse_sql(sql_stage: SqlStage | None) -> None:
    """For engines without SQL: raises :class:`~headrace.connect.errors.TaskFailedError` if *sql_stage* is given."""
    if sql_stage is not None:
        raise TaskFailedError("A SparkSql step needs Spark, which this data plane does not use.")
