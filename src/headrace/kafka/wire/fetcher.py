"""Record batches fetched from the leaders of many partitions at once."""

from __future__ import annotations

import logging
import selectors
from collections import defaultdict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kafka.protocol.consumer.fetch import FetchRequest

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.batches.headers import (
    AbortedTransaction,
    BatchHeader,
    leading_headers,
    next_offset,
)
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import listed
from headrace.kafka.topic_partition import TopicPartition, topic_id_text
from headrace.kafka.wire.cluster import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    Cluster,
    ClusterMetadata,
    IsolationLevel,
    PartitionMetadata,
    TopicMetadata,
)
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    UnsupportedApiError,
    WireConnection,
    unresolvable,
)
from headrace.kafka.wire.error_codes import ErrorCode, Reaction, error_code
from headrace.kafka.wire.fetch_answer import (
    VERSIONS,
    WITH_TOPIC_IDS,
    FetchAnswer,
    PartitionAnswer,
    fetch_answer,
)

_log = logging.getLogger(__name__)

_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 1.0
# Metadata may take so long of a poll that other leaders could serve.
_METADATA_SECONDS: Final = 5.0
# Brokers learn of topics one after the other: only an answer without it that comes so much later counts.
_MISSED_SECONDS: Final = 2.0
_EMPTY: Final = 3
_CUT_OFF: Final = 3
_NAMED: Final = 3
_NO_ID: Final = UUID(int=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSettings:
    """How much is fetched at once. *max_bytes* bounds one answer, *max_partition_bytes* one partition's part of it.

    A record batch that is longer than either still comes, alone. An answer is sent as soon as there are *min_bytes*,
    or after *max_wait_ms*.
    """

    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED
    max_bytes: int = 16 * 1024 * 1024
    max_partition_bytes: int = 8 * 1024 * 1024
    min_bytes: int = 1
    max_wait_ms: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchRange:
    """Offsets to fetch: from *start* up to, not including, *end*; without an end it is never finished.

    *topic_id* is the topic that is meant, should there be another one of that name; ``None`` where the brokers have no
    ids, or for whichever topic has the name.
    """

    place: TopicPartition
    start: int
    end: int | None = None
    topic_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRecords:
    """Record batches of one partition.

    *data* is a view on the received bytes, which live as long as it does; *headers* are those of its complete batches.
    The first one may begin before *fetch_offset*, the last one may end after the range. The next request asks for
    *next_offset*. *aborted* are the aborted transactions in these batches, empty when reading uncommitted.
    """

    place: TopicPartition
    fetch_offset: int
    data: memoryview
    headers: list[BatchHeader]
    next_offset: int
    aborted: tuple[AbortedTransaction, ...]
    high_watermark: int
    last_stable_offset: int


class OffsetOutOfRangeError(TaskFailedError):
    """The offset to fetch is not in the partition's log.

    It was deleted (*offset* < *log_start*), or never written or lost by the brokers (*offset* > *log_end*).
    """

    def __init__(self, place: TopicPartition, *, offset: int, log_start: int, log_end: int) -> None:
        self.place = place
        self.offset = offset
        self.log_start = log_start
        self.log_end = log_end
        super().__init__(
            f"Offset {offset} of {place} is out of range: the log now begins at {log_start} and ends at {log_end}."
        )


class TopicRecreatedError(TaskFailedError):
    """The topic was deleted, and another one of the same name created: offsets of the one mean nothing in the other."""

    def __init__(self, place: TopicPartition, *, expected: UUID, found: UUID) -> None:
        self.place = place
        self.expected = expected
        self.found = found
        super().__init__(
            f"The topic {place.topic!r} was deleted and created again: {place} was to be read in the topic with the id "
            f"{topic_id_text(expected)}, and there is one with the id {topic_id_text(found)} now."
        )


class TopicMissingError(TaskFailedError):
    """The brokers do not know the topic, or the partition, any more; they were asked again some seconds later."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        super().__init__(
            f"The partition {place} does not exist (any more). Check the topic's name."
        )


class UnfetchableError(TaskFailedError):
    """The brokers do not hand out the partition *place* from the *offset* on that is to be read."""

    def __init__(self, place: TopicPartition, offset: int, sentence: str) -> None:
        self.place = place
        self.offset = offset
        super().__init__(sentence)


LOST: Final = (OffsetOutOfRangeError, TopicRecreatedError, TopicMissingError)
"""What a fetcher raises when what was to be read is gone: a policy decides. Each has the *place*."""


class Fetcher:
    """Fetches ranges of partitions, one request in flight for each leader. One thread uses it.

    ``poll`` sends the next request to a leader before it returns what the last one brought, so that the broker works
    while the caller decodes. One call returns what one leader has answered, at most ``max_bytes`` or one longer batch. So
    memory holds what the caller has not let go of, and one answer more while ``poll`` receives it; what further leaders
    have answered waits in the system's socket buffers and at the brokers.

    The partitions that have just brought data go to the end of the next request, so none starves. Ranges that have
    reached their end are not asked for any more. Fetch requests name topics by id where the broker can (KIP-516), and
    go to a replica in the client's rack where the brokers offer one (KIP-392).
    """

    def __init__(
        self,
        cluster: Cluster,
        ranges: Collection[FetchRange],
        settings: FetchSettings | None = None,
    ) -> None:
        self._cluster = cluster
        self._settings = settings or FetchSettings()
        self._ranges: dict[TopicPartition, _Range] = {}
        self._unplaced: dict[TopicPartition, _Range] = {}
        self._doubtful: dict[TopicPartition, _Range] = {}
        self._leaders: dict[int, _Leader] = {}
        self._selector = selectors.DefaultSelector()
        self._errors = deque[tuple[TopicPartition, TaskFailedError]]()
        self._failures: dict[TopicPartition, str] = {}
        self._pause, self._refresh_at = _FIRST_PAUSE, 0.0
        self._throttled_ms = 0
        self.add(ranges)

    def poll(self, deadline: Deadline) -> list[FetchedRecords]:
        """What has arrived next; empty when nothing has before the deadline, or when every range is finished.

        Give it some seconds, in which a connection may have to be made. Moved leaders and lost connections are waited out.
        Raises :class:`~headrace.connect.errors.RetriableError` when nothing came before the deadline and a broker or a
        leader is away; polling again goes on. Raises
        :class:`OffsetOutOfRangeError`, :class:`TopicRecreatedError`, :class:`TopicMissingError`,
        :class:`~headrace.kafka.batches.errors.CorruptBatchError`, :class:`UnfetchableError` or another
        :class:`~headrace.connect.errors.TaskFailedError` once for a partition, which is then not asked for any more
        until it is added again; other partitions lose nothing.
        """
        while not (self._errors or self.finished):
            self._settle(deadline)
            for leader in self._leaders.values():
                if leader.asked is None and leader.ranges:
                    self._send(leader, deadline)
            found = self._next(deadline)
            if found:
                return found
            if deadline.expired and not self._errors:
                self._raise_failures()
                return []
        if self._errors:
            raise self._errors.popleft()[1]
        return []

    def add(self, ranges: Collection[FetchRange]) -> None:
        """Fetch these, too; a range of a partition that is here already replaces its range."""
        self.remove([each.place for each in ranges])
        for each in ranges:
            added = _Range(each.place, each.topic_id, each.start, each.end)
            self._ranges[each.place] = added
            if not added.is_finished:
                self._unplaced[each.place] = added
        self._refresh_at = 0.0

    def remove(self, places: Collection[TopicPartition]) -> None:
        """Fetch these no more; what is in flight for them is dropped."""
        for place in places:
            removed = self._ranges.pop(place, None)
            if removed is not None:
                self._withdraw(removed)
                self._failures.pop(place, None)
        gone = set(places)
        self._errors = deque(each for each in self._errors if each[0] not in gone)

    @property
    def finished(self) -> bool:
        """Whether every range has reached its end, and nothing is left that a poll would raise."""
        return not (
            self._errors
            or self._unplaced
            or self._doubtful
            or any(leader.ranges for leader in self._leaders.values())
        )

    @property
    def is_settled(self) -> bool:
        """Whether each range that is not finished is asked for at a leader: when nothing comes, there is nothing now."""
        is_placed = not (self._errors or self._unplaced or self._doubtful)
        leaders = (leader for leader in self._leaders.values() if leader.ranges)
        return is_placed and all(leader.asked is not None for leader in leaders)

    @property
    def positions(self) -> Mapping[TopicPartition, int]:
        """The next offset to fetch of every partition."""
        return {place: each.position for place, each in self._ranges.items()}

    @property
    def throttled_ms(self) -> int:
        """How long brokers have throttled this client so far, by quota."""
        return self._throttled_ms

    def fileno(self) -> int:
        """A file descriptor that is readable when a leader has sent something: who waits for other things, too, polls then."""
        return self._selector.fileno()

    def close(self) -> None:
        """Close the connections to the leaders; the cluster's own stay."""
        for leader in self._leaders.values():
            self._disconnect(leader)
        self._selector.close()

    def _settle(self, deadline: Deadline) -> None:
        """Find a leader for each range that has none, and out whether what brokers say of offsets is so."""
        now = deadline.clock()
        if now < self._refresh_at or not (self._unplaced or self._doubtful):
            return
        self._place(self._cluster.known, now, is_fresh=False)
        share = Deadline.after(deadline.remaining(_METADATA_SECONDS), deadline.clock)
        try:
            self._check_bounds(share)
            topics = {place.topic for place in self._unplaced}
            if topics:
                self._place(self._cluster.metadata(topics, share), now, is_fresh=True)
        except RetriableError as error:
            self._failures |= dict.fromkeys((*self._unplaced, *self._doubtful), str(error))
        if self._unplaced or self._doubtful:
            self._back_off(deadline)

    def _place(self, metadata: ClusterMetadata, now: float, *, is_fresh: bool) -> None:
        """Find the leaders of ranges without one; what earlier metadata says of a range counts until it has failed."""
        for place, each in list(self._unplaced.items()):
            topic = metadata.topics.get(place.topic)
            found = topic and topic.partitions.get(place.partition)
            has_leader = found and found.leader is not None and found.leader in metadata.brokers
            if topic and found and has_leader and each.topic_id == topic.topic_id:
                if is_fresh or not each.has_failed:
                    self._assign(each, found)
            elif is_fresh:
                self._settle_odd(each, topic, found, now)

    def _settle_odd(
        self,
        odd: _Range,
        topic: TopicMetadata | None,
        found: PartitionMetadata | None,
        now: float,
    ) -> None:
        """What becomes of a range whose leader or topic is not as it should be."""
        found_id = topic and topic.topic_id
        if topic and topic.error and topic.error.reaction is Reaction.FAIL:
            self._park(odd, _refusal(odd, topic.error))
        elif found_id and odd.topic_id and found_id != odd.topic_id:
            error = TopicRecreatedError(odd.place, expected=odd.topic_id, found=found_id)
            self._park(odd, error)
        elif found is None:
            self._miss(odd, now)
        elif found.leader is None or found.leader not in self._cluster.known.brokers:
            self._failures[odd.place] = "it has no leader"
        else:
            odd.topic_id = odd.topic_id or found_id
            self._assign(odd, found)

    def _assign(self, placed: _Range, found: PartitionMetadata) -> None:
        assert found.leader is not None
        placed.leader, placed.epoch, placed.missed_at = found.leader, found.leader_epoch, None
        del self._unplaced[placed.place]
        leader = self._leaders.setdefault(placed.leader, _Leader(placed.leader))
        leader.ranges[placed.place] = placed

    def _miss(self, missed: _Range, now: float) -> None:
        self._failures[missed.place] = "the brokers do not know it"
        if missed.missed_at is None:
            missed.missed_at = now
        elif now - missed.missed_at >= _MISSED_SECONDS:
            self._park(missed, TopicMissingError(missed.place))

    def _check_bounds(self, deadline: Deadline) -> None:
        """Ask the leaders for the logs' bounds where a position is not in the log, or nothing comes from before its end."""
        if not self._doubtful:
            return
        starts, local, ends = (
            self._cluster.list_offsets(
                dict.fromkeys(self._doubtful, spec),
                deadline,
                isolation=IsolationLevel.READ_UNCOMMITTED,
            )
            for spec in (EARLIEST, EARLIEST_LOCAL, LATEST)
        )
        for place, each in list(self._doubtful.items()):
            start, local_start, end = (found[place].offset for found in (starts, local, ends))
            errors = [found[place].error for found in (starts, ends)]
            refused = next((one for one in errors if one and one.reaction is Reaction.FAIL), None)
            self._withdraw(each)
            self._unplaced[place] = each
            if refused is not None:
                self._park(each, _refusal(each, refused))
            elif start is None or end is None:
                self._failures[place] = "its leader did not say where its log begins and ends"
            elif not start <= each.position <= end:
                error = OffsetOutOfRangeError(
                    place, offset=each.position, log_start=start, log_end=end
                )
                self._park(each, error)
            elif each.gap_end is not None and local_start is not None:
                self._skip_gap(each, local_start)

    def _skip_gap(self, empty: _Range, local_start: int) -> None:
        """Move to the end of a gap that a cleaner has left before an offset from which nothing can be read yet.

        What is on remote storage may be slow to come: before *local_start* nothing is a gap.
        """
        if empty.gap_end is not None and empty.position >= local_start:
            _log.warning(
                "The leader of %s has no record batch for the offsets %d to %d, and they are passed: a cleaner has removed "
                "their records.",
                empty.place,
                empty.position,
                empty.gap_end - 1,
            )
            empty.position = empty.gap_end
        empty.gap_end, empty.empty_answers = None, 0
        if empty.is_finished:
            self._withdraw(empty)

    def _send(self, leader: _Leader, deadline: Deadline) -> None:
        """Send the next request for the ranges of *leader*."""
        share = self._share(deadline)
        with_ids = all(each.topic_id for each in leader.ranges.values())
        versions = VERSIONS if with_ids else (VERSIONS[0], WITH_TOPIC_IDS - 1)
        try:
            if leader.connection is None:
                leader.connection = self._cluster.connect(leader.node, share)
                self._selector.register(leader.connection, selectors.EVENT_READ, leader)
            version = leader.connection.version(FetchRequest, versions)
            leader.asked = leader.keyed(by_id=version >= WITH_TOPIC_IDS)
            leader.sent_at = deadline.clock()
            rack = self._cluster.settings.rack
            request = _request(leader.ranges.values(), self._settings, rack)
            leader.connection.send(request, share, versions=versions)
        except (OSError, LoginRefusedError, AnswerTooLargeError, UnsupportedApiError) as error:
            self._lose(leader, error, deadline)

    def _next(self, deadline: Deadline) -> list[FetchedRecords]:
        """What the next leader has answered, when its next request has been sent."""
        leader = self._ready(deadline)
        if leader is None or leader.connection is None:
            return []
        try:
            answer = leader.connection.receive(deadline)
            if answer is None:
                return []
            fetched = fetch_answer(answer.body, answer.version)
        except (OSError, AnswerTooLargeError) as error:
            self._lose(leader, error, deadline)
            return []
        found = self._taken(leader, fetched, deadline)
        if leader.ranges:
            self._send(leader, deadline)
        return found

    def _ready(self, deadline: Deadline) -> _Leader | None:
        """The leader whose answer has waited longest, once one has arrived."""
        now = deadline.clock()
        leaders = list(self._leaders.values())
        due = [each.sent_at + self._answer_seconds for each in leaders if each.asked is not None]
        if self._unplaced or self._doubtful:
            due.append(self._refresh_at)
        buffered = [each for each in leaders if each.has_buffered]
        wait = 0 if buffered else deadline.remaining(max(0.0, min(due, default=now) - now))
        arrived = [key.data for key, _ in self._selector.select(wait)]
        now = deadline.clock()
        for leader in leaders:
            if leader in arrived and leader.asked is None:
                self._lose(leader, ConnectionResetError("it has closed the connection"), deadline)
            elif leader.asked is None or leader in arrived or leader in buffered:
                continue
            # A caller may have been away for longer: only an answer that is not there now is late.
            elif now > leader.sent_at + self._answer_seconds:
                self._lose(leader, TimeoutError("it did not answer in time"), deadline)
        answered = [each for each in (*buffered, *arrived) if each.asked is not None]
        return min(answered, key=lambda each: each.sent_at, default=None)

    def _taken(
        self, leader: _Leader, answer: FetchAnswer, deadline: Deadline
    ) -> list[FetchedRecords]:
        asked, leader.asked = leader.asked or {}, None
        self._throttled_ms += answer.throttle_ms
        error = error_code(answer.error_code)
        if error is not None:
            for each in asked.values():
                # It may have been removed since it was asked for.
                if each.leader == leader.node:
                    self._react(each, error)
            self._back_off(deadline)
            return []
        received = sum(len(each.records) for each in answer.partitions)
        carrying = {(each.topic, each.partition) for each in answer.partitions if each.records}
        first = next((key for key in asked if key in carrying), None)
        found: list[FetchedRecords] = []
        for part in answer.partitions:
            key = part.topic, part.partition
            each = asked.get(key)
            if each is None or each.leader != leader.node:
                continue
            error = error_code(part.error_code)
            if error is not None:
                self._react(each, error)
            elif part.records:
                is_alone = len(part.records) == received
                found += self._advanced(
                    each, leader, part, is_alone=is_alone, is_first=key == first
                )
            elif part.preferred_replica not in (-1, leader.node):
                self._redirect(each, part.preferred_replica)
            else:
                self._failures.pop(each.place, None)
                self._note_empty(each, part, is_silent=received == answer.throttle_ms == 0)
        if self._unplaced or self._doubtful:
            self._back_off(deadline)
        else:
            self._pause = _FIRST_PAUSE
        return found

    def _advanced(
        self,
        fetched: _Range,
        leader: _Leader,
        part: PartitionAnswer,
        *,
        is_alone: bool,
        is_first: bool,
    ) -> list[FetchedRecords]:
        """What *part* has brought; the range goes to the end of the leader's next request.

        Until it brings something it moves forward in the requests, so that at last it *is_first* of those that have data.
        """
        place, position = fetched.place, fetched.position
        headers, error = leading_headers(part.records, place)
        self._failures.pop(place, None)
        fetched.position = next_offset(headers, position)
        fetched.empty_answers = 0
        if fetched.position == position:
            # The last batch of an answer may be cut off, but not when there is nothing before it (KIP-74). A length that is
            # damaged looks the same: no checksum covers it. Brokers may answer in another order once, not again and again.
            fetched.cut_off += is_first
            if error is not None or is_alone or fetched.cut_off >= _CUT_OFF:
                self._park(fetched, error or _cut_off(fetched))
            return []
        fetched.cut_off = 0
        leader.ranges.pop(place, None)
        if not fetched.is_finished:
            leader.ranges[place] = fetched
            if error is not None:
                self._park(fetched, error)
        return [
            FetchedRecords(
                place=place,
                fetch_offset=position,
                data=part.records,
                headers=headers,
                next_offset=fetched.position,
                aborted=tuple(AbortedTransaction(*each) for each in part.aborted),
                high_watermark=part.high_watermark,
                last_stable_offset=part.last_stable_offset,
            )
        ]

    def _note_empty(self, fetched: _Range, part: PartitionAnswer, *, is_silent: bool) -> None:
        """Have it looked into when nothing comes again and again although readable offsets are left.

        An answer without a byte for any partition (*is_silent*) was not full when it came to this one.
        """
        readable = part.high_watermark
        if self._settings.isolation is IsolationLevel.READ_COMMITTED:
            readable = min(readable, part.last_stable_offset)
        end = readable if fetched.end is None else min(readable, fetched.end)
        is_suspicious = is_silent and fetched.position < end
        fetched.empty_answers = fetched.empty_answers + 1 if is_suspicious else 0
        if fetched.empty_answers >= _EMPTY:
            fetched.gap_end = end
            self._withdraw(fetched)
            self._doubtful[fetched.place] = fetched

    def _redirect(self, each: _Range, replica: int) -> None:
        """Fetch from a replica that is nearer (KIP-392), until that fails."""
        self._withdraw(each)
        if replica in self._cluster.known.brokers:
            each.leader = replica
            self._leaders.setdefault(replica, _Leader(replica)).ranges[each.place] = each
        else:
            self._unplaced[each.place] = each
            self._failures[each.place] = f"the replica {replica} that its leader names is not known"

    def _react(self, failed: _Range, error: ErrorCode) -> None:
        if error.reaction is Reaction.FAIL:
            self._park(failed, _refusal(failed, error))
            return
        self._withdraw(failed)
        # What was known of its leader holds where that is only to be asked again.
        failed.has_failed = error.reaction is not Reaction.RETRY
        is_outside = error.reaction is Reaction.OUT_OF_RANGE
        (self._doubtful if is_outside else self._unplaced)[failed.place] = failed
        self._failures[failed.place] = error.name

    def _park(self, failed: _Range, error: TaskFailedError) -> None:
        """Ask for it no more, and raise *error* when what has arrived is handed out."""
        self._withdraw(failed)
        self._failures.pop(failed.place, None)
        self._errors.append((failed.place, error))

    def _withdraw(self, each: _Range) -> None:
        """Take it from where it is asked for; it stays one of the ranges."""
        holders = [self._unplaced, self._doubtful]
        if each.leader is not None:
            holders.append(self._leaders[each.leader].ranges)
            each.leader, each.has_failed = None, True
        for held in holders:
            # Another range of the partition may have taken its place.
            if held.get(each.place) is each:
                del held[each.place]

    def _lose(self, leader: _Leader, error: Exception, deadline: Deadline) -> None:
        """Drop the connection; who leads its partitions now is asked for after a pause."""
        self._disconnect(leader)
        final = unresolvable(error, "the fetch of records", self._cluster.settings)
        if final is not None:
            # Raised by the next poll: this one may have something to hand out.
            self._errors.extend((place, final) for place in list(leader.ranges)[:1])
        reason = f"broker {leader.node}: {str(error) or type(error).__name__}"
        self._failures |= dict.fromkeys(leader.ranges, reason)
        for each in list(leader.ranges.values()):
            self._withdraw(each)
            self._unplaced[each.place] = each
        self._back_off(deadline)

    def _disconnect(self, leader: _Leader) -> None:
        leader.asked = None
        if leader.connection is not None:
            self._selector.unregister(leader.connection)
            leader.connection.abort()
            leader.connection = None

    def _back_off(self, deadline: Deadline) -> None:
        now = deadline.clock()
        if self._refresh_at <= now:
            self._refresh_at = now + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _share(self, deadline: Deadline) -> Deadline:
        seconds = deadline.remaining(self._cluster.settings.request_seconds)
        return Deadline.after(seconds, deadline.clock)

    @property
    def _answer_seconds(self) -> float:
        return self._settings.max_wait_ms / 1000 + self._cluster.settings.request_seconds

    def _raise_failures(self) -> None:
        """Raise why nothing came, if a broker or a leader is away; a log without new records is no failure."""
        if not self._failures:
            return
        by_reason = defaultdict[str, list[TopicPartition]](list)
        for place, reason in self._failures.items():
            by_reason[reason.rstrip(".")].append(place)
        reasons = [
            f"{listed(places, most=_NAMED)}: {reason}" for reason, places in by_reason.items()
        ]
        said = listed(reasons, most=_NAMED, separator="; ")
        raise RetriableError(f"Nothing could be fetched in time ({said}).")


@dataclass(slots=True, eq=False)
class _Range:
    """A range and how far it was fetched; *leader* is ``None`` while no one is asked for it."""

    place: TopicPartition
    topic_id: UUID | None
    position: int
    end: int | None
    leader: int | None = None
    epoch: int = -1
    has_failed: bool = False
    missed_at: float | None = None
    empty_answers: int = 0
    cut_off: int = 0
    gap_end: int | None = None

    @property
    def is_finished(self) -> bool:
        return self.end is not None and self.position >= self.end


@dataclass(slots=True, eq=False)
class _Leader:
    """A broker, the ranges it is to be asked for in the order of the next request, and those in flight by their keys."""

    node: int
    ranges: dict[TopicPartition, _Range] = field(default_factory=dict[TopicPartition, _Range])
    connection: WireConnection | None = None
    asked: dict[tuple[str | UUID, int], _Range] | None = None
    sent_at: float = 0.0

    def keyed(self, *, by_id: bool) -> dict[tuple[str | UUID, int], _Range]:
        return {
            ((each.topic_id or "") if by_id else place.topic, place.partition): each
            for place, each in self.ranges.items()
        }

    @property
    def has_buffered(self) -> bool:
        return (
            self.asked is not None and self.connection is not None and self.connection.is_readable
        )


def _request(ranges: Collection[_Range], settings: FetchSettings, rack: str) -> FetchRequest:
    """A request for *ranges* in their order; a topic comes again where another one is between."""
    topic_class = FetchRequest.FetchTopic
    partition_class = topic_class.FetchPartition
    topics: list[FetchRequest.FetchTopic] = []
    for each in ranges:
        if not topics or topics[-1].topic != each.place.topic:
            topic = topic_class(
                topic=each.place.topic, topic_id=each.topic_id or _NO_ID, partitions=[]
            )
            topics.append(topic)
        topics[-1].partitions.append(
            partition_class(
                partition=each.place.partition,
                current_leader_epoch=each.epoch,
                fetch_offset=each.position,
                partition_max_bytes=settings.max_partition_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=settings.max_wait_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.max_bytes,
        isolation_level=int(settings.isolation),
        topics=topics,
        rack_id=rack,
    )


def _refusal(refused: _Range, error: ErrorCode) -> UnfetchableError:
    return UnfetchableError(
        refused.place,
        refused.position,
        f"Kafka refused the fetch of {refused.place} at offset {refused.position}: {error.name}. {error.advice}".strip(),
    )


def _cut_off(fetched: _Range) -> UnfetchableError:
    return UnfetchableError(
        fetched.place,
        fetched.position,
        f"The broker cut off the record batch of {fetched.place} at offset {fetched.position}, though it was the first "
        "in its answer: the length of the batch is damaged, or fetch.max.bytes and max.partition.fetch.bytes are below the "
        "topic's max.message.bytes. Have another replica lead the partition, or start reading behind this batch.",
    )
