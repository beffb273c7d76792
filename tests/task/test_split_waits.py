"""What a slot in two processes has read is committed while the next of it is long in coming."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from doubles.puppets import SOURCE, Puppet
from headrace.task.connector_spec import ErrorPolicy
from headrace.task.frames import Commit, EndOfPoll, Frame, Waiting
from headrace.task.slot_report import Outcome
from headrace.task.sql.frame_codec import FrameEncoder
from headrace.task.sql.reader import FlushedRows
from headrace.task.sql.step import FrameTypes
from headrace.task.sql.writer import ReceivedFrames
from task.away import Service
from task.test_split import FLUSH, SPLIT, SQL, TwoProcesses, polls, step, stored, texts
from task.test_worker_task import with_settings
from waiting import until

# Long enough for what comes before to be sent, and for some looks after it.
INTERVAL = 0.1
PATIENT = ErrorPolicy(retry_seconds=10.0)


WORK = with_settings(
    SPLIT,
    transforms=(step("task.away:Asking"), SQL),
    errors=PATIENT,
    commit_seconds=INTERVAL,
)


def moment() -> None:
    """A bit of time goes by, in which others may do something."""
    threading.Event().wait(0.02)


def test_what_precedes_a_record_that_is_tried_again_is_committed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise its transaction would be over, and all of it tried again, forever."""
    script = polls(texts("a", first=1), texts("b", "c", first=2))
    slot = TwoProcesses(script, work=WORK, patience=0.02)
    monkeypatch.setattr(Service, "is_there", lambda: bool(slot.sender.committed))
    slot.lease.meanwhile = moment

    assert Outcome.FINISHED is slot.run()
    assert ["a", "b", "c"] == slot.values()
    assert {b'{"at":3}'} == stored(slot)


def test_an_offset_that_the_waiting_record_shares_is_not_committed() -> None:
    """It would say of that record that it has been read."""
    first, second = texts("a", "b", first=1)
    shared = replace(second, source_offset=first.source_offset)
    work = with_settings(WORK, errors=replace(PATIENT, retry_seconds=0.5))
    slot = TwoProcesses(polls([first], [shared]), work=work, patience=0.02)
    slot.lease.meanwhile = moment

    with pytest.raises(Exception, match="The service is away"):
        slot.run()

    assert [] == slot.values()
    assert set() == stored(slot)


def test_what_was_polled_is_committed_while_the_next_poll_is_slow() -> None:
    """A source may wait for long, and its transaction must not."""
    left = [texts("a", first=1)]

    def poll(_: object) -> Any:  # noqa: ANN401
        if left:
            return left.pop()
        until(lambda: slot.sender.committed)
        return None

    work = with_settings(SPLIT, commit_seconds=INTERVAL)
    slot = TwoProcesses(Puppet(poll=poll), work=work, patience=0.02)

    assert Outcome.FINISHED is slot.run()
    assert ["a"] == slot.values()


@pytest.mark.parametrize(
    ("before", "expected_frames"),
    [
        (EndOfPoll(1), [Waiting()]),
        (Waiting((SOURCE, {"at": 1})), [Waiting((SOURCE, {"at": 1}))]),
        (Commit(), []),
    ],
)
def test_while_nothing_comes_the_writer_hears_it_where_a_commit_may_be(
    before: Frame, expected_frames: list[Frame]
) -> None:
    """After a poll, and before a row that waits; and what has come before is flushed."""
    encoder = FrameEncoder(FrameTypes())
    rows = list(FlushedRows(encoder, FLUSH, clock=lambda: 0.0).rows([before, None]))

    received = ReceivedFrames([*rows, encoder.end(Outcome.FINISHED)])

    assert [before, *expected_frames] == list(received.frames())
    assert FLUSH.rows in [each.num_rows for each in rows]
