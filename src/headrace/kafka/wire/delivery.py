"""Batches on their way to the leaders of many partitions: several requests in flight to each, answers, and what is sent again."""

from __future__ import annotations

import selectors
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Final

from kafka.protocol.producer.produce import ProduceResponse

from headrace.connect.errors import RetriableError
from headrace.kafka.batches.checksums import Bytes
from headrace.kafka.batches.producer_batch import stamped
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire import error_codes
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    UnsupportedApiError,
    WireConnection,
    unresolvable,
)
from headrace.kafka.wire.error_codes import NONE, Reaction
from headrace.kafka.wire.partition_queue import NO_SEQUENCE, PartitionQueue, ProducerBatch
from headrace.kafka.wire.produce_request import (
    JOINING_VERSIONS,
    VERSIONS,
    ProduceResult,
    produce_answer,
    produce_body,
)
from headrace.kafka.wire.producer_errors import (
    BatchRefusedError,
    ProducerReaction,
    Step,
    advice,
    error_name,
    reaction,
    severest,
)
from headrace.kafka.wire.producer_settings import ProducerWireSettings
from headrace.kafka.wire.shared_buffers import SharedBuffers
from headrace.kafka.wire.transaction_requests import (
    MISSING_SECONDS,
    Outage,
    StepRefusedError,
    UnansweredError,
)
from headrace.kafka.wire.transaction_state import SECOND_VERSION, TransactionState

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
# Metadata and connections may take so long of a round in which other leaders could be served; metadata more each time.
_FIRST_ATTEMPT_SECONDS, _ATTEMPT_SECONDS = 1.0, 5.0
# A broker takes some milliseconds for the first batch of each partition: of a thousand in one request it may not answer in time.
_MOST_PARTITIONS: Final = 100
_PRODUCE: Final = Step.PRODUCE


