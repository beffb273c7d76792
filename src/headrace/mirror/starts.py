"""Where a partition is read from: its position compared with what the source's log, and the remote partition, are now. Pure.

A position that does not fit is reported, never guessed away: by default its partition fails, with a sentence that says what was
found and which command goes on.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from headrace.connect.errors import PartitionError, TaskFailedError
from headrace.connect.group_offsets import GroupEntry
from headrace.connect.partition import OffsetValue
from headrace.kafka.sentences import counted, listed
from headrace.kafka.topic_partition import TopicPartition, topic_id_text
from headrace.kafka.wire.epoch_ends import EpochEnd
from headrace.kafka.wire.error_codes import ErrorCode
from headrace.mirror.positions import Flow, Position, writer_of
from headrace.mirror.settings import RecordsLostConfig

_FAIL, _RESTART = "fail", "restart"
_SHOWN: Final = 5
PARTITIONS: Final = "{partitions}"
"""Where a sentence about several partitions of a topic has their numbers."""

# Of a flow without listeners, which a command reaches only by opening it itself.
_BY_FILE: Final = "--mirror "


class SourceLog(NamedTuple):
    """What the source cluster says of one partition now.

    *end* is the high watermark. *epoch_end* is about the epoch of the stored position; ``None`` where it is not known.
    """

    cluster_id: str | None
    topic_id: UUID | None
    log_start: int
    end: int
    epoch_end: EpochEnd | None = None


class RemotePartition(NamedTuple):
    """What the target has of a source partition that has no position of this flow.

    *end* is the end of its log. *entry* is what another program has committed for it in the group, if anything. It *is_shared*
    where other mirrors of the flow may write, too, as they all copy heartbeats.
    """

    place: TopicPartition
    end: int
    entry: GroupEntry | None = None
    is_shared: bool = False


class Resume(NamedTuple):
    """Read on at *position*, which is stored first if it is not the one that is stored; *warning* is to be logged.

    *of_topic* is said of several partitions of the topic instead, with their numbers where it has :data:`PARTITIONS`.
    """

    position: Position
    warning: str | None = None
    of_topic: str | None = None


class Begin(NamedTuple):
    """It has no position: it starts by the rule for a partition that the first, or a later, discovery has found."""

    warning: str | None = None
    of_topic: str | None = None


class Fail(NamedTuple):
    """It is not read until someone decides; *of_topic* as in :class:`Resume`."""

    problem: str
    of_topic: str | None = None


Start = Resume | Begin | Fail


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRules:
    """Decides for the partitions of one connector, by its settings and its *group* on the target.

    *command_options* are those by which ``headrace offsets`` reaches the connector.
    """

    connector: str
    flow: Flow
    group: str
    config: RecordsLostConfig
    command_options: str = ""

    def resumed(self, place: TopicPartition, position: Position, log: SourceLog) -> Resume | Fail:
        """Where to go on at a stored *position*, given what the *log* is now."""
        config = self.config
        found, key, policy = _other_cluster(place, position, log), "foreign", config.on_foreign
        of_topic = None
        if found is None:
            found, key, policy = _recreated(place, position, log), "recreated", config.on_recreated
            of_topic = found and _recreated_topic(place, position, log)
        if found is None:
            return self._within(place, position, log)
        if policy == _FAIL:
            return self._fail(place, found, key, of_topic)
        # Epochs of another log say nothing about this one.
        anew = _stamped(position, log)._replace(leader_epoch=None)
        if policy == _RESTART:
            warning = f"{found} It is copied from its beginning, offset {log.log_start}."
            moved = anew._replace(next=log.log_start)
            begins = f"Its partitions {PARTITIONS} are copied from their beginnings."
            return Resume(moved, warning, of_topic and f"{of_topic} {begins}")
        within = self._within(place, anew, log._replace(epoch_end=None))
        if isinstance(within, Fail):
            return within
        if within.warning is not None:
            return Resume(within.position, f"{found} {within.warning}")
        warning = f"{found} It is read on at offset {within.position.next}."
        resumes = f"Its partitions {PARTITIONS} are read on at their positions."
        return Resume(within.position, warning, of_topic and f"{of_topic} {resumes}")

    def without(self, place: TopicPartition, remote: RemotePartition) -> Start:
        """What to do with a *place* that has no position of this flow."""
        entry = remote.entry
        if entry is not None:
            found = (
                f"The entry for {remote.place} in the group {self.group} on the target, offset {entry.offset}, is not this "
                f"flow's: it was committed by {writer_of(entry.metadata)}."
            )
            if self.config.on_foreign == _FAIL:
                return self._fail(place, found, "foreign")
            adopted = Position(max(entry.offset, 0))
            return Resume(adopted, f"{found} {place} is copied from that offset on.")
        if not remote.end:
            return Begin()
        if remote.is_shared:
            return Begin(
                f"{remote.place} has records up to offset {remote.end}, and {place} no position in the group {self.group}: each mirror "
                "of a flow copies heartbeats, so that those may be there more than once. Set heartbeats.replication.enabled=false in all "
                "mirrors of the flow but one."
            )
        found = (
            f"{place} has no position in the group {self.group} on the target, and {remote.place} there has records up to "
            f"offset {remote.end}: the position has expired or was removed, or another program writes there."
        )
        if self.config.on_expired == _FAIL:
            return self._fail(place, found, "expired")
        return Begin(f"{found} It is copied as if it were new.")

    def unreadable(self, place: TopicPartition, error: PartitionError) -> Fail:
        """Do not copy *place* on, which a task could not read."""
        last = None
        does = (
            "says where to go on instead (LAST stands for the last offset that is not to be copied)"
        )
        if error.source_offset is not None:
            after = Position.of(error.source_offset)
            last, does = after.next - 1, f"goes on after it, at offset {after.next}"
        return Fail(
            f"{error} {place} is not copied on from there. It is tried again every five minutes; {self._command(place, last)} "
            f"{does}, {self._when}."
        )

    def _within(self, place: TopicPartition, position: Position, log: SourceLog) -> Resume | Fail:
        at, lost_from = position.next, parting(position, log)
        stamped = _stamped(position, log)
        if position.is_earliest:
            return Resume(stamped._replace(next=log.log_start))
        if lost_from is not None:
            found = (
                f"{place} is to be copied from offset {at} on, and the source's log, which is from {log.log_start} to "
                f"{log.end} now, has only those before {lost_from} of what was copied: the source has lost records, as after "
                "an unclean leader election."
            )
            moved = stamped._replace(next=lost_from)
        elif at < log.log_start:
            found = (
                f"{place} is to be copied from offset {at} on, and the source's log begins at {log.log_start} now: "
                f"{counted(log.log_start - at, 'offset')} deleted before being copied."
            )
            moved = stamped._replace(next=log.log_start)
        else:
            return Resume(stamped)
        if self.config.on_lost == _FAIL:
            command = f"{self._command(place, moved.next - 1)} goes on at offset {moved.next}"
            return Fail(self._decision(f"{found} {place} is", command, "lost"))
        return Resume(moved, f"{found} It is read on at offset {moved.next}.")

    def _fail(
        self, place: TopicPartition, found: str, key: str, of_topic: str | None = None
    ) -> Fail:
        """*place* is not copied, and only a user can say where to go on."""
        last = "(LAST stands for the last offset that is not to be copied; -1 copies from the beginning)"
        command = f"{self._command(place)} says where to go on {last}"
        problem = self._decision(f"{found} {place} is", command, key)
        if of_topic is None:
            return Fail(problem)
        command = self._command(place, shown="PARTITION")
        command = f"{command} says for each PARTITION where to go on {last}"
        of_topic = self._decision(f"{of_topic} Its partitions {PARTITIONS} are", command, key)
        return Fail(problem, of_topic)

    def _decision(self, who: str, command: str, key: str) -> str:
        """*who* has failed and what *command* does, with the setting of that *key*."""
        return f"{who} not copied until someone decides: {command}, {self._when}; mirror.on.{key} says what to do without being asked."

    @property
    def _when(self) -> str:
        """When a command can change offsets: it reaches a worker that has no listeners only while that does not run."""
        if self.command_options.startswith(_BY_FILE):
            return "while 'headrace mirror' does not run"
        return "while the connector is stopped"

    def _command(
        self, place: TopicPartition, last: int | None = None, *, shown: str | None = None
    ) -> str:
        """What a user may call for *place*, not to copy what is there up to *last*; with *shown* in place of its number."""
        text = _json(dict(self.flow.partition(place)))
        if shown is not None:
            text = text.replace(f'"partition":{place.partition}', f'"partition":{shown}')
        source = shlex.quote(text)
        options = f"{self.command_options} " if self.command_options else ""
        offset = "LAST" if last is None else last
        return f"headrace offsets set {options}{self.connector} {source} '{{\"offset\":{offset}}}'"


class _Failure(NamedTuple):
    """The position that a partition had when it failed, and why it has."""

    position: Position | None
    why: Fail


@dataclass(slots=True)
class FailedPartitions:
    """The partitions that are not copied until someone decides, with the positions that they had when they failed.

    *topics* are those that are gone at the source or on the target, or lack partitions there, by their names at the source, and
    why they are not copied. What a task could not read is found only by trying, among the others, whose tasks end with it for a moment: a
    comparison with the source's log says nothing of it.
    """

    topics: Mapping[str, str] = field(default_factory=dict[str, str])
    _failures: dict[TopicPartition, _Failure] = field(
        default_factory=dict[TopicPartition, _Failure]
    )
    _unreadable: dict[TopicPartition, _Failure] = field(
        default_factory=dict[TopicPartition, _Failure]
    )
    _topics_before: frozenset[str] = frozenset()
    _before: frozenset[TopicPartition] = frozenset()

    def __bool__(self) -> bool:
        """Whether anything is not copied."""
        return bool(self._failures or self._unreadable or self.topics)

    def __contains__(self, place: TopicPartition) -> bool:
        return place in self._failures or place in self._unreadable

    def may_be_tried(self, place: TopicPartition) -> bool:
        """Whether nothing but a task's own report speaks against reading *place*."""
        return place not in self._failures

    def note(
        self, starts: Mapping[TopicPartition, Start], positions: Mapping[TopicPartition, Position]
    ) -> None:
        """These partitions have been compared with the clusters: those that fail do, and the others do not any more."""
        for place, start in starts.items():
            position = positions.get(place)
            if not isinstance(start, Fail):
                self._failures.pop(place, None)
            elif place not in self._failures or self._failures[place].position != position:
                # The first sentence stays: the ends in it move with the logs.
                self._failures[place] = _Failure(position, start)

    def note_unreadable(self, place: TopicPartition, position: Position | None, fail: Fail) -> None:
        """A task could not read *place* on from *position*."""
        self._unreadable[place] = _Failure(position, fail)

    def keep(
        self, places: Collection[TopicPartition], positions: Mapping[TopicPartition, Position]
    ) -> bool:
        """Forget those that are not to be copied any more, and those whose position was changed; returns whether there were any."""
        before = len(self._failures) + len(self._unreadable)
        self._failures, self._unreadable = (
            {
                place: each
                for place, each in failed.items()
                if place in places and each.position == positions.get(place)
            }
            for failed in (self._failures, self._unreadable)
        )
        return len(self._failures) + len(self._unreadable) < before

    def recovered(self, places: Collection[TopicPartition]) -> list[str]:
        """What of *places* had failed at the last call and is copied again: topics, and single partitions."""
        failed = frozenset((*self._failures, *self._unreadable))
        copied = [each for each in sorted(places) if each not in failed]
        again = {each.topic for each in copied} & self._topics_before - self.topics.keys()
        alone = [str(each) for each in copied if each in self._before and each.topic not in again]
        self._topics_before, self._before = frozenset(self.topics), failed
        return [*sorted(again), *alone]

    def failure(self) -> TaskFailedError | None:
        """The error that says why each of the first few has failed, and how many more have: a line for each."""
        failed = {**self._unreadable, **self._failures}
        problems = said_by_topic(
            {place: (each.why.problem, each.why.of_topic) for place, each in failed.items()}
        )
        topics = [(self.topics[each], 1) for each in sorted(self.topics)]
        sentences = [*_first(problems, "partition"), *_first(topics, "topic")]
        return TaskFailedError("\n".join(sentences)) if sentences else None


