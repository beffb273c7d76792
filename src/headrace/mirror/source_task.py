"""The task of a mirror: follows its share of the source's partitions, and hands the record batches on unopened if it may."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import ConnectError, PartitionError, ReplanError, TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import BytesRecord
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.deadline import Deadline
from headrace.kafka.refused_records import RefusedRecords, without_tolerance
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import (
    LOST,
    FetchedRecords,
    Fetcher,
    FetchRange,
    UnfetchableError,
)
from headrace.mirror.clients import decoding, fetch_settings, source_cluster
from headrace.mirror.fetched import (
    Copied,
    encoded_batches,
    last_epoch,
    source_batches,
    without_batches,
)
from headrace.mirror.positions import Flow, Position
from headrace.mirror.settings import MirrorSourceConfig
from headrace.mirror.translation_records import TranslationRecords

_log = logging.getLogger(__name__)

REMOTE: Final = "remote"
"""In the details of a split: the remote topic."""
EPOCH: Final = "epoch"
"""In the details of a split: the leader epoch in which the position was compared with the source's log, -1 for unknown."""

# What was read before is committed when nothing has come for so long.
_WAIT_SECONDS: Final = 0.1
# Long enough for a connection, short enough for a stop.
_CONNECT_SECONDS: Final = 1.0
_COMPARED: Final = "The positions are compared with the source again."


