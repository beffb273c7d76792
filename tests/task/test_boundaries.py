"""Where the transactions of a task loop end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.connect.task import Polled
from headrace.task.connector_spec import BoundaryKind
from headrace.task.transaction_boundary import Boundary, BoundaryRequests
from task.loop import Loop, ScriptedTask, batch, record
from task.test_worker_task import WORK


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


# ------------------------------------------------------------------ followed shares


@dataclass
class Source:
    """A source that is followed, in time that the test moves; *committed_at* has when each value was committed."""

    loop: Loop
    now: float = 0.0
    committed_at: dict[str, float] = field(default_factory=dict[str, float])

    def at(self, now: float, polled: Polled = ()) -> Callable[[], Polled]:
        """A step of the script: it is *now* when this poll returns."""

        def poll() -> Polled:
            self.committed_at.update(dict.fromkeys(self._new(), self.now))
            self.now = now
            return polled

        return poll

    def play(self, *script: object) -> dict[str, float]:
        """Run the task with *script*; what its end commits is not among the result."""
        self.loop.task.script = list(script)  # type: ignore[attr-defined]
        self.loop.times = iter(lambda: self.now, None)
        self.loop.run()
        return self.committed_at

    def _new(self) -> list[str]:
        return [value for value in self.loop.values() if value not in self.committed_at]


def source(*, followed: bool = True, kind: BoundaryKind = BoundaryKind.INTERVAL) -> Source:
    """With a commit interval of a second."""
    return Source(Loop(ScriptedTask(), kind=kind, followed=followed))


@pytest.mark.parametrize(
    ("followed", "kind", "expected"),
    [
        (True, BoundaryKind.INTERVAL, {"a": 1.9, "b": 3.0}),
        (False, BoundaryKind.INTERVAL, {"a": 2.5, "b": 4.0}),
        (True, BoundaryKind.CONNECTOR, {}),
    ],
)
def test_what_is_followed_is_committed_when_there_is_nothing_more_for_now(
    *, followed: bool, kind: BoundaryKind, expected: dict[str, float]
) -> None:
    """A record that comes after a silence is not held back for the rest of the interval."""
    it = source(followed=followed, kind=kind)
    one, two = batch("a", end=1), batch("b", end=2)
    polls = [(1.5, ()), (1.7, one), (1.9, ()), (2.5, ()), (2.8, two), (3.0, ()), (4.0, ()), (5, ())]

    assert expected == it.play(*(it.at(now, polled) for now, polled in polls))


def test_a_trickle_of_records_shares_transactions() -> None:
    """Each for a quarter of the interval, although there is nothing more for now after every record."""
    it = source()
    steps = [
        it.at(1.0 + 0.05 * number, batch(str(number), end=number) if number % 2 else ())
        for number in range(1, 40)
    ]
    it.play(*steps)

    assert 7 <= it.loop.sender.commits <= 10
    assert 20 == len(it.loop.values())


@pytest.mark.parametrize(
    ("followed", "is_early", "due"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_what_a_slot_was_begun_for_need_not_wait_if_it_is_followed(
    *, followed: bool, is_early: bool, due: bool
) -> None:
    """The first records are all there was, as soon as there is nothing more for now."""
    boundary = Boundary.begun(replace(WORK, followed=followed), 100.0)

    assert due is boundary.due_after_poll(100.01, catches_up=is_early)
    assert boundary.due_after_poll(101.0)


def test_an_idle_source_that_is_followed_has_no_transactions() -> None:
    """What is committed opens no other one, and the hook for offsets is called once per interval."""
    it = source()
    it.play(it.at(1.0, batch("a", end=1)), *(it.at(1.1 + 0.05 * number) for number in range(100)))

    assert 1 == it.loop.sender.commits
    assert 6 <= len(it.loop.task.shown) <= 7  # type: ignore[attr-defined]
