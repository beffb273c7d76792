"""The task of a mirror: fetches its share of the source's partitions, and hands the record batches on unopened if it may."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headrace.connect.batch import SourceBatch
from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import ReplanError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import BytesRecord
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import LOST, FetchedRecords, Fetcher, FetchRange
from headrace.mirror.clients import decoding, fetch_settings, source_cluster
from headrace.mirror.fetched import (
    Copied,
    encoded_batches,
    last_epoch,
    source_batches,
    without_batches,
)
from headrace.mirror.offset_notes import OffsetNotes
from headrace.mirror.positions import Flow, Position
from headrace.mirror.settings import MirrorSourceConfig

_log = logging.getLogger(__name__)

END: Final = "end"
"""In the details of a split: the source offset at which the share is done with its partition."""
REMOTE: Final = "remote"
"""In the details of a split: the remote topic."""

# A stop is noticed at least once a second.
_WAIT_SECONDS: Final = 1.0


class MirrorSourceTask(SourceTask):
    """Reads its partitions up to where each ended when the plan was made. Everything that a fetch brings is copied.

    What is gone at the source is not decided here: the driver plans again, compares the positions with the source, and
    does what the settings say.
    """

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`; connects to nothing yet."""
        settings = MirrorSourceConfig.parse(config)
        flow = Flow.of(config)
        self._how = decoding(settings)
        self._copied: dict[TopicPartition, Copied] = {}
        ranges: list[FetchRange] = []
        for split in self.context.splits:
            place, copied = _copied(flow, split)
            self._copied[place] = copied
            ranges.append(_range(place, split, copied.position))
        self._cluster = source_cluster(settings, task=self.context.task)
        self._notes = OffsetNotes(settings, self._cluster, task=self.context.task)
        self._fetcher = Fetcher(self._cluster, ranges, fetch_settings(settings))
        self._answers = deque[FetchedRecords]()
        self._decoded: Iterator[SourceBatch] = iter(())
        self._passed: dict[SourcePartition, SourceOffset] = {}
        self._reached = {place: each.position.next for place, each in self._copied.items()}

    def poll(self) -> list[EncodedBatches] | list[SourceBatch] | None:
        """What has arrived next; ``None`` when every partition has reached its end."""
        return self._polled_encoded() if self.context.takes_encoded else self._polled_decoded()

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """Where markers, and what was aborted, have been passed behind the last decoded records."""
        passed, self._passed = self._passed, {}
        return passed or None

    def records_of_commit(self, copied: Sequence[CopiedRun]) -> Sequence[BytesRecord]:
        """Where the records of the commit went."""
        return self._notes.of_commit(copied)

    def commit(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._notes.committed()

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        notes: OffsetNotes | None = getattr(self, "_notes", None)
        if notes is not None:
            notes.close()
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

    def _polled_encoded(self) -> list[EncodedBatches] | None:
        self._fetch()
        found = list[EncodedBatches]()
        while self._answers:
            answer = self._answers.popleft()
            found += encoded_batches(answer, self._copied[answer.place])
        if found or not self._fetcher.finished:
            return found
        return [without_batches(each) for each in self._passed_gaps()] or None

    def _polled_decoded(self) -> list[SourceBatch] | None:
        """One batch of an answer after the other, so that memory does not hold all that an answer decompresses to."""
        while True:
            batch = next(self._decoded, None)
            if batch is not None:
                return [batch]
            if not self._answers:
                self._fetch()
            if not self._answers:
                if not self._fetcher.finished:
                    return []
                for each in self._passed_gaps():
                    self._passed[each.source] = each.position.offset
                return None
            self._decoded = self._decode(self._answers.popleft())

    def _decode(self, answer: FetchedRecords) -> Iterator[SourceBatch]:
        copied = self._copied[answer.place]
        yield from source_batches(answer, copied, self._how)
        reached = copied.at(answer.next_offset, last_epoch(answer.headers))
        self._passed[copied.source] = reached.position.offset

    def _fetch(self) -> None:
        try:
            found = self._fetcher.poll(Deadline.after(_WAIT_SECONDS))
        except LOST as error:
            raise ReplanError(
                f"{error} The positions are compared with the source again."
            ) from error
        for each in found:
            self._reached[each.place] = each.next_offset
        self._answers.extend(found)

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


def _range(place: TopicPartition, split: Split, position: Position) -> FetchRange:
    end = split.details[END]
    assert isinstance(end, int)
    return FetchRange(place=place, start=position.next, end=end, topic_id=position.topic_id)