def refused(place: TopicPartition, error: ErrorCode) -> Fail:
    """Do not copy *place*, of which the source's brokers do not say where it ends, for the reason *error*."""
    sentences = (
        f"{place} is not copied: the source's brokers answer {error.name} when they are asked where it ends.",
        error.advice,
        "It is tried again every five minutes.",
    )
    return Fail(" ".join(filter(None, sentences)))


def said_by_topic(said: Mapping[TopicPartition, tuple[str, str | None]]) -> list[tuple[str, int]]:
    """What is *said* of each partition, with how many a sentence is about: of several of a topic, that of the topic if it has one."""
    groups = dict[tuple[str, str], list[TopicPartition]]()
    for place in sorted(said):
        alone, of_topic = said[place]
        groups.setdefault((place.topic, of_topic or alone), []).append(place)
    found = list[tuple[str, int]]()
    for (_, sentence), places in groups.items():
        if len(places) > 1 and PARTITIONS in sentence:
            numbers = listed([each.partition for each in places])
            found.append((sentence.replace(PARTITIONS, numbers), len(places)))
        else:
            found += [(said[each][0], 1) for each in places]
    return found


def _first(problems: Sequence[tuple[str, int]], noun: str) -> Iterator[str]:
    yield from (sentence for sentence, _ in problems[:_SHOWN])
    more = sum(count for _, count in problems[_SHOWN:])
    if more:
        yield f"Nor is anything copied of {counted(more, f'more {noun}')}."


