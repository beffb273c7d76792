"""How far a flow is, asked of its two clusters alone, whether or not anything runs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeVar

from headrace.connect.errors import OffsetsError, RetriableError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.batches.headers import check_crc
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import (
    EARLIEST,
    LATEST,
    Cluster,
    IsolationLevel,
    TopicMetadata,
)
from headrace.kafka.wire.fetcher import FetchedRecords, Fetcher, FetchRange, FetchSettings
from headrace.mirror.clients import isolation, source_cluster, target_cluster
from headrace.mirror.planning import stored
from headrace.mirror.positions import Flow, MirrorOffsetCodec, Position, writer_of
from headrace.mirror.remote_topics import ExistingTopics, missing_topics
from headrace.mirror.settings import MirrorSourceConfig
from headrace.mirror.source_logs import SourceLogs
from headrace.mirror.starts import SourceLog, parting
from headrace.mirror.subscription import MirrorSubscriber
from headrace.mirror.target import topics_in
from headrace.mirror.topic_tail import TopicTail

_ANSWER_SECONDS: Final = 5.0
# A whole record batch comes for each time that is asked for.
_TIMES_SECONDS: Final = 2.0
_MOST_TIMES: Final = 256
_EARLIEST_START: Final = "earliest"
_Answer = TypeVar("_Answer")

_log = logging.getLogger(__name__)


class PartitionStatus(NamedTuple):
    """How far one partition of the source is copied; what is not known is ``None``.

    *end* is up to where it can be read, *copied* the offset that is copied next, *lag* what lies between; where the position is of
    another log, as of a topic that was created again since, *lag* is all that is there now, and where the log has lost what was
    copied, all that is not of it. *waiting_ms* is the timestamp of the first batch that is not copied. *note* says what is not as it should be.
    """

    place: TopicPartition
    remote_topic: str
    end: int | None = None
    copied: int | None = None
    lag: int | None = None
    waiting_ms: int | None = None
    note: str | None = None

    def seconds(self, now_ms: float) -> float | None:
        """For how long the first batch that is not copied has been there; 0 without one."""
        if self.lag == 0:
            return 0.0
        return None if self.waiting_ms is None else max(0.0, (now_ms - self.waiting_ms) / 1e3)


class FlowStatus(NamedTuple):
    """How far a flow is; *problems* say which cluster did not answer, and why."""

    flow: str
    partitions: Sequence[PartitionStatus]
    problems: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceState:
    """What the source answers of the topics that are copied; partitions whose leader is away have no offsets.

    *logs* are those of the partitions that have positions, to be compared with these.
    """

    cluster_id: str | None
    topics: Mapping[str, TopicMetadata]
    beginnings: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]
    logs: Mapping[TopicPartition, SourceLog] = field(
        default_factory=dict[TopicPartition, SourceLog]
    )

    @property
    def places(self) -> frozenset[TopicPartition]:
        """The partitions that are copied."""
        return frozenset(
            TopicPartition(name, number)
            for name, topic in self.topics.items()
            for number in topic.partitions
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredState:
    """What the group on the target has of the flow; *foreign* are the entries that are not of this flow.

    *taken_from* is the topic whose offsets are the *positions* instead: the first start moves them into the group.
    """

    positions: Mapping[TopicPartition, Position]
    foreign: Mapping[TopicPartition, GroupEntry]
    is_discovered: bool
    taken_from: str | None = None

    @classmethod
    def of(cls, config: MirrorSourceConfig, entries: Iterable[GroupEntry]) -> StoredState:
        """*entries*, read as those of the flow that *config* describes. Pure."""
        codec = MirrorOffsetCodec(MirrorOffsetCodec.settings(config.originals))
        known = dict[SourcePartition, SourceOffset]()
        foreign = dict[TopicPartition, GroupEntry]()
        for entry in entries:
            found = codec.source(entry)
            if found is None:
                foreign[TopicPartition(*entry.place)] = entry
            else:
                known[found[0]] = found[1]
        of_flow = stored(Flow.of(config.originals), known)
        return cls(
            positions=of_flow.positions, foreign=foreign, is_discovered=of_flow.is_discovered
        )


class RemoteState(NamedTuple):
    """What the target has not of the source's topics that are copied: those whose remote topics are *missing*.

    *copied_before* are those of which offset ranges tell; ``None`` where these cannot be read.
    """

    missing: Collection[str] = ()
    copied_before: Collection[str] | None = ()


class FormerOffsets(NamedTuple):
    """What the flow's worker has in its *topic* of offsets on the target, where MirrorMaker keeps its positions.

    *read* returns them, and raises as Kafka's clients do.
    """

    topic: str
    read: Callable[[], Offsets]


def former_positions(flow: Flow, offsets: Offsets) -> dict[TopicPartition, Position]:
    """The positions of *flow* among *offsets*; what a start would not take over is left out. Pure."""
    found = dict[TopicPartition, Position]()
    for partition, offset in offsets.items():
        with suppress(OffsetsError):
            place = flow.place(partition)
            if place is not None and offset is not None:
                found[place] = Position.of(offset)
    return found


def partition_statuses(
    config: MirrorSourceConfig,
    source: SourceState | None,
    stored: StoredState | None,
    remote: RemoteState | None = None,
) -> list[PartitionStatus]:
    """The partitions that are copied, and those that were and whose topics are gone, sorted. Pure.

    What a cluster that did not answer would say is ``None``. Nothing is said here of when the first batch came that is not
    copied.
    """
    places = frozenset[TopicPartition]() if source is None else source.places
    positions = {} if stored is None else stored.positions
    found = (
        _partition_status(config, place, source, stored) for place in sorted(places | {*positions})
    )
    return [_noted(each, _note_of_remote(each, remote or RemoteState())) for each in found]


def _noted(status: PartitionStatus, note: str | None) -> PartitionStatus:
    """*status* with one note more."""
    return status._replace(note="; ".join(filter(None, (status.note, note))) or None)


def _note_of_remote(status: PartitionStatus, remote: RemoteState) -> str | None:
    topic = status.place.topic
    if topic not in remote.missing:
        return None
    if status.copied is not None or topic in (remote.copied_before or ()):
        return "the remote topic is gone from the target"
    if remote.copied_before is None:
        return "there is no remote topic, and whether there was one cannot be read"
    return None


def _partition_status(
    config: MirrorSourceConfig,
    place: TopicPartition,
    source: SourceState | None,
    stored: StoredState | None,
) -> PartitionStatus:
    remote = config.policy.remote_topic(config.source_cluster_alias, place.topic)
    end = None if source is None else source.ends.get(place)
    status = PartitionStatus(place, remote, end)
    if stored is None:
        return status
    position = stored.positions.get(place)
    if position is not None:
        start: int | None = position.next
        if stored.taken_from is not None:
            taken = f"the position is that in {stored.taken_from}, which the first start takes over"
            status = _noted(status, taken)
        if source is not None:
            other_log = _of_another_log(place, position, source)
            log = source.logs.get(place)
            lost_from = None if log is None else parting(position, log)
            if other_log is not None or position.is_earliest:
                start = source.beginnings.get(place)
                note = other_log or _note(place, position, source)
            elif lost_from is not None:
                start = lost_from
                note = f"the source has lost what was copied from its offset {lost_from} on"
            else:
                note = _note(place, position, source)
            status = _noted(status, note)
        return status._replace(copied=position.next, lag=_between(start, end))
    other = stored.foreign.get(TopicPartition(remote, place.partition))
    if other is not None:
        return status._replace(note=f"its position is of {writer_of(other.metadata)}")
    begins = stored.is_discovered or config.start == _EARLIEST_START
    start = source.beginnings.get(place) if begins and source is not None else None
    return status._replace(lag=_between(start, end))


def _between(start: int | None, end: int | None) -> int | None:
    return None if end is None or start is None else max(0, end - start)


def _of_another_log(place: TopicPartition, position: Position, source: SourceState) -> str | None:
    """Why *position* says nothing of the log that the source has now; of that one nothing is copied."""
    if position.cluster_id and source.cluster_id and position.cluster_id != source.cluster_id:
        return f"its position is of the cluster with the id {position.cluster_id}"
    topic = source.topics.get(place.topic)
    found = topic and topic.topic_id
    if found and position.topic_id and found != position.topic_id:
        return "the topic was deleted and created again"
    return None


def _note(place: TopicPartition, position: Position, source: SourceState) -> str | None:
    """What a flow that is started would have to say of a position in this log."""
    if place.topic not in source.topics:
        return "there is no such topic to copy"
    beginning = source.beginnings.get(place)
    if beginning is not None and beginning > position.next and not position.is_earliest:
        return f"{counted(beginning - position.next, 'offset')} deleted before being copied"
    return None


class FlowReader:
    """Asks the two clusters of a flow how far it is, side by side. Keeps its connections until it is closed.

    *worker* says how the worker's admin clients reach the target, where the flow's own settings do not. *former* are looked at
    while the group on the target has no position. One thread calls it at a time.
    """

    def __init__(
        self,
        config: MirrorSourceConfig,
        worker: Mapping[str, str],
        former: FormerOffsets | None = None,
    ) -> None:
        self._config = config
        self._former = former
        self._taken: Mapping[TopicPartition, Position] | None = None
        self._source = source_cluster(config)
        self._target = target_cluster(config, worker)
        self._in_ranges = set[str]()
        ranges = config.policy.offset_ranges_topic(config.source_cluster_alias)
        self._ranges = TopicTail(self._target, ranges, self._in_ranges.clear)
        self._waiting = WaitingBatches(self._source, isolation(config))

    def status(self) -> FlowStatus:
        """How far the flow is now; a cluster that does not answer within seconds, or refuses, is one of its problems."""
        with ThreadPoolExecutor(1) as other:
            asked = other.submit(_asked, self._config.source_cluster_alias, self._source_state)
            stored, of_target = _asked(self._config.target_cluster_alias, self._stored_state)
            source, of_source = asked.result()
        compared, remote, of_remote = None, None, None
        if source is not None and stored is not None:
            compared, of_source = _asked(
                self._config.source_cluster_alias, lambda: self._with_logs(source, stored)
            )
            remote, of_remote = _asked(
                self._config.target_cluster_alias, lambda: self._remote_state(source, stored)
            )
        problems = [each for each in (of_source, of_target, of_remote) if each is not None]
        found = partition_statuses(self._config, compared or source, stored, remote)
        if source is not None:
            found = self._waiting.added(found, source)
        return FlowStatus(self._config.flow, found, problems)

    def close(self) -> None:
        """Close the connections."""
        self._ranges.close()
        self._source.close()
        self._target.close()

    def _source_state(self) -> SourceState:
        deadline = Deadline.after(_ANSWER_SECONDS)
        metadata = self._source.metadata(None, deadline)
        places = MirrorSubscriber(self._config.topics_copied).subscribed(metadata.topics)
        names = {each.topic for each in places}
        return SourceState(
            cluster_id=metadata.cluster_id,
            topics={name: topic for name, topic in metadata.topics.items() if name in names},
            beginnings=self._offsets(places, EARLIEST, deadline),
            ends=self._offsets(places, LATEST, deadline),
        )

    def _offsets(
        self, places: Collection[TopicPartition], spec: int, deadline: Deadline
    ) -> dict[TopicPartition, int]:
        if not places:
            return {}
        level = isolation(self._config)
        found = self._source.list_offsets(dict.fromkeys(places, spec), deadline, isolation=level)
        return {place: each.offset for place, each in found.items() if each.offset is not None}

    def _with_logs(self, source: SourceState, stored: StoredState) -> SourceState:
        logs = SourceLogs(self._source, isolation(self._config), seconds=_ANSWER_SECONDS)
        # Of leaders that have just answered.
        asked = {place: each for place, each in stored.positions.items() if place in source.ends}
        return replace(source, logs=logs.logs(asked))

    def _stored_state(self) -> StoredState:
        deadline = Deadline.after(_ANSWER_SECONDS)
        entries = self._target.committed_entries(self._config.group_id, None, deadline)
        found = StoredState.of(self._config, entries)
        if found.positions or found.is_discovered or self._former is None:
            return found
        if self._taken is None:
            self._taken = self._read_former(self._former, deadline)
        return replace(found, positions=self._taken, taken_from=self._former.topic)

    def _remote_state(self, source: SourceState, stored: StoredState) -> RemoteState:
        """Before its first discovery a flow has created no remote topic, and only those of positions are to be there."""
        deadline = Deadline.after(_ANSWER_SECONDS)
        with_position = {place.topic for place in stored.positions} & source.topics.keys()
        topics = source.topics.keys() if stored.is_discovered else with_position
        alias = self._config.source_cluster_alias
        names = {self._config.policy.remote_topic(alias, topic): topic for topic in topics}
        if not names:
            return RemoteState()
        lacking = ExistingTopics.of(self._target.metadata(names, deadline)).lacks(names)
        beside = self._ranges.topic if stored.is_discovered else None
        missing = missing_topics(self._target, lacking, deadline, beside=beside)
        topics_missing = {names[each] for each in missing}
        before = self._copied_before(deadline) if topics_missing - with_position else ()
        return RemoteState(topics_missing, before)

    def _copied_before(self, deadline: Deadline) -> Collection[str] | None:
        """The topics of which offset ranges tell: the group's entries for a topic are removed with it, and these stay."""
        try:
            for columns in self._ranges.read(deadline):
                self._in_ranges.update(topics_in(columns["key"].unique().to_pylist()))
        except TaskFailedError as error:
            _log.debug("Offset ranges cannot be read: %s", error)
            return None
        return self._in_ranges if self._ranges.is_there and self._ranges.is_complete else None

    def _read_former(
        self, former: FormerOffsets, deadline: Deadline
    ) -> Mapping[TopicPartition, Position]:
        known = self._target.metadata([former.topic], deadline).topics
        if former.topic not in known or known[former.topic].error is not None:
            return {}
        return former_positions(Flow.of(self._config.originals), former.read())


