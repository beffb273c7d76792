"""Where the transactions of a task loop end."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.task.connector_spec import BoundaryKind
from headrace.task.transaction_boundary import BoundaryRequests
from task.loop import Loop, ScriptedTask, batch, record


def test_the_poll_boundary_commits_after_each_poll() -> None:
    """transaction.boundary=poll ends a transaction after every poll."""
    loop = Loop(ScriptedTask(batch("a", end=1), batch("b", end=2)))

    loop.run()

    assert 2 == loop.sender.commits


def test_the_interval_boundary_commits_when_its_time_is_over() -> None:
    """Polls share a transaction until the interval is over."""
    moments = iter([0.1, 1.5, 1.5, 1.5, 1.5, 1.6, 1.7, 1.8, 1.9, 1.9])
    loop = Loop(
        ScriptedTask(batch("a", end=1), batch("b", end=2), batch("c", end=3)),
        kind=BoundaryKind.INTERVAL,
        times=moments,
    )

    loop.run()

    assert 2 == loop.sender.commits
    assert ["a", "b", "c"] == loop.values()


def test_the_connector_places_the_end_of_a_transaction() -> None:
    """With boundary connector nothing is committed until the task says so."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)

    def commit() -> SourceBatch:
        loop.requests.commit_transaction()
        return batch("b", end=2)

    loop.task.script = [batch("a", end=1), commit, batch("c", end=3)]  # type: ignore[attr-defined]
    loop.run()

    assert ["a", "b"] == loop.values()
    assert 2 == loop.position()


def test_an_abort_by_the_connector_moves_its_offsets() -> None:
    """What the connector threw away is not read again."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)

    def abort() -> SourceBatch:
        loop.requests.abort_transaction()
        return batch("b", end=2)

    loop.task.script = [batch("a", end=1), abort]  # type: ignore[attr-defined]
    loop.run()

    assert [] == loop.values()
    assert 2 == loop.position()


def test_what_the_connector_threw_away_does_not_count_as_committed() -> None:
    """Neither when it is thrown away, nor with the next commit."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)

    def abort() -> SourceBatch:
        loop.requests.abort_transaction()
        return batch("b", end=2)

    def commit() -> SourceBatch:
        loop.requests.commit_transaction()
        return batch("c", end=3)

    loop.task.script = [batch("a", end=1), abort, commit]  # type: ignore[attr-defined]
    loop.run()

    progress = loop.progress
    assert (3, 1) == (progress.records, progress.committed_records)
    assert (3, 1) == (progress.bytes, progress.committed_bytes)


def test_the_connector_cuts_at_a_record() -> None:
    """A commit after one record leaves those after it to the next transaction."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR)
    records = [record("a", 1), record("b", 2), record("c", 3)]

    def cut() -> Sequence[SourceRecord]:
        loop.requests.commit_transaction(records[1])
        return records

    loop.task.script = [cut]  # type: ignore[attr-defined]
    loop.run()

    assert ["a", "b"] == loop.values()
    assert 2 == loop.position()


def test_asking_for_commit_and_abort_of_one_transaction_fails_the_task() -> None:
    """The conflict is reported in Connect's words."""
    requests = BoundaryRequests()
    requests.commit_transaction()

    with pytest.raises(TaskFailedError, match="both commit and abort of same transaction"):
        requests.abort_transaction()
