"""What a producer knows of itself: what may follow on what, and sequences as a broker expects them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.transaction_state import (
    FIRST_VERSION,
    PHASES,
    SECOND_VERSION,
    Event,
    IllegalTransitionError,
    Phase,
    ProducerIdentity,
    TransactionState,
)

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
OWN = ProducerIdentity(7, 0)


def ready(version: int = FIRST_VERSION) -> TransactionState:
    """A producer that was just initialised."""
    state = TransactionState("id")
    state.initialised(OWN, version=version)
    return state


def writing(version: int = FIRST_VERSION) -> TransactionState:
    """A producer that has sent three records to a partition in a transaction."""
    state = ready(version)
    state.begin()
    state.join([T0])
    state.sequence(T0, 3)
    return state


def snapshot(state: TransactionState) -> object:
    """All that a state knows."""
    return (
        state.phase,
        state.version,
        state.identity,
        state.is_started,
        dict(state._sequences),
        set(state._places),
        set(state._groups),
    )


def test_sequences_follow_on_each_other_for_each_partition() -> None:
    """From 0 on."""
    state = writing()
    state.join([T1])

    assert [3, 5, 0] == [state.sequence(T0, 2), state.sequence(T0, 1), state.sequence(T1, 1)]


def test_sequences_begin_again_after_the_largest_one() -> None:
    """Which has 31 bits."""
    state = TransactionState(None)
    state.initialised(OWN)
    state.sequence(T0, 2**31 - 2)

    assert [2**31 - 2, 1] == [state.sequence(T0, 3), state.sequence(T0, 1)]


def test_the_first_version_goes_on_with_its_epoch_and_sequences() -> None:
    """In the next transaction, which partitions have to join again."""
    state = writing()
    state.end()
    state.ended()
    state.begin()
    is_in = state.has(T0)
    state.join([T0])

    assert (False, 3, OWN) == (is_in, state.sequence(T0, 1), state.identity)


def test_the_second_version_gets_an_epoch_with_each_transaction() -> None:
    """Sequences begin at 0."""
    state = writing(SECOND_VERSION)
    state.end()
    state.ended(ProducerIdentity(8, 0))
    state.begin()
    state.join([T0])

    assert (0, ProducerIdentity(8, 0)) == (state.sequence(T0, 1), state.identity)


def test_an_aborted_transaction_with_lost_sequences_needs_a_new_epoch() -> None:
    """Where the end does not bring one."""
    first, second = writing(), writing(SECOND_VERSION)
    for state in (first, second):
        state.end()
    first.ended(spoilt=True)
    second.ended(ProducerIdentity(7, 1), spoilt=True)

    assert (True, Phase.UNINITIALISED, OWN) == (first.needs_epoch, first.phase, first.identity)
    assert (False, Phase.READY) == (second.needs_epoch, second.phase)


def test_only_a_new_epoch_leads_out_of_doubt() -> None:
    """The identity is kept until then: the new one is asked for by it."""
    state = writing()
    state.doubt()
    kept = state.identity
    for forbidden in (state.begin, state.end, state.ended, lambda: state.sequence(T0, 1)):
        with pytest.raises(IllegalTransitionError):
            forbidden()
    state.initialised(ProducerIdentity(7, 1))

    assert (OWN, Phase.READY) == (kept, state.phase)


def test_nothing_follows_on_the_end_of_a_producer() -> None:
    """Not even a new epoch."""
    state = writing()
    state.stop()

    with pytest.raises(IllegalTransitionError):
        state.initialised(OWN)


def test_a_partition_must_be_in_the_transaction() -> None:
    """Before its records; without transactions there is nothing to be in."""
    state = ready()
    state.begin()
    idempotent = TransactionState(None)
    idempotent.initialised(OWN)

    assert (False, True) == (state.has(T0), idempotent.has(T0))
    with pytest.raises(IllegalTransitionError, match="t-0"):
        state.sequence(T0, 1)


def test_dropped_records_leave_no_gap() -> None:
    """The next ones have their sequences."""
    state = writing()
    state.rewind(T0, 1)

    assert 1 == state.sequence(T0, 1)


def test_a_transaction_of_which_no_broker_knows_needs_no_end() -> None:
    """It has ended when the producer says so."""
    state = ready()
    state.begin()
    started = [state.is_started]
    state.ended()
    state.begin()
    state.join_group("group")
    started.append(state.is_started)

    assert [False, True] == started
    assert (True, False) == (state.has_group("group"), state.has_group("other"))


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("event", Event)
def test_every_phase_answers_every_event(phase: Phase, event: Event) -> None:
    """With the phase after it, or by refusing it and changing nothing."""
    state = writing()
    state.phase = phase
    before = snapshot(state)
    happen: dict[Event, Callable[[], None]] = {
        Event.INITIALISED: lambda: state.initialised(OWN),
        Event.BEGUN: state.begin,
        Event.END_ASKED: state.end,
        Event.ENDED: state.ended,
        Event.SPOILT: lambda: state.ended(spoilt=True),
        Event.UNANSWERED: state.doubt,
        Event.STOPPED: state.stop,
    }
    if event in PHASES[phase]:
        happen[event]()
        assert PHASES[phase][event] is state.phase
        return
    with pytest.raises(IllegalTransitionError):
        happen[event]()
    assert before == snapshot(state)


class Sent(NamedTuple):
    """A request with records on its way: of which producer, and of which of its transactions."""

    identity: ProducerIdentity
    transaction: int
    place: TopicPartition
    sequence: int
    count: int


class Transactions(RuleBasedStateMachine):
    """A producer, and a broker that keeps Kafka's rules, with answers that are lost and requests that arrive late.

    The broker cannot know to which transaction a request belongs, only its epoch: so whatever arrives must be of the
    transaction that is open, and its sequence the one that follows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.state = TransactionState("id")
        self.late: list[Sent] = []
        self.transaction = 0
        # What the broker has.
        self.identity = ProducerIdentity(0, -1)
        self.is_open = False
        self.open_number = 0
        self.expected: dict[TopicPartition, int] = {}
        self.version = FIRST_VERSION

    def _renew(self) -> ProducerIdentity:
        self.is_open = False
        self.identity = ProducerIdentity(0, self.identity.epoch + 1)
        self.expected.clear()
        return self.identity

    def _arrive(self, sent: Sent) -> None:
        if sent.identity != self.identity:
            return
        if not self.is_open:
            # With the first version it opens a transaction that nobody ends.
            raise AssertionError(f"{sent} arrived outside of any transaction")
        assert self.open_number == sent.transaction
        assert self.expected.get(sent.place, 0) == sent.sequence
        self.expected[sent.place] = (sent.sequence + sent.count) % 2**31

    def _phase_is(self, *phases: Phase) -> bool:
        return self.state.phase in phases

    @precondition(lambda self: self._phase_is(Phase.UNINITIALISED, Phase.READY, Phase.DOUBTFUL))
    @rule(version=st.sampled_from([FIRST_VERSION, SECOND_VERSION]))
    def initialise(self, version: int) -> None:
        """The broker gives the next epoch."""
        self.version = version
        self.state.initialised(self._renew(), version=version)

    @precondition(lambda self: self._phase_is(Phase.READY))
    @rule()
    def begin(self) -> None:
        """A transaction begins."""
        self.transaction += 1
        self.state.begin()

    @precondition(lambda self: self._phase_is(Phase.IN_TRANSACTION))
    @rule(
        place=st.sampled_from([T0, T1]),
        count=st.sampled_from([1, 2, 2**30, 2**31 - 1]),
        is_answered=st.booleans(),
    )
    def send(self, place: TopicPartition, count: int, *, is_answered: bool) -> None:
        """Records, which arrive, or may arrive later."""
        if not self.state.has(place):
            self.state.join([place])
            self.is_open, self.open_number = True, self.transaction
        assert self.state.identity is not None
        sequence = self.state.sequence(place, count)
        sent = Sent(self.state.identity, self.transaction, place, sequence, count)
        if is_answered:
            self._arrive(sent)
        else:
            self.late.append(sent)
            self.state.doubt()

    @precondition(lambda self: self._phase_is(Phase.IN_TRANSACTION))
    @rule(place=st.sampled_from([T0, T1]), count=st.integers(1, 5))
    def refused(self, place: TopicPartition, count: int) -> None:
        """Records that the broker answers it will never take; their sequences are given to the next ones."""
        if self.state.has(place):
            self.state.rewind(place, self.state.sequence(place, count))

    @precondition(lambda self: self._phase_is(Phase.IN_TRANSACTION))
    @rule(outcome=st.sampled_from(["answered", "done, unanswered", "not done, unanswered"]))
    def end(self, outcome: str) -> None:
        """The transaction ends, or nobody knows."""
        if not self.state.is_started:
            self.state.ended()
            return
        self.state.end()
        following = None
        if outcome != "not done, unanswered":
            self.is_open = False
            following = self._renew() if self.version == SECOND_VERSION else None
        if outcome == "answered":
            self.state.ended(following)
        else:
            self.state.doubt()

    @precondition(lambda self: self.late)
    @rule(data=st.data())
    def arrive_late(self, data: st.DataObject) -> None:
        """A request that nobody waits for any more."""
        number = data.draw(st.integers(0, len(self.late) - 1))
        sent = self.late.pop(number)
        if sent.identity == self.identity and self.open_number == sent.transaction and self.is_open:
            # The transaction is still open, and will be aborted.
            return
        self._arrive(sent)

    @invariant()
    def the_producer_is_never_ahead(self) -> None:
        """It has an epoch that the broker has given."""
        if self.state.identity is not None:
            assert self.state.identity.epoch <= self.identity.epoch


TestTransactions = Transactions.TestCase
