"""Tokens: each is claimed once, and counts until it is withdrawn."""

from __future__ import annotations

import threading

import pytest

from headrace.offsets.target import OffsetTopic
from headrace.runtime.micro_batch import MicroBatch
from headrace.task.connector_spec import ConnectorSpec, Delivery, ErrorPolicy, PluginChoice
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import EndReason, SlotWork

BYTES = PluginChoice(class_name="bytes")


def work(task: int = 0) -> SlotWork:
    """The smallest work."""
    return SlotWork(
        spec=ConnectorSpec(
            name="c",
            props={},
            max_tasks=1,
            delivery=Delivery.EXACTLY_ONCE,
            producer={},
            offsets=OffsetTopic(name="offsets"),
            key_converter=BYTES,
            value_converter=BYTES,
            header_converter=BYTES,
            errors=ErrorPolicy(tolerate=True, dead_letters="dead"),
        ),
        task=task,
        lease_seconds=10.0,
        grace_seconds=5.0,
        transaction_seconds=60.0,
        task_class="m:T",
        config={},
        planned=True,
        splits=(),
        transactional_id=f"g-c-{task}",
    )


def micro_batch(tasks: int = 1, now: list[float] | None = None) -> MicroBatch:
    """A micro-batch whose clock is *now*."""
    moment = now or [0.0]
    return MicroBatch([work(task) for task in range(tasks)], {}, run="r", clock=lambda: moment[0])


def test_a_token_is_claimed_once() -> None:
    """A second copy of a slot gets nothing to do."""
    batch = micro_batch()
    (token,) = batch.tokens()

    first = batch.claim(token, pid=1, host="h")
    second = batch.claim(token, pid=2, host="h")

    assert (work(), None) == (first, second)


def test_a_withdrawn_token_cannot_be_claimed() -> None:
    """A slot that starts after its job was given up does nothing."""
    batch = micro_batch()
    (token,) = batch.tokens()

    batch.withdraw()

    assert batch.claim(token, pid=1, host="h") is None


def test_a_beat_after_the_withdrawal_hears_that_the_token_does_not_count() -> None:
    """That is how a slot learns that its work went to another."""
    batch = micro_batch()
    (token,) = batch.tokens()
    batch.claim(token, pid=1, host="h")
    batch.withdraw()

    assert (False, None) == batch.beat(token, {})


def test_a_report_keeps_its_token_from_being_withdrawn() -> None:
    """A slot that has ended needs no fencing."""
    batch = micro_batch(tasks=2)
    first, _ = batch.tokens()
    batch.end(first, SlotReport(outcome=Outcome.FINISHED))

    assert [1] == [slot.work.task for slot in batch.withdraw()]


def test_a_report_after_the_withdrawal_does_not_count() -> None:
    """The work has been planned again by then."""
    batch = micro_batch()
    (token,) = batch.tokens()
    batch.withdraw()

    batch.end(token, SlotReport(outcome=Outcome.FINISHED))

    assert not batch.all_reported()


def test_a_slot_that_is_not_heard_for_its_lease_is_silent() -> None:
    """Only claimed slots without a report can be."""
    now = [0.0]
    batch = micro_batch(now=now)
    (token,) = batch.tokens()
    before_claim = batch.silent(10.0)
    batch.claim(token, pid=1, host="h")
    now[0] = 11.0

    assert ([], [0]) == (before_claim, [slot.work.task for slot in batch.silent(10.0)])


def test_acknowledged_offsets_of_a_withdrawn_token_are_not_stored() -> None:
    """An old slot cannot move offsets back."""
    batch = micro_batch()
    (token,) = batch.tokens()
    stored: list[str] = []
    first = batch.while_valid(token, 1, lambda: stored.append("first"))
    batch.withdraw()

    second = batch.while_valid(token, 2, lambda: stored.append("second"))

    assert (True, False, ["first"]) == (first, second, stored)


