"""What is reported about a micro-batch."""

from __future__ import annotations

from collections import Counter

import pytest

from headrace.observe.events import Event, SlotProgress, TaskCounts, Waiting
from headrace.offsets.target import DriverStore
from headrace.runtime.batch_progress import BatchProgress, SourceWaits
from headrace.runtime.micro_batch import MicroBatch
from headrace.task.connector_spec import ConnectorSpec, Delivery, PluginChoice
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotWork

STRINGS = PluginChoice(class_name="string")


@pytest.fixture
def batch() -> MicroBatch:
    """Of one slot."""
    work = SlotWork(
        spec=ConnectorSpec(
            name="c",
            props={},
            max_tasks=1,
            delivery=Delivery.AT_LEAST_ONCE,
            producer={},
            offsets=DriverStore(),
            key_converter=STRINGS,
            value_converter=STRINGS,
            header_converter=STRINGS,
        ),
        task=0,
        lease_seconds=10.0,
        grace_seconds=5.0,
        transaction_seconds=60.0,
        task_class="m:T",
        config={},
        planned=True,
        splits=(),
        transactional_id=None,
    )
    return MicroBatch([work], {}, run="r")


def test_a_job_that_does_not_return_is_told_with_its_slots(batch: MicroBatch) -> None:
    """Those that still run; and where all have ended, that it is the job that is waited for."""
    heard, begun = list[Event](), list[int]()
    progress = BatchProgress("c", batch, heard.append, waits=SourceWaits(), has_begun=begun.append)
    (token,) = batch.tokens()
    batch.claim(token, pid=1, host="h")
    progress.slots_still_taken()
    batch.end(token, SlotReport(outcome=Outcome.FINISHED))
    progress.slots_still_taken()

    running, ended = [each.reason for each in heard if isinstance(each, Waiting)]
    assert "The slots of a job that was given up are still occupied (task 0 on h)." == running
    assert ended.startswith(
        "All slots of a job that was given up have ended, but the Spark job has not"
    )


def test_what_a_task_counts_is_told_for_metrics(batch: MicroBatch) -> None:
    """Each number under its own name."""
    heard, begun = list[Event](), list[int]()
    (token,) = batch.tokens()
    batch.claim(token, pid=1, host="h")
    done = Progress(
        polled_records=1,
        committed_records=2,
        dead_lettered=3,
        skipped=4,
        moved_offsets=5,
        record_errors=6,
        retries=7,
        errors_logged=8,
        dead_letters_failed=9,
        copied_batches={"gap": 10},
        copied_bytes={"gap": 11, "forwarded": 12},
    )
    batch.beat(token, done.as_message())

    BatchProgress("c", batch, heard.append, waits=SourceWaits(), has_begun=begun.append).report()

    assert [0] == begun
    (event,) = [each for each in heard if isinstance(each, SlotProgress)]
    expected = TaskCounts(
        task=0,
        polled_records=1,
        committed_records=2,
        dead_lettered=3,
        skipped=4,
        moved_offsets=5,
        record_errors=6,
        retries=7,
        errors_logged=8,
        dead_letters_failed=9,
        copied_batches=Counter(gap=10),
        copied_bytes=Counter(gap=11, forwarded=12),
    )
    assert (expected,) == event.tasks