def _asked(alias: str, ask: Callable[[], _Answer]) -> tuple[_Answer | None, str | None]:
    """What the cluster *alias* answers, or what is wrong."""
    try:
        return ask(), None
    except (RetriableError, TaskFailedError) as error:
        return None, f"{alias}: {error}"


class FirstBatch(NamedTuple):
    """Since when the first batch waits that is not copied, in milliseconds, and why it cannot be copied."""

    time_ms: int | None = None
    problem: str | None = None


class WaitingBatches:
    """The first batches that are not copied, each fetched by itself, and once. Used by one thread."""

    def __init__(self, cluster: Cluster, level: IsolationLevel) -> None:
        self._cluster = cluster
        # One batch comes for a partition, however large it is.
        self._settings = FetchSettings(
            isolation=level, max_bytes=1, max_partition_bytes=1, max_wait_ms=100
        )
        self._known: dict[TopicPartition, tuple[int, FirstBatch]] = {}

    def added(
        self, statuses: Sequence[PartitionStatus], source: SourceState
    ) -> list[PartitionStatus]:
        """*statuses* with these times, as far as the source answers soon; those with the largest lag first."""
        starts = {
            each.place: max(each.end - each.lag, source.beginnings.get(each.place, 0))
            for each in sorted(statuses, key=lambda each: -(each.lag or 0))[:_MOST_TIMES]
            if each.lag and each.end is not None
        }
        self._known = {
            place: known
            for place, known in self._known.items()
            if starts.get(place, -1) == known[0]
        }
        # What is damaged now another replica may hand out well.
        is_known = {place for place, (_, first) in self._known.items() if first.problem is None}
        self._fetch({place: start for place, start in starts.items() if place not in is_known})
        return [self._added(each) for each in statuses]

    def _added(self, status: PartitionStatus) -> PartitionStatus:
        _, first = self._known.get(status.place, (0, FirstBatch()))
        return _noted(status._replace(waiting_ms=first.time_ms), first.problem)

    def _fetch(self, starts: Mapping[TopicPartition, int]) -> None:
        ranges = [
            FetchRange(place=place, start=start, end=start + 1) for place, start in starts.items()
        ]
        deadline = Deadline.after(_TIMES_SECONDS)
        with closing(Fetcher(self._cluster, ranges, self._settings)) as fetcher:
            while not (fetcher.finished or deadline.expired):
                try:
                    fetched = fetcher.poll(deadline)
                except RetriableError:
                    return
                except CorruptBatchError as error:
                    self._known[error.place] = (
                        starts[error.place],
                        FirstBatch(None, _corrupt(error)),
                    )
                    continue
                except TaskFailedError as error:
                    _log.debug("A batch is not known: %s", error)
                    continue
                for each in fetched:
                    self._known[each.place] = (starts[each.place], first_batch(each))


def first_batch(fetched: FetchedRecords) -> FirstBatch:
    """The first batch that has something at or after what was asked for. Pure."""
    for each in fetched.headers:
        if each.last_offset >= fetched.fetch_offset:
            problem = None
            try:
                check_crc(fetched.data[each.position : each.end], each, fetched.place)
            except CorruptBatchError as error:
                problem = _corrupt(error)
            time_ms = each.first_timestamp if each.first_timestamp >= 0 else None
            return FirstBatch(time_ms, problem)
    return FirstBatch()


def _corrupt(error: CorruptBatchError) -> str:
    where = f"at offset {error.offset}" if error.offset >= 0 else "that is copied next"
    return f"the record batch {where} is corrupt: {error.reason}"