def test_a_withdrawal_waits_for_offsets_that_are_being_stored() -> None:
    """The next plan is made from what is stored after it."""
    batch = micro_batch()
    (token,) = batch.tokens()
    withdrawal = threading.Thread(target=batch.withdraw)
    waited: list[bool] = []

    def store() -> None:
        withdrawal.start()
        withdrawal.join(0.05)
        waited.append(withdrawal.is_alive())

    assert batch.while_valid(token, 1, store)
    withdrawal.join(5.0)

    assert [True] == waited
    assert not batch.is_valid(token)


def test_work_survives_the_channel() -> None:
    """What the driver describes is what the slot gets."""
    assert work() == SlotWork.from_message(work().as_message())


def test_a_slot_whose_task_does_not_come_back_from_its_stop_is_hung() -> None:
    """Only while it stays in there: a new beat says whether it does."""
    now = [1.0]
    batch = micro_batch(now=now)
    (token,) = batch.tokens()
    batch.claim(token, pid=1, host="h")
    batch.beat(token, {"stopping_task": True})
    now[0] = 7.0
    hung = [slot.work.task for slot in batch.hung(5.0)]
    batch.beat(token, {"stopping_task": False})

    assert ([0], []) == (hung, batch.hung(5.0))


def test_a_stop_takes_the_place_of_a_budget() -> None:
    """A task that may take its time for a budget hears that it may not any more."""
    batch = micro_batch()
    (token,) = batch.tokens()
    batch.ask_to_end(EndReason.BUDGET)
    batch.ask_to_end(EndReason.STOP)

    assert (True, "stop") == batch.beat(token, {})


def split_batch() -> MicroBatch:
    """One slot that reads in a process of its own."""
    return MicroBatch([work()], {}, run="r", readers=True)


def test_a_slot_with_a_reader_has_two_tokens_each_of_which_is_claimed_once() -> None:
    """A second copy of either half gets nothing to do."""
    batch = split_batch()

    granted = [batch.claim(token, pid=1, host="h") for token in batch.tokens() * 2]

    assert [True, True, False, False] == [each is not None for each in granted]


def test_a_slot_with_a_reader_has_ended_when_both_have() -> None:
    """The reader may still be stopping its task when all is written; one that never came is not waited for."""
    batch, word = split_batch(), SlotReport(outcome=Outcome.FINISHED)
    writer, reader = batch.tokens()
    for token in (writer, reader):
        batch.claim(token, pid=1, host="h")

    batch.end(writer, word)
    before = batch.all_reported()
    batch.end(reader, word)

    assert (False, True) == (before, batch.all_reported())
    unread = split_batch()
    unread.end(unread.tokens()[0], word)
    assert unread.all_reported()


def test_what_was_polled_is_told_by_the_reader_and_what_was_sent_by_the_writer() -> None:
    """Together they are the progress of one task."""
    batch = split_batch()
    writer, reader = batch.tokens()
    batch.beat(writer, {"records": 3, "polled_records": 0, "source_away": None})
    batch.beat(reader, {"records": 0, "polled_records": 5, "source_away": "gone"})

    assert [
        (0, {"records": 3, "polled_records": 5, "source_away": "gone"})
    ] == batch.done_by_tasks()


def test_what_the_reader_waits_for_is_told_and_both_processes_retries_are_counted() -> None:
    """A step before Spark may wait for a service, and a converter for another one."""
    batch = split_batch()
    writer, reader = batch.tokens()
    batch.beat(writer, {"retries": 1, "waiting_for": None})
    batch.beat(reader, {"retries": 5, "waiting_for": "the service is away"})

    assert "the service is away" == batch.waiting_for()
    assert [(0, {"retries": 6, "waiting_for": None})] == batch.done_by_tasks()


def test_a_withdrawal_takes_the_readers_token_too() -> None:
    """Both are notified at their next beat, and both processes are known."""
    batch = split_batch()
    tokens = batch.tokens()
    for pid, token in enumerate(tokens):
        batch.claim(token, pid=pid, host="h")

    withdrawn = batch.withdraw()

    assert [0, 1] == [part.pid for part in withdrawn]
    assert [False, False] == [batch.is_valid(token) for token in tokens]


