"""When the poll loop ends, against a clock that only waiting moves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import RetriableError, StaleTokenError, TaskFailedError
from headrace.connect.task import Polled
from headrace.task.frames import Commit, Failed, Frame, Records
from headrace.task.poll_loop import PollLoop, PollSettings, Throttle
from headrace.task.slot_report import Outcome, Progress
from headrace.task.slot_work import EndReason
from headrace.task.transaction_boundary import BoundaryRequests
from task.loop import FILE, HeldLease, ScriptedTask, batch

LINGER_SECONDS = 5.0
GRACE_SECONDS = 5.0
TRANSACTION_SECONDS = 60.0


class PassingLease(HeldLease):
    """A lease under the test's control, whose waiting lets time pass."""

    now: float = 0.0

    def wait(self, seconds: float) -> None:
        """Be *seconds* older, unless it should hurry to its end."""
        hurries = self.should_end() and self.asked_to_end != EndReason.BUDGET
        self.now += 0.0 if hurries else seconds

    def pause(self, seconds: float) -> None:
        """Be *seconds* older."""
        self.now += seconds


@dataclass
class Reading:
    """A poll loop of a task that is polled; *left_at* is when it ended, in seconds."""

    task: ScriptedTask
    planned: bool = False
    followed: bool = False
    once: bool = False
    progress: Progress = field(default_factory=Progress)
    requests: BoundaryRequests | None = None
    lease: PassingLease = field(default_factory=PassingLease)

    def read(self) -> list[Frame]:
        """Read until it ends."""
        rules = PollSettings(
            planned=self.planned,
            linger_seconds=None if self.planned else LINGER_SECONDS,
            grace_seconds=GRACE_SECONDS,
            transaction_seconds=TRANSACTION_SECONDS,
            once=self.once,
            requests=self.requests,
            takes_encoded=True,
            followed=self.followed,
        )
        self.half = PollLoop(
            self.task,
            self.lease,  # type: ignore[arg-type]
            rules,
            self.progress,
            throttle=Throttle(None),
            clock=lambda: self.lease.now,
        )
        return list(self.half.frames())


def values(frames: list[Frame]) -> list[str]:
    """The values of all records among *frames*."""
    return [
        value
        for each in frames
        if isinstance(each, Records)
        for value in each.batch.values.to_pylist()
    ]


def test_a_source_with_nothing_for_the_time_of_the_linger_is_idle() -> None:
    """Counted from the first empty poll after the last record."""
    reading = Reading(ScriptedTask((), batch("a", end=1)))

    assert ["a"] == values(reading.read())
    assert Outcome.IDLE is reading.half.outcome
    assert pytest.approx(LINGER_SECONDS, abs=0.2) == reading.lease.now


def test_the_time_in_which_a_poll_waits_for_records_is_time_without_them() -> None:
    """A queue that answers after twenty seconds has nothing for longer than the linger."""
    lease = PassingLease()
    polls = list[int]()

    def wait() -> Polled:
        polls.append(1)
        lease.now += 20.0
        return ()

    reading = Reading(ScriptedTask(batch("a", end=1), wait, wait), lease=lease)

    assert ["a"] == values(reading.read())
    assert (Outcome.IDLE, 1) == (reading.half.outcome, len(polls))


def test_a_source_that_cannot_be_read_is_not_one_that_has_nothing() -> None:
    """An outage longer than the linger does not end the run, and begins the linger again."""
    outage = [RetriableError("away", delay_seconds=1.0) for _ in range(20)]
    reading = Reading(ScriptedTask((), *outage, batch("a", end=1)))

    assert ["a"] == values(reading.read())
    assert Outcome.IDLE is reading.half.outcome
    assert pytest.approx(20.0 + LINGER_SECONDS, abs=0.2) == reading.lease.now


class Looking(ScriptedTask):
    """Looks for something for as many polls as are in its script."""

    def is_idle(self) -> bool:
        """When it has looked everywhere."""
        return not self.script


def test_a_source_that_is_still_being_looked_through_is_not_one_that_has_nothing() -> None:
    """However long that takes; after the last record it is looked through again."""
    looking = [()] * 200
    task = Looking(*looking, batch("a", end=1), *looking)
    reading = Reading(task)

    assert ["a"] == values(reading.read())
    assert Outcome.IDLE is reading.half.outcome
    assert pytest.approx(400 * 0.05 + LINGER_SECONDS, abs=0.2) == reading.lease.now


