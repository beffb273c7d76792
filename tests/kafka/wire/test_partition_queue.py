"""The order in which a partition's batches are sent, and sent again."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.partition_queue import NO_SEQUENCE, PartitionQueue, ProducerBatch

T0 = TopicPartition("t", 0)


def batch(number: int, count: int = 1) -> ProducerBatch:
    """A batch of so many records."""
    return ProducerBatch(number, T0, UnstampedBatch(b"", count), 10, float(number))


def filled(batches: int = 4, most_in_flight: int = 3) -> tuple[PartitionQueue, list[ProducerBatch]]:
    """A queue of which the broker has taken a batch before, and what is in it."""
    queue = PartitionQueue(T0, most_in_flight=most_in_flight)
    before, *made = [batch(number) for number in range(-1, batches)]
    queue.add(before)
    queue.accepted(queue.sent())
    for each in made:
        queue.add(each)
    return queue, made


def send_all(queue: PartitionQueue) -> list[int]:
    """Send what may be sent now."""
    found = list[int]()
    while queue.next is not None:
        found.append(queue.sent().number)
    return found


def test_several_batches_are_in_flight_together() -> None:
    """As many as are allowed, in their order."""
    queue, made = filled()
    first = send_all(queue)
    queue.accepted(made[0])

    assert ([0, 1, 2], [3]) == (first, send_all(queue))


def test_the_first_batch_goes_alone() -> None:
    """A broker that does not know the producer would take the second one without it."""
    queue = PartitionQueue(T0, most_in_flight=3)
    made = [batch(number) for number in range(4)]
    for each in made:
        queue.add(each)
    first = send_all(queue)
    queue.again(made[0])
    again = send_all(queue)
    queue.accepted(made[0])

    assert ([0], [0], [1, 2, 3]) == (first, again, send_all(queue))


def test_what_was_not_taken_goes_again_before_all_else() -> None:
    """Once all that was in flight behind it is answered."""
    queue, made = filled()
    send_all(queue)
    queue.again(made[0])
    held = send_all(queue)
    queue.again(made[1])
    queue.again(made[2])

    assert ([], [0, 1, 2]) == (held, send_all(queue))


def test_what_was_taken_behind_it_does_not_go_again() -> None:
    """A broker may have taken a batch and not said so; then it takes the next ones, too."""
    queue, made = filled()
    send_all(queue)
    queue.again(made[0])
    queue.accepted(made[1])
    queue.accepted(made[2])

    assert [0, 3] == send_all(queue)


def test_a_batch_behind_one_that_was_not_taken_is_told_from_one_that_lacks_its_predecessor() -> (
    None
):
    """The broker says the same of both."""
    queue, made = filled()
    send_all(queue)
    queue.accepted(made[0])
    lacking = queue.has_earlier(made[1])
    queue.again(made[1])

    assert (False, True) == (lacking, queue.has_earlier(made[2]))


def test_nothing_goes_behind_a_refused_batch_until_it_is_dropped() -> None:
    """Then the others are numbered anew."""
    queue, made = filled()
    send_all(queue)
    for sequence, each in enumerate(made[:3]):
        each.sequence = sequence
    queue.refuse(made[0])
    behind = queue.has_earlier(made[1])
    queue.again(made[1])
    queue.again(made[2])
    held = send_all(queue)
    dropped = queue.drop()

    assert (True, [], made[0]) == (behind, held, dropped)
    assert [NO_SEQUENCE] * 3 == [each.sequence for each in made[1:]]
    assert [1, 2, 3] == send_all(queue)


def test_a_batch_is_not_dropped_while_others_are_in_flight() -> None:
    """Their sequences could not be changed any more."""
    queue, made = filled()
    send_all(queue)
    queue.refuse(made[0])

    with pytest.raises(ValueError, match="t-0"):
        queue.drop()


def test_what_is_cleared_is_returned() -> None:
    """But for what is in flight."""
    queue, made = filled(batches=5)
    send_all(queue)
    queue.refuse(made[0])
    queue.again(made[1])

    assert [made[0], made[1], made[3], made[4]] == queue.clear()
    assert (False, True) == (queue.is_empty, queue.is_in_flight)


def test_pauses_get_longer_until_a_batch_is_accepted() -> None:
    """Up to a second."""
    queue, made = filled()
    pauses = list[float]()
    for _ in range(12):
        queue.wait(0.0)
        pauses.append(queue.pause_until)
    queue.sent()
    queue.accepted(made[0])
    queue.wait(0.0)

    assert sorted(pauses) == pauses
    assert (1.0, pauses[0]) == (pauses[-1], queue.pause_until)


def test_the_oldest_batch_is_the_first_that_was_not_acknowledged() -> None:
    """Wherever it is."""
    queue, made = filled()
    found = [queue.oldest]
    send_all(queue)
    queue.accepted(made[0])
    found.append(queue.oldest)
    queue.again(made[1])
    found.append(queue.oldest)

    assert [made[0], made[1], made[1]] == found
    assert PartitionQueue(T0, most_in_flight=1).oldest is None


class Sending(RuleBasedStateMachine):
    """A queue, and a log of one partition that takes each sequence once and in order, as Kafka's does.

    Answers come in the order of the requests of a connection; with a connection its answers are lost, though the log may have
    taken what they were about.
    """

    def __init__(self) -> None:
        super().__init__()
        self.queue = PartitionQueue(T0, most_in_flight=3)
        self.numbers = 0
        self.sequence = 0
        self.flight = deque[ProducerBatch]()
        self.log: list[int] = []
        self.dropped: list[int] = []
        self.expected: int | None = None

    def _taken(self, sent: ProducerBatch) -> bool | None:
        """Whether the log takes it: ``None`` for one out of order. The first one may have any sequence."""
        if self.expected is None:
            self.expected = sent.sequence
        if sent.sequence < self.expected:
            return True
        if sent.sequence > self.expected:
            return None
        self.log.append(sent.number)
        self.expected += sent.batch.record_count
        return True

    @rule(count=st.integers(1, 3))
    def add(self, count: int) -> None:
        """A batch is handed over."""
        self.queue.add(batch(self.numbers, count))
        self.numbers += 1

    @precondition(lambda self: self.queue.next is not None)
    @rule()
    def send(self) -> None:
        """The next one goes."""
        sent = self.queue.sent()
        if sent.sequence == NO_SEQUENCE:
            sent.sequence = self.sequence
            self.sequence += sent.batch.record_count
        self.flight.append(sent)

    @precondition(lambda self: self.flight)
    @rule(
        outcome=st.sampled_from(
            ["taken", "taken", "not now", "taken, but said to be late", "never"]
        )
    )
    def answer(self, outcome: str) -> None:
        """The oldest request is answered."""
        sent = self.flight.popleft()
        if outcome in ("not now", "never") and sent.sequence == (self.expected or 0):
            never = outcome == "never" and not self.queue.has_earlier(sent)
            (self.queue.refuse if never else self.queue.again)(sent)
            return
        taken = self._taken(sent)
        if taken is None:
            assert self.queue.has_earlier(sent)
        if taken is None or outcome == "taken, but said to be late":
            self.queue.again(sent)
        else:
            self.queue.accepted(sent)

    @precondition(lambda self: self.flight)
    @rule(arrived=st.integers(0, 3))
    def lose_connection(self, arrived: int) -> None:
        """The log takes some of what was sent, and nothing is answered."""
        for number, sent in enumerate(self.flight):
            if number < arrived:
                self._taken(sent)
            self.queue.again(sent)
        self.flight.clear()

    @precondition(lambda self: self.queue.refused is not None and not self.flight)
    @rule(records_left=st.integers(0, 2))
    def drop(self, records_left: int) -> None:
        """The refused batch is given up, or some of it is sent again."""
        dropped = self.queue.drop()
        self.sequence = dropped.sequence
        if records_left:
            self.queue.reenqueue(batch(dropped.number, records_left))
        else:
            self.dropped.append(dropped.number)

    @invariant()
    def the_log_has_each_batch_once_and_in_order(self) -> None:
        """And nothing is passed over."""
        assert sorted(set(self.log)) == self.log
        passed = range(self.log[-1] + 1 if self.log else 0)
        assert set(passed) <= {*self.log, *self.dropped}

    @invariant()
    def something_can_always_happen(self) -> None:
        """Until all is in the log."""
        is_done = len(self.log) + len(self.dropped) == self.numbers
        assert self.queue.next or self.flight or self.queue.refused or is_done


TestSending = Sending.TestCase
