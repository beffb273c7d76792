"""A producer's requests to the coordinators of its transactional id and of groups, each with its answer awaited."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeVar

from kafka.protocol.consumer.group import OffsetCommitRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest
from kafka.protocol.producer.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    Message,
    UnsupportedApiError,
    Versions,
    WireConnection,
    unresolvable,
)
from headrace.kafka.wire.error_codes import NONE
from headrace.kafka.wire.producer_errors import (
    ProducerReaction,
    Step,
    error_name,
    reaction,
    severest,
)
from headrace.kafka.wire.transaction_state import FIRST_VERSION, SECOND_VERSION, ProducerIdentity

_Address = tuple[str, int]
_Answer = TypeVar("_Answer")

# Versions of the requests. InitProducerId names its producer since version 3 (KIP-360). The last versions of the others are
# those of the second version of transactions (KIP-890); AddPartitionsToTxn 4 and later are the brokers' own.
TAKE_VERSIONS: Final = (0, 4)
RENEW_VERSIONS: Final = (3, 4)
_FIND_VERSIONS: Final = (1, 3)
_ADD_PARTITIONS_VERSIONS: Final = (0, 3)
_ADD_OFFSETS_VERSIONS: Final = (0, 4)
_TXN_COMMIT_VERSIONS: Final = {FIRST_VERSION: (0, 4), SECOND_VERSION: (5, 5)}
_END_VERSIONS: Final = {FIRST_VERSION: (0, 4), SECOND_VERSION: (5, 5)}
_COMMIT_VERSIONS: Final = (2, 9)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.005, 0.5
_STEP_SECONDS: Final = 1.0
# What cannot be reached in a second may be far away.
_LONGEST_ATTEMPT: Final = 5.0
MISSING_SECONDS: Final = 5.0
"""How long a topic may be unknown to the brokers: they learn of a new one after each other."""
# The coordinator writes a group's offsets as one batch into a topic, whose batches have at most 1,048,588 bytes.
_MOST_OFFSET_BYTES: Final = 800_000
# Of a record of an offset without its texts, rounded up.
_ENTRY_BYTES: Final = 80


_TOO_OLD: Final = "The broker cannot give a producer of transactions a new epoch (KIP-360). Use a broker of version 2.5 or newer."


class CoordinatorKind(IntEnum):
    """What a broker coordinates; the numbers are the protocol's."""

    GROUP = 0
    TRANSACTION = 1


_Coordinator = tuple[CoordinatorKind, str]


class StepRefusedError(Exception):
    """A broker has answered *step* with the error *code*, and no repetition helps; *where* is what it concerns, or empty."""

    def __init__(self, step: Step, code: int, where: str = "") -> None:
        self.step = step
        self.code = code
        self.where = where
        super().__init__(f"{step.value}: {error_name(code)}")


class UnansweredError(Exception):
    """A request was sent, in part or whole, and not answered."""


@dataclass(slots=True)
class Outage:
    """How a producer's brokers are: *text* is the last failure to reach one, *was_away* says that there was one."""

    text: str = ""
    was_away: bool = False

    def note(self, error: Exception) -> str:
        """A broker could not be reached; returns the reason."""
        self.text = str(error) or type(error).__name__
        self.was_away = True
        return self.text


def init_producer_id(
    transactional_id: str | None, transaction_ms: int, current: ProducerIdentity | None
) -> InitProducerIdRequest:
    """The request for a producer's next identity; with *current*, only if that is the newest one (KIP-360)."""
    known = current or ProducerIdentity(-1, -1)
    return InitProducerIdRequest(
        transactional_id=transactional_id,
        transaction_timeout_ms=transaction_ms,
        producer_id=known.producer_id,
        producer_epoch=known.epoch,
    )


