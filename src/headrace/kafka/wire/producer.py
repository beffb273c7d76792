"""A producer of our own: record batches to the leaders of their partitions, idempotently or in transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import contextmanager, suppress
from itertools import count
from typing import Final

from headrace.connect.errors import (
    ConnectError,
    ReplanError,
    RetriableError,
    TaskFailedError,
    TransactionTimedOutError,
)
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.errors import Context, fenced, timed_out
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.delivery import Delivery
from headrace.kafka.wire.partition_queue import ProducerBatch
from headrace.kafka.wire.producer_errors import (
    BatchRefusedError,
    ProducerReaction,
    advice,
    error_name,
    reaction,
)
from headrace.kafka.wire.producer_settings import ProducerWireSettings
from headrace.kafka.wire.transaction_requests import (
    CoordinatorRequests,
    Outage,
    StepRefusedError,
    UnansweredError,
)
from headrace.kafka.wire.transaction_state import (
    FIRST_VERSION,
    SECOND_VERSION,
    IllegalTransitionError,
    Phase,
    ProducerIdentity,
    TransactionState,
)

_REPORT_SECONDS: Final = 1.0
_LEFT: Final = (ProducerReaction.FENCED, ProducerReaction.TIMED_OUT, ProducerReaction.DOUBTFUL)


def _silent(_what: str) -> None:
    """Nobody wants to know."""


class WireProducer:
    """Writes record batches to the leaders, idempotently or in transactions. One thread uses it.

    Transactional: ``open``, then ``begin``, ``send`` any number of times, ``send_group_offsets``, ``commit`` or ``abort``,
    and again. Idempotent, which it is without a *transactional_id*: ``open``, then ``send``, ``flush``; ``begin`` and
    ``abort`` do nothing then, and ``commit`` is ``flush``.

    Brokers that are away, and leaders and coordinators that move, are waited for: in a transaction until its time-out,
    otherwise until ``delivery.timeout.ms``. *waiting* is called about once a second meanwhile, on the caller's thread, with
    what is waited for; what it raises is raised by the call. *owner* names the user of the producer in messages. *transaction_ms*
    is the transactions' time-out, that of *settings* if it is not given.

    In a transaction nothing follows after a request that was not answered: it may still arrive, and the broker would take it
    for a part of the next transaction. Then, and for every other failure of that kind,
    :class:`~headrace.connect.errors.RetriableError` is raised, and by every call after it: what became of the transaction is
    unknown. Drop the producer and read what is committed once another one is open, or ``open`` this one again: it goes on
    only if no other producer has taken its transactional id meanwhile. Either aborts what is open.

    :class:`~headrace.connect.errors.FencedError` and :class:`~headrace.connect.errors.TransactionTimedOutError` are raised
    for a producer that was replaced, or was too slow; :class:`~headrace.kafka.wire.producer_errors.BatchRefusedError` for a
    batch that the broker will never take; :class:`~headrace.connect.errors.ReplanError` for a topic or partition that is not
    there; :class:`~headrace.connect.errors.TaskFailedError` for what no retry can resolve.
    Each is raised by every call until ``abort``. A call that does not fit the producer's phase raises
    :class:`~headrace.kafka.wire.transaction_state.IllegalTransitionError`, and changes nothing.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        transactional_id: str | None,
        settings: ProducerWireSettings,
        owner: str,
        transaction_ms: int | None = None,
        waiting: Callable[[str], None] = _silent,
        clock: Clock = time.monotonic,
    ) -> None:
        self._settings = settings
        self._transaction_ms = transaction_ms or settings.transaction_ms
        self._owner = owner
        self._waiting = waiting
        self._clock = clock
        self._state = TransactionState(transactional_id)
        self._numbers = count()
        self._failure: ConnectError | None = None
        self._began: float | None = None
        # The end of a transaction's time fences its producer, too, on the first version.
        self._timed_out: TransactionTimedOutError | None = None
        self._report_at = self._waits_since = 0.0
        self._unsent = 0
        self._acknowledged_before = 0
        self._has_offsets = False
        self._is_flushed = True
        self._outage = Outage()
        self._requests = CoordinatorRequests(
            cluster,
            transactional_id,
            request_seconds=settings.request_seconds,
            waits=self._wait,
            outlived=self._outlived,
            outage=self._outage,
            clock=clock,
        )
        self._delivery = Delivery(
            cluster,
            self._state,
            settings=settings,
            joins=self._add_partitions,
            outlived=self._outlived,
            outage=self._outage,
            clock=clock,
        )

    @property
    def identity(self) -> ProducerIdentity | None:
        """The producer's id and epoch, ``None`` before it is open."""
        return self._state.identity

    @property
    def is_transactional(self) -> bool:
        """Whether there is a transactional id."""
        return self._state.is_transactional

    def open(self, deadline: Deadline, *, identity: ProducerIdentity | None = None) -> None:
        """Get an id and an epoch: earlier owners of the transactional id are fenced, and what is open is aborted.

        The same producer may be opened again, outside of transactions: then it must still be the newest owner. With
        *identity*, which another program has got for this producer, the broker is not asked the first time. Raises
        :class:`~headrace.connect.errors.RetriableError` when Kafka did not answer before *deadline*.
        """
        if self._state.phase is Phase.ENDED:
            self._raise_failure()
        if self._state.phase in (Phase.IN_TRANSACTION, Phase.ENDING):
            raise IllegalTransitionError("open in a transaction")
        self._abandon()
        self._failure = None
        self._acknowledged_before = self._delivery.acknowledged
        self._is_flushed = True
        with self._translating():
            self._begin_wait()
            version = FIRST_VERSION
            if not self._state.is_transactional:
                found = self._requests.new_identity(deadline)
            else:
                version = self._requests.transaction_version(deadline)
                own = self._state.identity
                if own is None and identity is not None:
                    found = identity
                else:
                    # By its own identity: without it, this would take the id from a newer owner.
                    found = self._requests.take(own, self._transaction_ms, deadline)
        self._state.initialised(found, version=version)
        self._timed_out = None

    def begin(self) -> None:
        """Begin a transaction; nothing without transactions."""
        self._raise_failure()
        if not self._state.is_transactional:
            return
        self._state.begin()
        self._began = self._delivery.progressed_at = self._clock()
        self._acknowledged_before = self._delivery.acknowledged
        self._has_offsets = False
        self._outage.was_away = False
        self._delivery.begin()

    def send(self, place: TopicPartition, batch: UnstampedBatch) -> int:
        """Hand *batch* over for *place*; returns a number that identifies it in errors, and for ``base_offset``.

        Waits while as many bytes are not acknowledged as ``buffer.memory`` allows, or as keep the leaders busy. Its bytes
        must not change until they are. When this raises, *batch* was not handed over.
        """
        self.check_sendable()
        if self._is_flushed:
            self._is_flushed = False
            self._delivery.forget()
        nbytes = len(batch.data)
        limit = min(self._settings.buffer_bytes, self._delivery.busy_bytes) - nbytes
        if self._delivery.nbytes > max(0, limit):
            with self._translating():
                self._pump(lambda: self._delivery.nbytes > max(0, limit), "room in the send queue")
        number = next(self._numbers)
        self._delivery.add(ProducerBatch(number, place, batch, nbytes, self._clock()))
        self._unsent += nbytes
        if self._unsent >= self._settings.max_request_bytes // 4:
            self._unsent = 0
            # A failure of what was handed over before is raised by the next call: this batch has its number.
            with suppress(ConnectError), self._translating():
                self._begin_wait()
                self._delivery.pump(0, flushes=False)
        return number

    def check_sendable(self) -> None:
        """Raise what ``send`` would without a batch: the failure of what was handed over before, or that there is no transaction."""
        self._raise_failure()
        allowed = Phase.IN_TRANSACTION if self._state.is_transactional else Phase.READY
        if self._state.phase is not allowed:
            raise IllegalTransitionError(f"send while the producer is {self._state.phase.value}")

    def push(self) -> None:
        """Send what was handed over: otherwise it stays here until ``flush``.

        Waits for answers only where no more may be in flight before them; what cannot be sent now is left to a later call.
        """
        self._raise_failure()
        with self._translating():
            self._begin_wait()
            self._delivery.pump(0, flushes=True)
            while self._delivery.is_in_flight and self._delivery.has_unsent:
                self._delivery.pump(self._until_report(), flushes=True)
                self._wait("records to be acknowledged")

    def send_group_offsets(self, group: str, entries: Sequence[GroupEntry]) -> None:
        """Commit *entries* for *group*, which nobody consumes with; done on return.

        In a transaction they are a part of it. Without transactions this is to be called after ``flush``.
        """
        self._raise_failure()
        if not entries:
            return
        with self._translating():
            self._begin_wait()
            if self._state.is_transactional:
                self._commit_in_transaction(group, entries)
            else:
                until = Deadline.after(self._settings.delivery_seconds, self._clock)
                self._requests.commit(group, entries, until)

    def settle(self) -> None:
        """Wait until everything that was handed over is acknowledged; ``base_offset`` knows as much as before."""
        self._raise_failure()
        with self._translating():
            self._pump(lambda: self._delivery.nbytes > 0, "records to be acknowledged")

    def flush(self) -> None:
        """Wait until everything that was handed over is acknowledged."""
        self.settle()
        # In a transaction, offsets are kept until the next one.
        self._is_flushed = not self._state.is_transactional

    def commit(self) -> None:
        """Wait until everything that was handed over is acknowledged, and commit the transaction."""
        self.flush()
        if self._state.is_transactional:
            self._end(is_commit=True)

    def abort(self) -> None:
        """Throw the open transaction away; nothing when none is open, or when it is left to the next ``open``."""
        if self._state.phase is not Phase.IN_TRANSACTION:
            return
        self._failure = None
        is_spoilt = self._delivery.clear()
        with self._translating():
            self._drain()
        is_spoilt |= self._delivery.clear()
        self._end(is_commit=False, is_spoilt=is_spoilt)
        if self._state.needs_epoch:
            with self._translating():
                seconds = self._transaction_ms / 1000
                until = Deadline.after(seconds, self._clock)
                own, version = self._state.identity, self._state.version
                found = self._requests.take(own, self._transaction_ms, until)
            self._state.initialised(found, version=version)

    def drop(self, number: int) -> UnstampedBatch:
        """Go on without the batch of a :class:`~headrace.kafka.wire.producer_errors.BatchRefusedError` that was raised.

        Returns it; the caller does something else with its records, and may reenqueue some of them. The batches behind it are
        sent. Another one that was refused is raised by the next call. Raises ``ValueError`` for a batch that was not refused.
        """
        if number not in self._delivery.refusals:
            raise ValueError(f"No batch with the number {number} was refused.")
        with self._translating():
            self._begin_wait()
            while self._delivery.is_behind(number):
                self._delivery.pump(self._until_report(), flushes=True)
                self._wait("records to be acknowledged")
            return self._delivery.drop(number).batch

    def reenqueue(self, number: int, place: TopicPartition, batch: UnstampedBatch) -> None:
        """Send *batch* for *place* under the *number* of one that was dropped, and in its place; called directly after that."""
        self._delivery.reenqueue(
            ProducerBatch(number, place, batch, len(batch.data), self._clock())
        )

    @property
    def buffer_bytes(self) -> int:
        """How many bytes may wait to be acknowledged: ``buffer.memory``."""
        return self._settings.buffer_bytes

    def base_offset(self, number: int) -> int | None:
        """The offset of the first record of an acknowledged batch; ``None`` when the broker has not said it.

        Known until the next ``begin``, or the first ``send`` after ``flush`` without transactions.
        """
        return self._delivery.offsets.get(number)

    def append_time(self, number: int) -> int | None:
        """The time of the records of an acknowledged batch, in milliseconds, where the broker sets it; known as long."""
        return self._delivery.append_times.get(number)

    def close(self) -> None:
        """Release the connections without waiting for what is in flight, which is aborted."""
        self._requests.abandon()
        self._delivery.close()

    # ------------------------------------------------------------- the transaction

    def _add_partitions(self, places: Collection[TopicPartition]) -> None:
        assert self._state.identity is not None
        self._requests.add_partitions(self._state.identity, places)

    def _commit_in_transaction(self, group: str, entries: Sequence[GroupEntry]) -> None:
        state = self._state
        if state.phase is not Phase.IN_TRANSACTION or state.identity is None:
            raise IllegalTransitionError(f"send_group_offsets while {state.phase.value}")
        if not state.has_group(group):
            if state.version != SECOND_VERSION:
                self._requests.add_group(state.identity, group)
            state.join_group(group)
        self._requests.commit_in_transaction(state.identity, group, entries, state.version)
        self._has_offsets = True

    def _end(self, *, is_commit: bool, is_spoilt: bool = False) -> None:
        state = self._state
        if not state.is_started:
            state.ended(spoilt=is_spoilt)
            self._began = None
            return
        # A transaction in which nothing was written cannot be committed where it begins with its first records.
        is_written = self._has_offsets or self._delivery.acknowledged > self._acknowledged_before
        state.end()
        assert state.identity is not None
        with self._translating():
            self._begin_wait()
            following = self._requests.end(
                state.identity, is_commit=is_commit and is_written, version=state.version
            )
        state.ended(following, spoilt=is_spoilt)
        self._began = None

    # ------------------------------------------------------------- waiting

    def _pump(self, condition: Callable[[], bool], what: str) -> None:
        """Have batches sent as long as *condition* holds; raises when one was refused."""
        self._begin_wait()
        while condition():
            self._delivery.pump(self._until_report(), flushes=True)
            self._raise_refusal()
            self._wait(what)

    def _drain(self) -> None:
        """Wait for what is in flight; errors of an aborted transaction count only where it cannot be ended."""
        self._begin_wait()
        while self._delivery.is_in_flight:
            try:
                self._delivery.drain(self._until_report())
            except StepRefusedError as refused:
                if reaction(refused.step, refused.code, outlived=self._outlived()) in _LEFT:
                    raise
            self._wait("records to be acknowledged")

    def _begin_wait(self) -> None:
        self._outage.text = ""
        self._waits_since = self._clock()
        self._report_at = self._waits_since + _REPORT_SECONDS

    def _until_report(self) -> float:
        return max(0.0, self._report_at - self._clock())

    def _wait(self, what: str) -> None:
        """Something is waited for; called often."""
        now = self._clock()
        if now < self._report_at:
            return
        self._report_at = now + _REPORT_SECONDS
        if self._began is not None:
            half = self._transaction_ms / 2000
            if self._delivery.is_in_flight and now - self._delivery.progressed_at > half:
                self._outage.was_away = True
            if self._requests.is_unanswered and now - self._waits_since > half:
                self._outage.was_away = True
            if self._outlived():
                raise self._too_long()
        late = self._delivery.late(self._settings.delivery_seconds)
        if late is not None:
            raise self._doubted(
                RetriableError(
                    f"Kafka did not acknowledge records for {late.place} within delivery.timeout.ms "
                    f"({self._settings.delivery_seconds:.0f} s){self._last_failure()}."
                )
            )
        self._waiting(f"{what}{self._last_failure()}")

    def _last_failure(self) -> str:
        return f" ({self._outage.text.rstrip('.')})" if self._outage.text else ""

    # ------------------------------------------------------------- failures

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure
        self._raise_refusal()

    def _raise_refusal(self) -> None:
        for first in self._delivery.refusals.values():
            raise first

    @contextmanager
    def _translating(self) -> Generator[None]:
        """Translate what the parts of the producer raise; a failure is kept for the calls after this one."""
        try:
            yield
        except StepRefusedError as refused:
            raise self._refusal(refused) from refused
        except UnansweredError as error:
            raise self._unanswered(error) from error
        except BatchRefusedError:
            # It is kept until it is dropped.
            raise
        except ConnectError as error:
            self._leave_unanswered()
            self._failure = self._failure or error
            raise
        except BaseException:
            self._leave_unanswered()
            raise

    def _leave_unanswered(self) -> None:
        """The wait for an answer was ended, so it is not known what became of the request."""
        if self._requests.is_unanswered:
            self._doubted(
                RetriableError(
                    "The wait for an answer of Kafka was interrupted; its outcome is unknown."
                )
            )

    def _refusal(self, refused: StepRefusedError) -> ConnectError:
        """The error for an answer that is one."""
        found = reaction(refused.step, refused.code, outlived=self._outlived())
        name = error_name(refused.code)
        where = f" for {refused.where}" if refused.where else ""
        said = f"Kafka answered {name} to {refused.step.value}{where}"
        if found is ProducerReaction.TIMED_OUT:
            return self._too_long()
        if found is ProducerReaction.FENCED and self._state.is_transactional:
            return self._stopped(self._timed_out or fenced(self._context()))
        if found in (ProducerReaction.FENCED, ProducerReaction.DOUBTFUL):
            return self._doubted(
                RetriableError(f"{said}: the producer is not usable any more, and is replaced.")
            )
        if found in (ProducerReaction.ABORT, ProducerReaction.OUT_OF_ORDER):
            error = RetriableError(f"{said}: what was sent is not taken, and is to be sent again.")
            if not self._state.is_transactional:
                return self._doubted(error)
        else:
            sentence = f"Kafka refused {refused.step.value}{where}: {name}."
            # Whoever plans looks whether a topic that was there is gone, and knows what is to be done then.
            kind = ReplanError if found is ProducerReaction.MISSING else TaskFailedError
            error = kind(f"{sentence} {advice(refused.step, refused.code)}".strip())
            if self._state.phase is Phase.ENDING:
                return self._stopped(error)
        self._failure = error
        return error

    def _unanswered(self, error: UnansweredError) -> ConnectError:
        if self._outlived():
            return self._too_long()
        return self._doubted(
            RetriableError(
                f"Kafka did not answer {error}. What became of the transaction is found out by the next producer."
            )
        )

    def _too_long(self) -> ConnectError:
        self._timed_out = timed_out(self._context())
        return self._doubted(self._timed_out)

    def _doubted(self, error: ConnectError) -> ConnectError:
        self._state.doubt()
        return self._left(error)

    def _stopped(self, error: ConnectError) -> ConnectError:
        self._state.stop()
        return self._left(error)

    def _left(self, error: ConnectError) -> ConnectError:
        self._abandon()
        self._failure, self._began = error, None
        return error

    def _abandon(self) -> None:
        self._requests.abandon()
        self._delivery.abandon()
        self._unsent = 0

    def _outlived(self) -> bool:
        """Whether the transaction has been open for longer than the broker allows."""
        if self._began is None:
            return False
        return (self._clock() - self._began) * 1000 > self._transaction_ms

    def _context(self) -> Context:
        return Context(
            transactional_id=self._state.transactional_id,
            owner=self._owner,
            open_seconds=None if self._began is None else self._clock() - self._began,
            timeout_seconds=self._transaction_ms / 1000,
            was_away=self._outage.was_away,
        )
