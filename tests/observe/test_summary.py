"""What connectors have done in one run, added up from events."""

from __future__ import annotations

from headrace.observe import events
from headrace.observe.summary import ConnectorSummary, Summaries


def progress(records: int, *, skipped: int = 0) -> events.SlotProgress:
    """So many committed records of ten bytes, and two more that are sent."""
    return events.SlotProgress(
        connector="c",
        records=records + 2,
        bytes=records * 10 + 20,
        committed_records=records,
        committed_bytes=records * 10,
        skipped=skipped,
    )


def begun(*objects: str) -> events.MicroBatchStarted:
    """A micro-batch that reads *objects*."""
    return events.MicroBatchStarted(connector="c", slots=1, objects=objects)


def test_micro_batches_are_added_up() -> None:
    """What is reported again of the open one counts once, and so does a file that two of them have read."""
    now = iter([10.0, 14.5])
    summaries = Summaries(clock=lambda: next(now, 99.0))
    for event in (
        events.ConnectorStarted(connector="c"),
        begun("a", "b"),
        progress(1),
        progress(3, skipped=1),
        begun("b"),
        progress(4),
        events.ConnectorStopped(connector="c"),
    ):
        summaries(event)

    assert {
        "c": ConnectorSummary(records=7, bytes=70, files=2, seconds=4.5, skipped=1)
    } == summaries.by_connector()


def test_a_connector_that_runs_counts_up_to_now() -> None:
    """And one that could not be started has done nothing."""
    now = iter([10.0])
    summaries = Summaries(clock=lambda: next(now, 12.0))
    summaries(events.ConnectorStarted(connector="c"))
    summaries(events.ConnectorFailed(connector="d", reason="no"))

    assert {"c": ConnectorSummary(seconds=2.0)} == summaries.by_connector()
