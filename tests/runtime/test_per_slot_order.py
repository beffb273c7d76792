"""What slots have the driver do for them while their tokens count."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from headrace.runtime.micro_batch import MicroBatch
from headrace.task.slot_report import Outcome, SlotReport
from runtime.test_micro_batch import micro_batch
from waiting import until


class Held:
    """Something that is done until the test lets it end."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def __call__(self) -> None:
        """Do it."""
        self.has_begun.set()
        assert self.may_end.wait(20)


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    """Threads, as the channel's."""
    with ThreadPoolExecutor(4) as pool:
        yield pool


@pytest.fixture
def held() -> Iterator[Held]:
    """It ends with the test at the latest."""
    held = Held()
    yield held
    held.may_end.set()


@pytest.fixture
def batch() -> MicroBatch:
    """Two slots."""
    return micro_batch(2)


@pytest.fixture
def running(pool: ThreadPoolExecutor, held: Held, batch: MicroBatch) -> Future[bool]:
    """Request 1 of the first slot, which is being done."""
    done = pool.submit(batch.while_valid, batch.tokens()[0], 1, held)
    assert held.has_begun.wait(20)
    return done


@pytest.mark.parametrize("slot", [0, 1])
def test_heartbeats_are_answered_while_something_is_done(
    running: Future[bool], pool: ThreadPoolExecutor, batch: MicroBatch, slot: int
) -> None:
    """A store that is away for longer than a lease costs no slot its lease."""
    beat = pool.submit(batch.beat, batch.tokens()[slot], {})

    assert (True, None) == beat.result(10)
    assert not running.done()


def test_what_another_slot_asks_for_does_not_wait(
    running: Future[bool], pool: ThreadPoolExecutor, batch: MicroBatch
) -> None:
    """Each has a turn of its own."""
    other = pool.submit(batch.while_valid, batch.tokens()[1], 1, lambda: None)

    assert other.result(10)
    assert not running.done()


def test_requests_of_one_slot_wait_for_each_other(
    running: Future[bool], pool: ThreadPoolExecutor, held: Held, batch: MicroBatch
) -> None:
    """What was begun ends before what was asked for afterwards."""
    done: list[bool] = []
    second = pool.submit(
        batch.while_valid, batch.tokens()[0], 2, lambda: done.append(held.may_end.is_set())
    )
    with pytest.raises(TimeoutError):
        second.result(0.05)
    held.may_end.set()

    assert (True, True) == (running.result(20), second.result(20))
    assert [True] == done


@pytest.mark.parametrize("number", [1, 2])
def test_a_request_that_was_overtaken_is_not_done(batch: MicroBatch, number: int) -> None:
    """Its slot gave it up, and may have asked for the opposite since."""
    token = batch.tokens()[0]
    done: list[int] = []
    newer = batch.while_valid(token, 2, lambda: done.append(2))
    overtaken = batch.while_valid(token, number, lambda: done.append(number))

    assert (True, False, [2]) == (newer, overtaken, done)


def test_what_failed_does_not_keep_the_next_from_being_done(batch: MicroBatch) -> None:
    """The failure is raised to the caller."""
    token = batch.tokens()[0]
    with pytest.raises(ZeroDivisionError):
        batch.while_valid(token, 1, lambda: 1 / 0 and None)

    assert batch.while_valid(token, 2, lambda: None)


def test_nothing_is_done_for_a_slot_that_has_said_its_last_word(batch: MicroBatch) -> None:
    """The next micro-batch may be running when a request arrives that was given up."""
    token = batch.tokens()[0]
    batch.end(token, SlotReport(outcome=Outcome.REPLAN))

    assert not batch.while_valid(token, 1, lambda: None)


@pytest.mark.parametrize("reports", [False, True])
def test_a_withdrawal_waits_for_what_is_being_done(
    running: Future[bool], pool: ThreadPoolExecutor, held: Held, batch: MicroBatch, *, reports: bool
) -> None:
    """Also of a slot that has given it up and ended: the next plan is made from what is stored after it."""
    token = batch.tokens()[0]
    if reports:
        batch.end(token, SlotReport(outcome=Outcome.REPLAN))
    withdrawal = pool.submit(batch.withdraw)
    until(lambda: not batch.is_valid(batch.tokens()[1]))
    beaten = pool.submit(batch.beat, token, {}).result(10)
    before = withdrawal.done()
    held.may_end.set()
    withdrawal.result(20)

    assert (False, True) == (before, running.result(0))
    assert (reports, None) == beaten


def test_whoever_waits_for_a_turn_and_loses_the_token_does_nothing(
    running: Future[bool], pool: ThreadPoolExecutor, held: Held, batch: MicroBatch
) -> None:
    """It is looked at when the turn comes, and not before."""
    act: Callable[[], None] = pytest.fail
    second = pool.submit(batch.while_valid, batch.tokens()[0], 2, act)
    withdrawal = pool.submit(batch.withdraw)
    until(lambda: not batch.is_valid(batch.tokens()[0]))
    held.may_end.set()

    assert not second.result(20)
    assert running.result(20)
    assert 2 == len(withdrawal.result(20))