class Costly(ScriptedTask):
    """Does not like to be resumed where it is."""

    def resumes_cheaply(self) -> bool:
        """Never."""
        return False


@pytest.mark.parametrize(("once", "outcome"), [(False, Outcome.ASKED), (True, Outcome.IDLE)])
def test_an_idle_task_that_is_costly_to_resume_stays(*, once: bool, outcome: Outcome) -> None:
    """What it has open may be gone with it; but a run that ends with its work has no later."""

    def end() -> Polled:
        reading.lease.end = True
        return ()

    reading = Reading(Costly(*[()] * 400, end), once=once)
    reading.read()

    assert outcome is reading.half.outcome
    assert once == (reading.lease.now < 2 * LINGER_SECONDS)


def test_a_budget_ends_a_polled_task_that_is_costly_to_resume() -> None:
    """It might never come to where that is cheap, and others wait for its slot."""

    def ask() -> Polled:
        reading.lease.asked_to_end = EndReason.BUDGET
        return ()

    reading = Reading(Costly(ask, batch("a", end=1)))

    assert [] == values(reading.read())
    assert Outcome.ASKED is reading.half.outcome


def test_a_slot_that_waits_for_a_cheap_end_still_looks_at_its_lease() -> None:
    """A budget lets the task continue, a lost token does not: it may read for hours without a commit."""

    def lose() -> Polled:
        reading.lease.asked_to_end = EndReason.BUDGET
        return ()

    def and_then() -> Polled:
        reading.lease.lost = True
        return ()

    task = Costly(batch("a", end=1), lose, and_then, batch("b", end=2))
    reading = Reading(task, planned=True)
    frames = reading.read()

    assert ["a"] == values(frames)
    assert isinstance(frames[-1], Failed)
    assert isinstance(frames[-1].error, StaleTokenError)


@pytest.mark.parametrize(("once", "outcome"), [(False, Outcome.ASKED), (True, Outcome.IDLE)])
def test_an_open_transaction_keeps_a_task_unless_there_is_no_later(
    *, once: bool, outcome: Outcome
) -> None:
    """The connector may end it when more comes; a run that ends with its work would never end."""
    task = ScriptedTask(batch("a", end=1))
    reading = Reading(task, once=once, requests=BoundaryRequests())
    end = iter(range(1000))
    task.script.extend([lambda: reading.lease.__setattr__("end", next(end) >= 500)] * 600)

    reading.read()

    assert outcome is reading.half.outcome


@pytest.mark.parametrize("nothing", [None, RetriableError("away")], ids=["nothing", "away"])
def test_a_task_that_has_to_end_its_transaction_is_polled_at_its_pace(nothing: object) -> None:
    """Until the grace time is over: the wait for the connector takes no core of its own."""
    task = ScriptedTask(batch("a", end=1))
    reading = Reading(task, requests=BoundaryRequests())
    task.script.append(lambda: reading.lease.__setattr__("asked_to_end", EndReason.STOP))
    task.script.extend([nothing] * 1000)

    reading.read()

    assert Outcome.ASKED is reading.half.outcome
    assert pytest.approx(GRACE_SECONDS, abs=0.01) == reading.lease.now
    assert 890 < len(task.script)


def test_a_long_transaction_is_not_cut_because_others_wait() -> None:
    """It would be begun again forever; the slot ends where the connector ends it."""
    requests = BoundaryRequests()
    task = ScriptedTask(batch("a", end=1))
    reading = Reading(task, requests=requests)
    task.script.append(lambda: reading.lease.__setattr__("asked_to_end", EndReason.BUDGET))
    task.script.extend([lambda: reading.lease.pause(8.0)] * 6)
    task.script.append(lambda: requests.commit_transaction() or [batch("b", end=2)])
    task.script.append([batch("c", end=3)])

    frames = reading.read()

    assert (["a", "b"], Commit) == (values(frames), type(frames[-1]))
    assert Outcome.ASKED is reading.half.outcome