class CoordinatorRequests:
    """Asks the coordinators, one request after the other. One thread uses it.

    Coordinators that move, load or are away are waited for. *waits* is called often meanwhile, with what is waited for;
    what it raises ends the wait. *outlived* says whether the open transaction has outlived its time-out. Each call raises
    :class:`StepRefusedError`, or :class:`UnansweredError` when what became of its request is unknown. Calls with a deadline
    have no such doubt, and are repeated until then; after it they raise
    :class:`~headrace.connect.errors.RetriableError`.
    """

    def __init__(
        self,
        cluster: Cluster,
        transactional_id: str | None,
        *,
        request_seconds: float,
        waits: Callable[[str], None],
        outlived: Callable[[], bool],
        outage: Outage,
        clock: Clock,
    ) -> None:
        self._cluster = cluster
        self._id = transactional_id or ""
        self._own = CoordinatorKind.TRANSACTION, self._id
        self._request_seconds = request_seconds
        self._waits = waits
        self._outlived = outlived
        self._outage = outage
        self._clock = clock
        self._connections: dict[_Address, WireConnection] = {}
        self._coordinators: dict[_Coordinator, _Address] = {}
        self.is_unanswered = False
        """Whether a request was sent that is not answered; also when the wait for it was ended."""

    def transaction_version(self, deadline: Deadline) -> int:
        """The version of transactions that the cluster has finalised."""
        features = self._awaited("the features of the cluster", deadline, self._cluster.features)
        is_second = features.get("transaction.version", 0) >= SECOND_VERSION
        return SECOND_VERSION if is_second else FIRST_VERSION

    def new_identity(self, deadline: Deadline) -> ProducerIdentity:
        """The identity of a producer without a transactional id."""
        request = init_producer_id(None, 0, None)

        def attempt(share: Deadline) -> Message:
            answer = self._cluster.ask_any(request, Step.TAKE.value, share, versions=TAKE_VERSIONS)
            if answer.error_code != NONE:
                self._judge(_Ask(Step.TAKE, request, TAKE_VERSIONS, _code, self._own), answer)
            return answer

        answer = self._awaited(Step.TAKE.value, deadline, attempt)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def take(
        self, current: ProducerIdentity | None, transaction_ms: int, deadline: Deadline
    ) -> ProducerIdentity:
        """The next identity of the transactional id, whose open transaction is aborted first.

        With *current*, which must be its newest one; without, whichever producer has the id loses it.
        """
        request = init_producer_id(self._id, transaction_ms, current)
        step = Step.TAKE if current is None else Step.RENEW
        versions = TAKE_VERSIONS if current is None else RENEW_VERSIONS
        answer = self._asked(_Ask(step, request, versions, _code, self._own, deadline))
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def add_partitions(self, own: ProducerIdentity, places: Collection[TopicPartition]) -> None:
        """Add *places* to the transaction; only on the first version of transactions."""
        topics = defaultdict[str, list[int]](list)
        for place in places:
            topics[place.topic].append(place.partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._id,
            v3_and_below_producer_id=own.producer_id,
            v3_and_below_producer_epoch=own.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=numbers)
                for topic, numbers in topics.items()
            ],
        )
        step, versions = Step.ADD_PARTITIONS, _ADD_PARTITIONS_VERSIONS
        self._asked(_Ask(step, request, versions, _added_codes, self._own))

    def add_group(self, own: ProducerIdentity, group: str) -> None:
        """Add *group* to the transaction; only on the first version of transactions."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._id,
            producer_id=own.producer_id,
            producer_epoch=own.epoch,
            group_id=group,
        )
        self._asked(_Ask(Step.ADD_OFFSETS, request, _ADD_OFFSETS_VERSIONS, _code, self._own))

    def commit_in_transaction(
        self, own: ProducerIdentity, group: str, entries: Sequence[GroupEntry], version: int
    ) -> None:
        """Commit *entries* for *group* in the transaction, whose version that is; several requests if there are many."""
        request = TxnOffsetCommitRequest(
            transactional_id=self._id,
            group_id=group,
            producer_id=own.producer_id,
            producer_epoch=own.epoch,
        )
        kind = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        versions = _TXN_COMMIT_VERSIONS[version]
        coordinator = CoordinatorKind.GROUP, group
        for piece in pieces(group, entries):
            request.topics = _topics(piece, kind, kind.TxnOffsetCommitRequestPartition)
            step = Step.COMMIT_OFFSETS
            self._asked(_Ask(step, request, versions, _committed_codes, coordinator))

    def commit(self, group: str, entries: Sequence[GroupEntry], deadline: Deadline) -> None:
        """Commit *entries* for *group* outside of any transaction."""
        request = OffsetCommitRequest(
            group_id=group, generation_id_or_member_epoch=-1, member_id=""
        )
        kind = OffsetCommitRequest.OffsetCommitRequestTopic
        coordinator = CoordinatorKind.GROUP, group
        for piece in pieces(group, entries):
            request.topics = _topics(piece, kind, kind.OffsetCommitRequestPartition)
            step = Step.COMMIT_OFFSETS
            self._asked(
                _Ask(step, request, _COMMIT_VERSIONS, _committed_codes, coordinator, deadline)
            )

    def end(
        self, own: ProducerIdentity, *, is_commit: bool, version: int
    ) -> ProducerIdentity | None:
        """End the transaction, whose version that is; on the second one the answer has the next identity."""
        request = EndTxnRequest(
            transactional_id=self._id,
            producer_id=own.producer_id,
            producer_epoch=own.epoch,
            committed=is_commit,
        )
        answer = self._asked(_Ask(Step.END, request, _END_VERSIONS[version], _code, self._own))
        if version == FIRST_VERSION:
            return None
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def abandon(self) -> None:
        """Abort the connections, so that nothing arrives later that was not answered."""
        for each in self._connections.values():
            each.abort()
        self._connections.clear()
        self._coordinators.clear()
        self.is_unanswered = False

    def _awaited(
        self, doing: str, deadline: Deadline, attempt: Callable[[Deadline], _Answer]
    ) -> _Answer:
        """What *attempt* returns, made again with more time until *deadline*."""
        seconds, pause = _STEP_SECONDS, _FIRST_PAUSE
        while True:
            try:
                return attempt(Deadline.after(deadline.remaining(seconds), self._clock))
            except RetriableError as error:
                reason = self._outage.note(error)
                if deadline.expired:
                    raise
            except _AgainError as again:
                reason = str(again)
                self._raise_late(doing, reason, deadline)
            self._waits(f"{doing} ({reason.rstrip('.')})")
            seconds = min(2 * seconds, _LONGEST_ATTEMPT)
            time.sleep(deadline.remaining(pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _asked(self, ask: _Ask) -> Message:
        """The answer to *ask*, which has no error in it."""
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._attempt(ask)
            except _AgainError as again:
                reason = str(again)
            self._raise_late(ask.step.value, reason, ask.deadline)
            self._waits(f"{ask.step.value} ({reason})")
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _attempt(self, ask: _Ask) -> Message:
        address = self._coordinator(ask)
        connection = self._connected(address, ask)
        try:
            answer = self._exchange(connection, ask)
        except BaseException:
            self._drop(address)
            raise
        self._judge(ask, answer)
        return answer

    def _coordinator(self, ask: _Ask) -> _Address:
        kind, key = ask.coordinator
        if ask.coordinator in self._coordinators:
            return self._coordinators[ask.coordinator]
        request = FindCoordinatorRequest(key=key, key_type=int(kind))
        share = Deadline.after(ask.patience, self._clock)
        doing = f"the coordinator of {key!r}"
        try:
            answer = self._cluster.ask_any(request, doing, share, versions=_FIND_VERSIONS)
        except RetriableError as error:
            ask.patience = min(2 * ask.patience, _LONGEST_ATTEMPT)
            raise _AgainError(self._outage.note(error).rstrip(".")) from error
        found = _Ask(Step.FIND_COORDINATOR, request, _FIND_VERSIONS, _code, ask.coordinator)
        self._judge(found, answer)
        self._coordinators[ask.coordinator] = answer.host, answer.port
        return answer.host, answer.port

    def _connected(self, address: _Address, ask: _Ask) -> WireConnection:
        found = self._connections.get(address)
        if found is not None and not found.has_ended:
            return found
        self._drop(address)
        try:
            share = Deadline.after(_LONGEST_ATTEMPT, self._clock)
            made = self._connections[address] = self._cluster.connect_to(address, share)
        except (OSError, LoginRefusedError, AnswerTooLargeError) as error:
            self._raise_final(error, ask)
            self._coordinators.pop(ask.coordinator, None)
            raise _AgainError(self._outage.note(error)) from error
        return made

    def _exchange(self, connection: WireConnection, ask: _Ask) -> Message:
        until = Deadline.after(self._request_seconds, self._clock)
        try:
            connection.version(ask.request, ask.versions)
            self.is_unanswered = True
            connection.send(ask.request, until, versions=ask.versions)
            while (answer := connection.receive(_step(until))) is None:
                if until.expired:
                    raise TimeoutError("the broker did not answer in time")
                self._waits(ask.step.value)
            decoded = answer.decoded()
        except (OSError, LoginRefusedError, AnswerTooLargeError, UnsupportedApiError) as error:
            self._raise_final(error, ask)
            reason = self._outage.note(error)
            self._coordinators.pop(ask.coordinator, None)
            if ask.deadline is None:
                raise UnansweredError(f"{ask.step.value}: {reason}") from error
            self.is_unanswered = False
            raise _AgainError(reason) from error
        self.is_unanswered = False
        return decoded

    def _judge(self, ask: _Ask, answer: Message) -> None:
        """Raise for an error in *answer*."""
        codes = ask.codes(answer)
        late = self._outlived()
        code = severest(ask.step, (each for each, _ in codes), outlived=late)
        if code is None:
            return
        where = next(where for each, where in codes if each == code)
        found = reaction(ask.step, code, outlived=late)
        if found is ProducerReaction.MISSING:
            since = ask.missing_since = ask.missing_since or self._clock()
            is_given_up = self._clock() - since >= MISSING_SECONDS
            found = ProducerReaction.FAIL if is_given_up else ProducerReaction.RETRY
        if found is ProducerReaction.REFRESH:
            self._coordinators.pop(ask.coordinator, None)
        elif found is not ProducerReaction.RETRY:
            raise StepRefusedError(ask.step, code, _denied(ask, code) or where)
        raise _AgainError(error_name(code))

    def _raise_late(self, doing: str, reason: str, deadline: Deadline | None) -> None:
        if deadline is not None and deadline.expired:
            raise RetriableError(f"Kafka did not answer {doing} in time: {reason}.")

    def _raise_final(self, error: Exception, ask: _Ask) -> None:
        if isinstance(error, UnsupportedApiError) and ask.step is Step.RENEW:
            raise TaskFailedError(_TOO_OLD) from error
        final = unresolvable(error, ask.step.value, self._cluster.settings)
        if final is not None:
            raise final from error

    def _drop(self, address: _Address) -> None:
        if (dropped := self._connections.pop(address, None)) is not None:
            dropped.abort()


class _AgainError(Exception):
    """The same request may be answered otherwise a little later; the message is the reason."""


@dataclass(slots=True)
class _Ask:
    """A request, and how to take its answer.

    *codes* are its error codes, and what each concerns. Only with a *deadline* is it sent again when it was not answered.
    """

    step: Step
    request: Message
    versions: Versions
    codes: Callable[[Message], list[tuple[int, str]]]
    coordinator: _Coordinator
    deadline: Deadline | None = None
    patience: float = _STEP_SECONDS
    missing_since: float | None = None


def _denied(ask: _Ask, code: int) -> str:
    """The group or transactional id that the client may not use, as its administrator has to name it; empty for other errors."""
    match error_name(code):
        case "GROUP_AUTHORIZATION_FAILED":
            return f"group {getattr(ask.request, 'group_id', '') or ask.coordinator[1]!r}"
        case "TRANSACTIONAL_ID_AUTHORIZATION_FAILED":
            return f"transactional id {ask.coordinator[1]!r}"
        case _:
            return ""


def _code(answer: Message) -> list[tuple[int, str]]:
    return [(answer.error_code, "")]


def _added_codes(answer: Message) -> list[tuple[int, str]]:
    return [
        (each.partition_error_code, str(TopicPartition(topic.name, each.partition_index)))
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ]


def _committed_codes(answer: Message) -> list[tuple[int, str]]:
    return [
        (each.error_code, str(TopicPartition(topic.name, each.partition_index)))
        for topic in answer.topics
        for each in topic.partitions
    ]


def _step(until: Deadline) -> Deadline:
    return Deadline.after(until.remaining(_STEP_SECONDS), until.clock)


def _topics(entries: Iterable[GroupEntry], topic: Message, partition: Message) -> list[Message]:
    """*entries* as the parts of a request that has the classes *topic* and *partition*."""
    found = defaultdict[str, list[Message]](list)
    for each in entries:
        found[each.topic].append(
            partition(
                partition_index=each.partition,
                committed_offset=each.offset,
                committed_leader_epoch=each.leader_epoch,
                committed_metadata=each.metadata,
            )
        )
    return [topic(name=name, partitions=partitions) for name, partitions in found.items()]


def pieces(group: str, entries: Sequence[GroupEntry]) -> Iterator[list[GroupEntry]]:
    """*entries* in order, cut so that the records of each piece fit into one batch of the offsets' topic. Pure."""
    piece, size = list[GroupEntry](), 0
    for each in entries:
        texts = len(group) + len(each.topic) + len(each.metadata.encode())
        nbytes = _ENTRY_BYTES + texts
        if piece and size + nbytes > _MOST_OFFSET_BYTES:
            yield piece
            piece, size = [], 0
        piece.append(each)
        size += nbytes
    if piece:
        yield piece