def _stamped(position: Position, log: SourceLog) -> Position:
    """*position*, which was compared with *log*, with what identifies it."""
    return position._replace(
        cluster_id=log.cluster_id or position.cluster_id, topic_id=log.topic_id or position.topic_id
    )


def _other_cluster(place: TopicPartition, position: Position, log: SourceLog) -> str | None:
    if not (position.cluster_id and log.cluster_id) or position.cluster_id == log.cluster_id:
        return None
    return (
        f"{place} was copied before offset {position.next} from the cluster with the id {position.cluster_id}, and the source's "
        f"addresses lead to the cluster {log.cluster_id} now."
    )


def _recreated(place: TopicPartition, position: Position, log: SourceLog) -> str | None:
    if position.topic_id is None or log.topic_id is None or log.topic_id == position.topic_id:
        return None
    return (
        f"The topic {place.topic} was deleted and created again at the source: {place} was copied before offset "
        f"{position.next} from the topic with the id {topic_id_text(position.topic_id)}, and there is one with the id "
        f"{topic_id_text(log.topic_id)} now."
    )


def _recreated_topic(place: TopicPartition, position: Position, log: SourceLog) -> str:
    """What :func:`_recreated` has found, of all partitions of the topic."""
    assert position.topic_id is not None
    assert log.topic_id is not None
    return (
        f"The topic {place.topic} was deleted and created again at the source: what was copied is of the topic with the id "
        f"{topic_id_text(position.topic_id)}, and there is one with the id {topic_id_text(log.topic_id)} now."
    )


def parting(position: Position, log: SourceLog) -> int | None:
    """The offset from which on the log is not the one that was copied; ``None`` if all before the position is the same. Pure."""
    ends = [log.end] if log.end < position.next else []
    epoch = log.epoch_end
    if epoch is not None and min(epoch) >= 0 and epoch.end < position.next:
        ends.append(epoch.end)
    return max(min(ends), log.log_start) if ends else None


def _json(values: Mapping[str, OffsetValue]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))