class Delivery:
    """Sends batches to the leaders of their partitions. One thread uses it, and has it work by ``pump``.

    Without transactions, batches that were not answered are sent again with their sequences, to whoever leads by then; in a
    transaction :class:`~headrace.kafka.wire.transaction_requests.UnansweredError` is raised. *joins* is called with
    partitions before their first batch in a transaction; *outlived* says whether that has outlived its time-out.
    """

    def __init__(
        self,
        cluster: Cluster,
        state: TransactionState,
        *,
        settings: ProducerWireSettings,
        joins: Callable[[Collection[TopicPartition]], None],
        outlived: Callable[[], bool],
        outage: Outage,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._state = state
        self._settings = settings
        self._joins = joins
        self._outlived = outlived
        self._outage = outage
        self._clock = clock
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._joining: dict[TopicPartition, None] = {}
        self._unplaced: dict[TopicPartition, PartitionQueue] = {}
        self._leaders: dict[int, _Leader] = {}
        self._selector = selectors.DefaultSelector()
        self._pause, self._refresh_at = _FIRST_PAUSE, 0.0
        self._patience = _FIRST_ATTEMPT_SECONDS
        self._paused: dict[TopicPartition, PartitionQueue] = {}
        self._shared = SharedBuffers(settings.buffer_bytes)
        self.nbytes = 0
        """Bytes of batches that were handed over, and are neither acknowledged nor dropped."""
        self.offsets: dict[int, int] = {}
        """Where acknowledged batches landed, by their numbers, until ``forget``."""
        self.append_times: dict[int, int] = {}
        """The time of the records of acknowledged batches, where the broker sets it."""
        self.refusals: dict[int, BatchRefusedError] = {}
        """Batches that were refused, by their numbers, until they are dropped. What is behind them waits."""
        self.acknowledged = 0
        """How many batches were acknowledged."""
        self.progressed_at = clock()
        """When the last one was, by the clock."""

    def add(self, batch: ProducerBatch) -> None:
        """*batch* is to be sent behind the others of its partition."""
        place = batch.place
        queue = self._queues.get(place)
        if queue is None:
            queue = PartitionQueue(place, most_in_flight=self._settings.most_in_flight)
            self._queues[place] = queue
        queue.add(batch)
        self._shared.add(batch)
        self.nbytes += batch.nbytes
        if not self._state.has(place):
            self._joining[place] = None
        self._offer(queue)

    @property
    def is_in_flight(self) -> bool:
        """Whether a request is not answered."""
        return any(leader.in_flight for leader in self._leaders.values())

    @property
    def has_unsent(self) -> bool:
        """Whether a batch waits to be sent."""
        return any(queue.has_waiting for queue in self._queues.values())

    @property
    def busy_bytes(self) -> int:
        """So many bytes keep the leaders busy: what may be in flight to each, and as much again that waits. More only takes memory."""
        each = self._settings.most_in_flight * self._settings.max_request_bytes
        return 2 * each * max(1, len(self._leaders))

    def pump(self, seconds: float, *, flushes: bool) -> None:
        """Send what can be sent, then wait up to *seconds* for something to happen, and take what has come.

        With *flushes* small requests are sent, too, instead of being gathered while others are in flight. Raises
        :class:`~headrace.kafka.wire.transaction_requests.StepRefusedError`; batches that were refused are
        :attr:`refusals`.
        """
        now = self._clock()
        if self._joining:
            self._join()
        if self._paused:
            self._resume(now)
        if self._unplaced and now >= self._refresh_at:
            self._place_all()
        for leader in list(self._leaders.values()):
            if leader.ready and leader.muted_until <= now:
                self._fill(leader, flushes=flushes)
        self._exchange(seconds)

    def drain(self, seconds: float) -> None:
        """Send nothing new; wait up to *seconds* for answers, and take what has come; raises as ``pump``."""
        self._exchange(seconds)

    def late(self, seconds: float) -> ProducerBatch | None:
        """A batch that was handed over more than *seconds* ago, and is not acknowledged."""
        before = self._clock() - seconds
        oldest = (queue.oldest for queue in self._queues.values())
        return next((each for each in oldest if each is not None and each.since < before), None)

    def is_behind(self, number: int) -> bool:
        """Whether batches behind the refused one of that *number* are in flight."""
        return self._queues[self.refusals[number].place].is_in_flight

    def drop(self, number: int) -> ProducerBatch:
        """Go on without the refused batch of that *number*, which is returned; none of its partition may be in flight."""
        queue = self._queues[self.refusals.pop(number).place]
        dropped = queue.drop()
        self._state.rewind(queue.place, dropped.sequence)
        self.nbytes -= dropped.nbytes
        self._offer(queue)
        return dropped

    def reenqueue(self, batch: ProducerBatch) -> None:
        """*batch* is to be sent in the place of the one of its partition that was just dropped."""
        queue = self._queues[batch.place]
        queue.reenqueue(batch)
        self.nbytes += batch.nbytes
        self._offer(queue)

    def begin(self) -> None:
        """A transaction begins: the brokers do not know its producer's epoch yet. Nothing may be left of the last one."""
        self._queues.clear()
        self.forget()

    def forget(self) -> None:
        """Forget where batches landed."""
        self.offsets.clear()
        self.append_times.clear()

    def clear(self) -> bool:
        """Forget what is not in flight; returns whether sequences were given to any of it."""
        cleared = [each for queue in self._queues.values() for each in queue.clear()]
        self.nbytes -= sum(each.nbytes for each in cleared)
        for held in (self._unplaced, self._paused, self._joining, self.refusals):
            held.clear()
        for leader in self._leaders.values():
            leader.ready.clear()
        return any(each.sequence != NO_SEQUENCE for each in cleared)

    def abandon(self) -> None:
        """Forget everything, and abort the connections, so that nothing that was not answered arrives later."""
        for leader in self._leaders.values():
            self._disconnect(leader)
        self._leaders.clear()
        self._queues.clear()
        self.clear()
        self.nbytes = 0

    def close(self) -> None:
        """As ``abandon``, for good."""
        self.abandon()
        self._selector.close()

    # ------------------------------------------------------------- leaders

    def _offer(self, queue: PartitionQueue) -> None:
        """Have a batch of *queue* sent, if it has one that may be sent."""
        if queue.next is None:
            return
        if queue.leader is None:
            self._unplaced[queue.place] = queue
        elif queue.place not in self._paused:
            self._leaders[queue.leader].ready[queue.place] = queue

    def _resume(self, now: float) -> None:
        for queue in [each for each in self._paused.values() if each.pause_until <= now]:
            del self._paused[queue.place]
            self._offer(queue)

    def _join(self) -> None:
        joining = list(self._joining)
        if self._state.version != SECOND_VERSION:
            self._joins(joining)
        self._state.join(joining)
        self._joining.clear()

    def _place_all(self) -> None:
        """Find the leaders of partitions without one; earlier metadata counts until it has failed."""
        self._place(is_fresh=False)
        if not self._unplaced:
            return
        topics = {place.topic for place in self._unplaced}
        try:
            self._cluster.metadata(topics, Deadline.after(self._patience, self._clock))
        except RetriableError as error:
            self._outage.note(error)
            self._patience = min(2 * self._patience, _ATTEMPT_SECONDS)
        else:
            self._patience = _FIRST_ATTEMPT_SECONDS
            self._place(is_fresh=True)
        if self._unplaced:
            self._back_off()
        else:
            self._pause = _FIRST_PAUSE

    def _place(self, *, is_fresh: bool) -> None:
        known = self._cluster.known
        for place, queue in list(self._unplaced.items()):
            topic = known.topics.get(place.topic)
            found = topic and topic.partitions.get(place.partition)
            if is_fresh:
                queue.has_failed = False
                if topic and topic.error and topic.error.reaction is Reaction.FAIL:
                    raise StepRefusedError(_PRODUCE, topic.error.code, str(place))
                if found is None:
                    self._miss(queue)
                    continue
            if queue.has_failed or not found or found.leader not in known.brokers:
                continue
            assert found.leader is not None
            queue.leader = found.leader
            self._leaders.setdefault(found.leader, _Leader(found.leader))
            del self._unplaced[place]
            self._offer(queue)

    def _miss(self, queue: PartitionQueue) -> None:
        """The brokers do not know the partition; they learn of a new one after each other."""
        queue.missing_since = queue.missing_since or self._clock()
        if self._clock() - queue.missing_since >= MISSING_SECONDS:
            code = error_codes.UNKNOWN_TOPIC_OR_PARTITION.code
            raise StepRefusedError(_PRODUCE, code, str(queue.place))

    def _withdraw(self, queue: PartitionQueue) -> None:
        """Its leader is not known any more."""
        if queue.leader is not None:
            self._leaders[queue.leader].ready.pop(queue.place, None)
        queue.leader, queue.has_failed = None, True
        self._offer(queue)

    # ------------------------------------------------------------- sending

    def _fill(self, leader: _Leader, *, flushes: bool) -> None:
        """Send requests to *leader* as long as it has room for them."""
        while leader.ready and not leader.is_sending:
            if len(leader.in_flight) >= self._settings.most_in_flight:
                return
            chosen, nbytes = self._gathered(leader)
            could_grow = not flushes and not any(each.has_more for each in chosen)
            half = self._settings.max_request_bytes // 2
            is_small = nbytes < half and len(chosen) < _MOST_PARTITIONS
            if not chosen or (could_grow and is_small and leader.in_flight):
                return
            try:
                if not self._send(leader, chosen):
                    return
            except (OSError, LoginRefusedError, AnswerTooLargeError, UnsupportedApiError) as error:
                self._lose(leader, error)
                return

    def _gathered(self, leader: _Leader) -> tuple[list[PartitionQueue], int]:
        """The partitions whose next batches fit into one request; those that were served last come last."""
        chosen, size = list[PartitionQueue](), 0
        for place, queue in list(leader.ready.items()):
            batch = queue.next
            if batch is None:
                del leader.ready[place]
                continue
            is_full = chosen and size + batch.nbytes > self._settings.max_request_bytes
            if is_full or len(chosen) == _MOST_PARTITIONS:
                break
            chosen.append(queue)
            size += batch.nbytes
        return chosen, size

    def _send(self, leader: _Leader, chosen: Iterable[PartitionQueue]) -> bool:
        """Begin a request with the next batch of each of *chosen*; ``False`` while the login must be renewed first."""
        connection = self._connected(leader)
        now = self._clock()
        if connection.must_log_in(now):
            if leader.in_flight:
                return False
            connection.log_in(Deadline.after(_ATTEMPT_SECONDS, self._clock))
        joins = self._state.is_transactional and self._state.version == SECOND_VERSION
        version = connection.version(ProduceResponse, JOINING_VERSIONS if joins else VERSIONS)
        made = [(queue, self._stamped(queue)) for queue in chosen]
        topics: dict[str, list[tuple[int, list[Bytes]]]] = {}
        batches = list[ProducerBatch]()
        for queue, pieces in made:
            place = queue.place
            topics.setdefault(place.topic, []).append((place.partition, pieces))
            batches.append(queue.sent())
            del leader.ready[place]
            self._offer(queue)
        body = produce_body(
            topics,
            version=version,
            transactional_id=self._state.transactional_id,
            timeout_ms=int(self._settings.request_seconds * 1000),
        )
        leader.in_flight.append(_Request(batches, now))
        connection.start(ProduceResponse, version, body)
        self._push(leader, connection)
        return True

    def _stamped(self, queue: PartitionQueue) -> list[Bytes]:
        """The bytes of the next batch of *queue*; raises ``ValueError`` for one that no broker may be sent."""
        state, batch = self._state, queue.next
        assert state.identity is not None
        assert batch is not None
        if batch.sequence == NO_SEQUENCE:
            batch.sequence = state.sequence(batch.place, batch.batch.record_count)
        try:
            return stamped(
                batch.batch,
                producer_id=state.identity.producer_id,
                epoch=state.identity.epoch,
                sequence=batch.sequence,
                transactional=state.is_transactional,
            )
        except ValueError:
            state.rewind(batch.place, batch.sequence)
            batch.sequence = NO_SEQUENCE
            raise

    def _connected(self, leader: _Leader) -> WireConnection:
        if leader.connection is not None and leader.connection.has_ended:
            self._disconnect(leader)
        if leader.connection is None:
            share = Deadline.after(_ATTEMPT_SECONDS, self._clock)
            leader.connection = self._cluster.connect(leader.node, share)
            self._selector.register(leader.connection, _READ, leader)
        return leader.connection

    def _push(self, leader: _Leader, connection: WireConnection) -> None:
        is_sending = not connection.push()
        if is_sending is not leader.is_sending:
            leader.is_sending = is_sending
            events = _READ | _WRITE if is_sending else _READ
            self._selector.modify(connection, events, leader)

    # ------------------------------------------------------------- answers

    def _exchange(self, seconds: float) -> None:
        """Wait for what comes next; send on, and take answers."""
        leaders = list(self._leaders.values())
        buffered = [each for each in leaders if each.has_buffered]
        events = self._selector.select(0 if buffered else self._wait_seconds(seconds))
        for key, mask in events:
            leader: _Leader = key.data
            try:
                if mask & _WRITE and leader.connection is not None:
                    self._push(leader, leader.connection)
            except OSError as error:
                self._lose(leader, error)
        readable = {key.data.node: key.data for key, mask in events if mask & _READ}
        readable |= {each.node: each for each in buffered}
        self._lose_late(leaders, readable)
        for leader in readable.values():
            self._receive(leader)

    def _wait_seconds(self, seconds: float) -> float:
        now, due = self._clock(), list[float]()
        if self._unplaced:
            due.append(self._refresh_at)
        due += [each.pause_until for each in self._paused.values()]
        due += [each.muted_until for each in self._leaders.values() if each.muted_until > now]
        return max(0.0, min([seconds, *(each - now for each in due)]))

    def _lose_late(self, leaders: Iterable[_Leader], readable: Collection[int]) -> None:
        """Give up brokers that have not answered in time; what is there now is not late, however long the caller was away."""
        before = self._clock() - self._settings.request_seconds
        for leader in leaders:
            is_late = leader.in_flight and leader.in_flight[0].sent_at < before
            if is_late and leader.node not in readable:
                self._lose(leader, TimeoutError("it did not answer in time"))

    def _receive(self, leader: _Leader) -> None:
        if leader.connection is None:
            return
        if not leader.in_flight:
            # It was idle for long, which is no sign of an outage.
            self._disconnect(leader)
            return
        try:
            answer = leader.connection.receive(Deadline.after(0, self._clock))
            if answer is None:
                return
            throttle_ms, results = produce_answer(answer.body, answer.version)
            expected = [each.place for each in leader.in_flight[0].batches]
            found = {TopicPartition(each.topic, each.partition): each for each in results}
            if len(expected) != len(found) or any(each not in found for each in expected):
                raise ConnectionError("its answer is about other partitions than were sent")
        except (OSError, AnswerTooLargeError) as error:
            self._lose(leader, error)
            return
        request = leader.in_flight.popleft()
        if throttle_ms > 0:
            self._mute(leader, throttle_ms / 1000)
        self._take([(each, found[each.place]) for each in request.batches])

    def _mute(self, leader: _Leader, seconds: float) -> None:
        """Wait out a quota: the broker reads nothing of this client for so long (KIP-219), so what it has is not late either."""
        leader.muted_until = self._clock() + seconds
        for request in leader.in_flight:
            request.sent_at = leader.muted_until
        self._outage.text = f"broker {leader.node}: a quota throttles this client"

    def _take(self, answered: Iterable[tuple[ProducerBatch, ProduceResult]]) -> None:
        """Take the results of a request; raises the severest error that cannot be settled, once all are taken."""
        errors = dict[int, TopicPartition]()
        for batch, result in answered:
            if result.error_code == NONE:
                self._accept(batch, result)
            elif not self._is_settled(batch, result):
                errors.setdefault(result.error_code, batch.place)
        code = severest(_PRODUCE, errors, outlived=self._outlived())
        if code is not None:
            raise StepRefusedError(_PRODUCE, code, str(errors[code]))

    def _accept(self, batch: ProducerBatch, result: ProduceResult) -> None:
        queue = self._queues[batch.place]
        queue.accepted(batch)
        self.nbytes -= batch.nbytes
        if result.base_offset >= 0:
            self.offsets[batch.number] = result.base_offset
        if result.append_time >= 0:
            self.append_times[batch.number] = result.append_time
        self.acknowledged += 1
        self.progressed_at = self._clock()
        self._offer(queue)

    def _is_settled(self, batch: ProducerBatch, result: ProduceResult) -> bool:
        """React to an error; ``False`` when it is to be raised."""
        queue = self._queues[batch.place]
        found = reaction(_PRODUCE, result.error_code, outlived=self._outlived())
        is_behind = queue.has_earlier(batch)
        if found is ProducerReaction.ACCEPTED:
            self._accept(batch, result)
            return True
        if found is ProducerReaction.REFUSED and not is_behind:
            queue.refuse(batch)
            self.refusals[batch.number] = _refusal(batch, result)
            return True
        is_repeated = found in (
            ProducerReaction.RETRY,
            ProducerReaction.REFRESH,
            ProducerReaction.MISSING,
            ProducerReaction.REFUSED,
        )
        is_repeated |= found is ProducerReaction.OUT_OF_ORDER and is_behind
        queue.again(batch)
        if not is_repeated:
            return False
        if not is_behind:
            queue.wait(self._clock())
            self._paused[queue.place] = queue
            self._outage.text = f"{batch.place}: {error_name(result.error_code)}"
        if found is ProducerReaction.MISSING:
            self._miss(queue)
        if found in (ProducerReaction.REFRESH, ProducerReaction.MISSING):
            self._withdraw(queue)
        else:
            self._offer(queue)
        return True

    # ------------------------------------------------------------- lost connections

    def _lose(self, leader: _Leader, error: Exception) -> None:
        """Drop the connection to *leader*, and have its partitions' leaders looked for."""
        unanswered, leader.in_flight = leader.in_flight, deque[_Request]()
        self._disconnect(leader)
        reason = self._outage.note(ConnectionError(f"broker {leader.node}: {error}"))
        if unanswered and self._state.is_transactional:
            raise UnansweredError(f"{_PRODUCE.value}: {reason}") from error
        for request in unanswered:
            for batch in request.batches:
                self._queues[batch.place].again(batch)
        for queue in self._queues.values():
            if queue.leader == leader.node:
                self._withdraw(queue)
        self._back_off()
        final = unresolvable(error, "the sending of records", self._cluster.settings)
        if final is not None:
            raise final from error

    def _disconnect(self, leader: _Leader) -> None:
        leader.in_flight, leader.is_sending = deque[_Request](), False
        if leader.connection is not None:
            self._selector.unregister(leader.connection)
            leader.connection.abort()
            leader.connection = None

    def _back_off(self) -> None:
        now = self._clock()
        if self._refresh_at <= now:
            self._refresh_at = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)


@dataclass(slots=True, eq=False)
class _Request:
    """Batches of different partitions that were sent together; the answer is waited for from *sent_at* on."""

    batches: list[ProducerBatch]
    sent_at: float


@dataclass(slots=True, eq=False)
class _Leader:
    """A broker, the partitions that have something to send to it, and the requests that it has not answered."""

    node: int
    ready: dict[TopicPartition, PartitionQueue] = field(
        default_factory=dict[TopicPartition, PartitionQueue]
    )
    connection: WireConnection | None = None
    in_flight: deque[_Request] = field(default_factory=deque[_Request])
    is_sending: bool = False
    """Whether a part of the last request is still here."""
    muted_until: float = 0.0
    """Until when nothing is sent to it, by the producer's clock."""

    @property
    def has_buffered(self) -> bool:
        return bool(self.in_flight) and self.connection is not None and self.connection.is_readable


def _refusal(batch: ProducerBatch, result: ProduceResult) -> BatchRefusedError:
    return BatchRefusedError(
        batch.place,
        batch.number,
        error=error_name(result.error_code),
        advice=advice(_PRODUCE, result.error_code),
        detail=result.message or next((each.message for each in result.refused), ""),
        rows=[each.row for each in result.refused],
    )
