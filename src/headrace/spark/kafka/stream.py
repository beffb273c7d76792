"""A streaming query's reader: what Spark asks of it on the driver, and what its tasks run."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.discovery.state import EnumeratorState, Status
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka.backlog import Backlog, backlog_of
from headrace.spark.kafka.connection import connected
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.planning import ranges
from headrace.spark.kafka.reading import RangeReader, input_partitions
from headrace.spark.kafka.subscription import refuse_ends

_log = logging.getLogger(__name__)

_UNLIMITED: Final = 2**63 - 1
# A batch does not wait longer for what only tools look at.
_COMMIT_SECONDS: Final = 5.0
_COMMIT_PAUSE_SECONDS: Final = 30.0
# Characters of another source's offset that an error repeats.
_SHOWN: Final = 2_000


class KafkaStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """See :class:`pyspark.sql.datasource.DataSourceStreamReader`.

    A query's offset is the state of the enumerator, with the position of each partition. Spark keeps it; nothing else
    survives a restart, and nothing else needs to. Spark also makes an instance only to pickle it for the tasks, so
    nothing is connected before the first question.
    """

    def __init__(self, options: KafkaSourceOptions) -> None:
        refuse_ends(options)
        self._options = options
        self._reader = RangeReader(options)
        self._backlog: Backlog | None = None
        self._committed = dict[TopicPartition, int]()
        self._commits_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_backlog": None}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 (Spark's name)
        """Nothing discovered yet.

        The first ``latestOffset`` resolves where partitions start, and its result carries it, because Spark asks for this
        again when it plans the first batch a second time.
        """
        return EnumeratorState().to_document()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """What the options limit; Spark hands it back, or ``ReadAllAvailable`` where the trigger overrules it."""
        options = self._options
        if options.limits_batches:
            return ReadMaxRows(options.max_offsets or _UNLIMITED)
        if options.min_offsets is not None:
            return ReadMinRows(options.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """The next ``latestOffset`` finds what there is, and from then on there is nothing else."""
        self._planned().stop_at_what_there_is()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """Where the next batch ends; *start* itself when there is nothing to read."""
        before = _state(start)
        # The last batch is done when Spark asks for the next one, and for a while or for ever there may be none.
        self._commit(before)
        is_limited = not isinstance(limit, ReadAllAvailable)
        end = self._planned().advanced(before, is_limited=is_limited)
        return start if end == before else end.to_document()

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Where the partitions end, how far behind the query is, and what discovery has counted; for its progress."""
        return self._planned().report()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch. Asks no broker."""
        return input_partitions(ranges(_state(start), _state(end)), self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task; runs on an executor."""
        return self._reader.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Spark says so when it plans the batch after the one that ends with *end*."""
        self._commit(_state(end))

    def stop(self) -> None:
        """Close the connections."""
        if self._backlog is not None:
            connected(self._options).close()

    def _commit(self, done: EnumeratorState) -> None:
        """Commit positions to the consumer group, for tools that show lags.

        A failure is logged, and harms nothing; the next trigger after a pause tries again, also one without a batch.
        """
        options = self._options
        if options.group_id is None or not options.commits:
            return
        positions = {
            place: one.position
            for place, one in done.partitions.items()
            if one.status is Status.ASSIGNED and one.position is not None
        }
        changed = dict(positions.items() - self._committed.items())
        if not changed or time.monotonic() < self._commits_at:
            return
        deadline = Deadline.after(min(options.timeout_seconds, _COMMIT_SECONDS))
        try:
            connected(options).commit_offsets(options.group_id, changed, deadline)
        except ConnectError as error:
            _log.warning(
                "The positions could not be committed to the group %r: %s", options.group_id, error
            )
            self._commits_at = time.monotonic() + _COMMIT_PAUSE_SECONDS
        else:
            self._committed |= changed

    def _planned(self) -> Backlog:
        if self._backlog is None:
            for each in self._options.warnings(is_bounded=False):
                _log.warning("%s", each)
            self._backlog = backlog_of(self._options)
        return self._backlog


def _state(offset: dict[str, Any]) -> EnumeratorState:
    """The state that *offset* of a checkpoint is. Raises :class:`~headrace.connect.errors.TaskFailedError` for another source's."""
    if offset and all(_is_sparks(each) for each in offset.values()):
        text = json.dumps(offset, separators=(",", ":"))
        if len(text) > _SHOWN:
            text = (
                "the source's line in its file offsets/N, where N is the newest file in its commits"
            )
        raise TaskFailedError(
            "The checkpoint is one of Spark's own Kafka source, which this source cannot continue. Start the query with a "
            f"new checkpoint, and set startingOffsets to where that one is: {text}"
        )
    return EnumeratorState.from_document(offset)


def _is_sparks(numbers: object) -> bool:
    """Whether these are the offsets of a topic as Spark's own source writes them: ``{"0": 23}``."""
    if not isinstance(numbers, dict):
        return False
    entries = cast("dict[str, object]", numbers)
    return all(key.isdecimal() and type(value) is int for key, value in entries.items())