def test_a_transaction_that_never_ends_while_others_wait_fails_the_task() -> None:
    """When it has been open for as long as it may be: it would be written and thrown away forever, unseen."""
    task = ScriptedTask(batch("a", end=1))
    reading = Reading(task, requests=BoundaryRequests())
    task.script.append(lambda: reading.lease.__setattr__("asked_to_end", EndReason.BUDGET))

    *_, failed = reading.read()

    assert isinstance(failed, Failed)
    assert isinstance(failed.error, TaskFailedError)
    assert "has not ended its transaction for 60 s: with transaction.boundary=connector" in str(
        failed.error
    )


# ------------------------------------------------------------------ followed shares


class Followed(Reading):
    """A poll loop that follows its share; *seen* is how long it has reported to be idle, poll by poll."""

    def __init__(self, task: ScriptedTask, requests: BoundaryRequests | None = None) -> None:
        super().__init__(task, planned=True, followed=True, requests=requests)
        self.seen: list[float | None] = []
        self.polled = task.poll
        task.poll = self.poll  # type: ignore[method-assign]

    def poll(self) -> Polled:
        """Poll, and note what the driver is told."""
        self.seen.append(self.progress.idle_seconds)
        return self.polled()

    def asked(self, reason: EndReason, polled: Polled = ()) -> Callable[[], Polled]:
        """A step of the script that returns *polled*, while the driver asks the slot to end."""

        def poll() -> Polled:
            self.lease.asked_to_end = reason
            return polled

        return poll


def test_a_slot_that_follows_its_share_stays_and_reports_how_long_there_was_nothing() -> None:
    """However long that is; the driver, who knows of the others, ends it."""
    task = ScriptedTask((), batch("a", end=1), *[()] * 300)
    reading = Followed(task)
    task.script.append(reading.asked(EndReason.IDLE))

    assert ["a"] == values(reading.read())
    assert Outcome.IDLE is reading.half.outcome
    assert [None, pytest.approx(0.05), None, pytest.approx(0.05)] == reading.seen[:4]
    assert reading.seen[-1] is not None
    assert reading.seen[-1] > 2 * LINGER_SECONDS


def test_a_followed_share_that_its_task_has_finished_is_finished() -> None:
    """``None`` means the same as for any other share."""
    reading = Followed(ScriptedTask(batch("a", end=1), ()))
    reading.read()

    assert Outcome.FINISHED is reading.half.outcome


def test_a_slot_that_has_something_again_when_it_ends_was_not_idle() -> None:
    """The driver's decision is as old as its last report."""
    task = ScriptedTask(())
    reading = Followed(task)
    task.script.append(reading.asked(EndReason.IDLE, batch("a", end=1)))

    assert ["a"] == values(reading.read())
    assert Outcome.ASKED is reading.half.outcome


@pytest.mark.parametrize("reason", EndReason)
def test_a_followed_share_ends_wherever_it_is(reason: EndReason) -> None:
    """Unlike a share with an end it is not asked where resuming is cheap."""
    task = Costly(batch("a", end=1))
    reading = Followed(task)
    task.script.append(reading.asked(reason, batch("b", end=2)))
    task.script.append(batch("c", end=3))

    assert ["a", "b"] == values(reading.read())


def test_a_followed_source_that_is_away_or_still_searched_is_not_idle() -> None:
    """Neither is one that only moves an offset, behind what it leaves out."""
    offset = {"position": 2}
    passed = EncodedBatches(
        topic="t",
        partition=0,
        source_partition=FILE,
        data=[],
        headers=[],
        start=1,
        next_offset=2,
        offset=offset,
        moving="position",
    )
    task = Looking((), (), RetriableError("away", delay_seconds=20.0), (), passed, ())
    reading = Followed(task)
    reading.read()

    assert {None} == set(reading.seen[:-1])


def test_an_open_transaction_of_the_connector_keeps_a_followed_share() -> None:
    """Only the connector can end it, so that the source counts as one that has something."""
    requests = BoundaryRequests()

    def commit() -> Polled:
        requests.commit_transaction()
        return ()

    reading = Followed(ScriptedTask(batch("a", end=1), (), commit, ()), requests)
    reading.read()

    assert [None, None, None, pytest.approx(0.1), pytest.approx(0.15)] == reading.seen