class MirrorSourceTask(SourceTask):
    """Reads its partitions on and on. Everything that a fetch brings is copied.

    What is gone at the source is not decided here, nor whether a new leader has the same log: the driver plans again,
    compares the positions with the source, and does what the settings say.
    """

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`; connects to nothing yet."""
        settings = self._settings = MirrorSourceConfig.parse(config)
        flow = Flow.of(config)
        self._how = decoding(settings)
        self._tolerates = config.get("errors.tolerance") == "all"
        self._copied: dict[TopicPartition, Copied] = {}
        self._epochs: dict[TopicPartition, int] = {}
        for split in self.context.splits:
            place, copied = _copied(flow, split)
            self._copied[place] = copied
            self._epochs[place] = _epoch(split)
        self._cluster = source_cluster(settings, task=self.context.task)
        self._translation = TranslationRecords(settings, self._cluster, task=self.context.task)
        self._fetcher = Fetcher(
            self._cluster,
            [_range(place, each.position) for place, each in self._copied.items()],
            fetch_settings(settings),
        )
        self._answers = deque[FetchedRecords]()
        self._unreadable: PartitionError | None = None
        self._decoded: Iterator[SourceBatch] = iter(())
        self._passed: dict[SourcePartition, SourceOffset] = {}
        self._reached = {place: each.position.next for place, each in self._copied.items()}

    def poll(self) -> list[EncodedBatches] | list[SourceBatch]:
        """What has arrived next; nothing when nothing has for a moment."""
        return self._polled_encoded() if self.context.takes_encoded else self._polled_decoded()

    def is_idle(self) -> bool:
        """Whether each partition is asked for at a leader that is connected."""
        return self._fetcher.is_settled

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Where markers, and what was aborted, have been passed after the last decoded records."""
        passed, self._passed = self._passed, {}
        return passed or None

    def records_of_commit(self, copied: Sequence[CopiedRun]) -> Sequence[BytesRecord]:
        """Where the records of the commit went."""
        return self._translation.of_commit(copied)

    def check_new_topic(self, topic: str, partition: SourcePartition | None) -> None:
        """None of the flow's remote topics is created for records: one that is missing was deleted, which is the plan's matter."""
        if any(topic == each.remote.topic for each in self._copied.values()):
            raise ReplanError(f"The remote topic {topic} is gone from the target.")
        if not self._settings.topics_copied.is_remote(topic):
            return
        told = (
            f"The topic {topic}, as which records are written by a transformation, is missing, and topic.creation.* does not count for it: "
            "by its name it is a remote topic of this flow, which may have been deleted. Create it, or change the transformation."
        )
        raise TaskFailedError(told) if partition is None else PartitionError(partition, told)

    def commit(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._translation.committed()

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        translation: TranslationRecords | None = getattr(self, "_translation", None)
        if translation is not None:
            translation.close()
        fetcher: Fetcher | None = getattr(self, "_fetcher", None)
        if fetcher is None:
            return
        if fetcher.throttled_ms:
            _log.warning(
                "The source's brokers have throttled this task for %d ms, by quota.",
                fetcher.throttled_ms,
            )
        fetcher.close()
        self._cluster.close()

    def _polled_encoded(self) -> list[EncodedBatches]:
        if self._unreadable is not None:
            raise self._unreadable
        self._fetch()
        found = list[EncodedBatches]()
        while self._answers:
            answer = self._answers.popleft()
            try:
                # As far as there are some before its error.
                found.extend(encoded_batches(answer, self._copied[answer.place]))
            except CorruptBatchError as error:
                self._unreadable = self._cannot_read_on(error)
        if self._unreadable is not None and not found:
            raise self._unreadable
        return found or [without_batches(each) for each in self._passed_gaps()]

    def _polled_decoded(self) -> list[SourceBatch]:
        """One batch of an answer after the other, so that memory does not hold all that an answer decompresses to."""
        while True:
            batch = next(self._decoded, None)
            if batch is not None:
                return [batch]
            if not self._answers:
                self._fetch()
            if not self._answers:
                for each in self._passed_gaps():
                    self._passed[each.source] = each.position.offset
                return []
            self._decoded = self._decode(self._answers.popleft())

    def _decode(self, answer: FetchedRecords) -> Iterator[SourceBatch]:
        copied = self._copied[answer.place]
        try:
            yield from source_batches(answer, copied, self._how)
        except CorruptBatchError as error:
            raise self._damaged(answer, error) from error
        reached = copied.at(answer.next_offset, last_epoch(answer.headers))
        self._passed[copied.source] = reached.position.offset

    def _fetch(self) -> None:
        wait = _WAIT_SECONDS if self._fetcher.is_settled else _CONNECT_SECONDS
        try:
            found = self._fetcher.poll(Deadline.after(wait))
        except LOST as error:
            raise ReplanError(f"{error} {_COMPARED}") from error
        except (CorruptBatchError, UnfetchableError) as error:
            raise self._cannot_read_on(error) from error
        for each in found:
            self._check_leader(each)
            self._reached[each.place] = each.next_offset
        self._answers.extend(found)

    def _damaged(self, answer: FetchedRecords, error: CorruptBatchError) -> ConnectError:
        """The error for a batch of *answer* that cannot be decoded; where it may be passed over, the next poll goes on after it."""
        ends = (each for each in answer.headers if each.last_offset >= error.offset >= 0)
        header = next(ends, None)
        if header is None:
            return self._cannot_read_on(error)
        copied, last = self._copied[answer.place], header.last_offset
        after = copied.at(last + 1, last_epoch([header]))
        if not self._tolerates:
            return PartitionError(
                copied.source,
                without_tolerance(error, last),
                source_offset=after.position.offset,
            )
        # Which transactions are aborted after it is answered anew: it may have been the end of one.
        self._fetcher.add([_range(answer.place, after.position)])
        self._reached[answer.place] = last + 1
        refused = RefusedRecords(
            batches=without_batches(after),
            error=error,
            first=max(header.base_offset, answer.fetch_offset),
            last=last,
            data=bytes(answer.data[header.position : header.end]),
        )
        [(_, failure)] = refused.errors()
        return failure

    def _cannot_read_on(self, error: CorruptBatchError | UnfetchableError) -> PartitionError:
        return PartitionError(self._copied[error.place].source, str(error))

    def _check_leader(self, answer: FetchedRecords) -> None:
        """Raise when what comes next was appended by a leader whose log was not compared with the position yet."""
        compared, place = self._epochs[answer.place], answer.place
        newest = max(header.leader_epoch for header in answer.headers)
        if 0 <= compared < newest:
            raise ReplanError(
                f"{place} has a new leader (epoch {newest}, after {compared}), whose log may be another one. {_COMPARED}"
            )

    def _passed_gaps(self) -> list[Copied]:
        """Partitions at whose ends nothing is left to be read, as after compaction; each is returned once."""
        found = list[Copied]()
        for place, position in self._fetcher.positions.items():
            if position > self._reached[place]:
                self._reached[place] = position
                # No batch says in which epoch these offsets were written.
                found.append(self._copied[place].at(position, None))
        return found


def _copied(flow: Flow, split: Split) -> tuple[TopicPartition, Copied]:
    place = flow.place(split.partition)
    assert place is not None, "a flow has nothing to read in its own source partition"
    assert split.offset is not None, "starts are stored before anything is read"
    remote = TopicPartition(str(split.details[REMOTE]), place.partition)
    return place, Copied(split.partition, remote, Position.of(split.offset))


def _epoch(split: Split) -> int:
    found = split.details[EPOCH]
    assert isinstance(found, int)
    return found


def _range(place: TopicPartition, position: Position) -> FetchRange:
    return FetchRange(place=place, start=position.next, topic_id=position.topic_id)