def lost_batch() -> tuple[MicroBatch, str, str, list[float]]:
    """A slot whose reader may be repeated, and has been; its two tokens, and its clock."""
    now = [0.0]
    batch = MicroBatch([work()], {}, run="r", readers=True, repeats=True, clock=lambda: now[0])
    writer, reader = batch.tokens()
    for token in (writer, reader, reader):
        assert batch.claim(token, pid=1, host="h") is not None
    return batch, writer, reader, now


def test_only_a_reader_is_repeated_and_not_behind_a_withdrawal() -> None:
    """What writes is one process, whatever Spark tries again."""
    batch, writer, reader, _ = lost_batch()

    again = [batch.claim(token, pid=2, host="h") is not None for token in (writer, reader)]
    batch.withdraw()

    assert [False, True] == again
    assert batch.claim(reader, pid=3, host="h") is None
    assert not batch.is_valid(reader)


def test_a_repeated_reader_goes_on_when_others_end_and_counts_nothing() -> None:
    """It has to come to what failed before; its records were counted then."""
    batch, _, reader, _ = lost_batch()
    batch.ask_to_end(EndReason.SIBLING)

    assert (True, None) == batch.beat(reader, {"polled_records": 7})
    batch.end(reader, SlotReport(outcome=Outcome.ASKED, progress={"polled_records": 7}))

    assert [] == batch.done_by_tasks()


def test_a_repeated_reader_is_not_waited_for() -> None:
    """Its slot has ended when the process has that writes; whether it is heard does not matter."""
    batch, writer, _, now = lost_batch()
    batch.end(writer, SlotReport(outcome=Outcome.REPLAN))
    now[0] = 99.0

    assert batch.all_reported()
    assert [] == batch.silent(5.0)
    assert batch.may_learn_why()


def test_no_one_tells_why_where_no_reader_is_repeated() -> None:
    """A slot that lost its transaction has said so itself."""
    batch = split_batch()
    batch.end(batch.tokens()[0], SlotReport(outcome=Outcome.REPLAN))

    assert not batch.may_learn_why()


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(3.0, 2.0, 2.0), (3.0, None, None), (None, None, None), (0.0, 9.0, 0.0)],
)
def test_a_micro_batch_is_idle_for_as_long_as_all_its_slots_are(
    first: float | None, second: float | None, expected: float | None
) -> None:
    """As each has reported; one that has not is not."""
    batch = micro_batch(2)
    for token, seconds in zip(batch.tokens(), (first, second), strict=True):
        batch.claim(token, pid=1, host="h")
        assert batch.idle_seconds() is None
        batch.beat(token, Progress(idle_seconds=seconds).as_message())

    assert expected == batch.idle_seconds()


def test_a_slot_that_has_ended_is_neither_idle_nor_busy() -> None:
    """Only the others can be, and if there are none there is nothing to end."""
    batch = micro_batch(2)
    one, other = batch.tokens()
    batch.beat(one, Progress(idle_seconds=4.0).as_message())
    batch.end(other, SlotReport(outcome=Outcome.FINISHED, progress=Progress().as_message()))
    assert 4.0 == batch.idle_seconds()
    batch.end(one, SlotReport(outcome=Outcome.IDLE, progress={"idle_seconds": 4.0}))

    assert batch.idle_seconds() is None


def test_the_process_that_reads_says_whether_its_slot_is_idle() -> None:
    """The one that writes only knows that nothing arrives."""
    batch = MicroBatch([work()], {}, run="r", readers=True)
    token, reader = batch.tokens()
    batch.claim(reader, pid=1, host="h")
    batch.beat(token, Progress().as_message())
    batch.beat(reader, Progress(idle_seconds=4.0).as_message())

    assert 4.0 == batch.idle_seconds()
