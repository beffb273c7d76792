"""What a slot counts while it works, for metrics."""

from __future__ import annotations

import itertools

from headrace.task.slot_report import Tally
from task.loop import Loop, ScriptedTask, batch, both_modes


@both_modes
def test_polls_commits_and_transactions_are_counted(*, transactional: bool) -> None:
    """A poll that returns nothing is none; there are transactions in exactly-once only."""
    task = ScriptedTask(batch("a", "b", "d", end=3), (), batch("c", end=4))
    # Each look at the clock is a second later than the one before.
    loop = Loop(task, transactional=transactional, times=itertools.count())
    loop.run()

    done = loop.progress
    assert 4 == done.polled_records
    assert 2 == done.polls.count
    assert Tally(count=2, total=4, least=1, most=3) == done.batches
    assert Tally(count=2, total=2, least=1, most=1) == done.commits
    assert (done.batches if transactional else Tally()) == done.transaction_sizes
