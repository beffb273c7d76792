"""What a Spark task does: fetches its ranges of offsets and hands them to Spark as Arrow batches."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import InputPartition

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.discovery.enumerator import DataLossPolicy, RecreatedPolicy
from headrace.kafka.batches.decoding import decoded
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import (
    LOST,
    FetchedRecords,
    Fetcher,
    FetchRange,
    OffsetOutOfRangeError,
    TopicMissingError,
    TopicRecreatedError,
)
from headrace.spark.kafka.connection import fetching
from headrace.spark.kafka.data_source import HEADERS
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.planning import OffsetRange, tasks
from headrace.spark.kafka.subscription import policies_of

_log = logging.getLogger(__name__)

_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
_MICROSECONDS: Final = pa.scalar(1000, pa.int64())
_HEADERS: Final = pa.list_(
    pa.field("element", pa.struct([("key", pa.string()), ("value", pa.binary())]))
)


class KafkaInputPartition(InputPartition):
    """What one Spark task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def input_partitions(
    ranges: Sequence[OffsetRange], options: KafkaSourceOptions
) -> list[InputPartition]:
    """The Spark tasks that read *ranges*."""
    planned = tasks(
        ranges,
        at_least=options.min_partitions,
        most_records=options.max_records_per_partition,
    )
    return [KafkaInputPartition(each) for each in planned]


class DataLossError(TaskFailedError):
    """Records that a query was to read are gone, and ``failOnDataLoss`` is true."""

    def __init__(self, sentence: str) -> None:
        super().__init__(
            f"{sentence} Set failOnDataLoss to false to continue without these records, which is then logged."
        )


def lost(sentence: str, *, fails: bool) -> None:
    """Report records that are gone: raises :class:`DataLossError`, or logs a warning where the query may continue."""
    if fails:
        raise DataLossError(sentence)
    _log.warning("Data loss: %s", sentence)


@dataclass(frozen=True, slots=True)
class RangeReader:
    """Reads ranges of offsets. Pickled to every task; connections stay open in its Python process for the next one."""

    options: KafkaSourceOptions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of *partition*, in the columns of the options, those of a Kafka partition in order.

        There are none in the partition that Spark plans by itself when there is nothing to read.

        Ends by position: offsets without records (markers, aborted and compacted ones) are passed. Raises
        :class:`DataLossError` by policy, and :class:`~headrace.connect.errors.RetriableError` when no broker answered in
        time.
        """
        if isinstance(partition, KafkaInputPartition):
            yield from self._records(partition.ranges)

    def _records(self, ranges: Sequence[OffsetRange]) -> Iterator[pa.RecordBatch]:
        options = self.options
        how, names = options.decoding, options.read_columns
        wanted = {each.place: each for each in ranges}
        with fetching(options, [_fetched(each) for each in ranges]) as fetcher:
            throttled_before = fetcher.throttled_ms

            def decoded_columns(answer: FetchedRecords) -> Iterator[pa.RecordBatch]:
                place = answer.place
                records = decoded(
                    answer.data,
                    answer.headers,
                    place=place,
                    start=answer.fetch_offset,
                    end=wanted[place].end,
                    aborted=answer.aborted,
                    how=how,
                )
                return (_columns(batch, place, names) for batch in records)

            # A loop would hold on to an answer while the next one is received, which then needs other memory.
            yield from chain.from_iterable(map(decoded_columns, self._answers(fetcher, wanted)))
            throttled_ms = fetcher.throttled_ms - throttled_before
            if throttled_ms:
                _log.warning("Brokers have throttled a task for %d ms, by quota.", throttled_ms)

    def _answers(
        self, fetcher: Fetcher, wanted: Mapping[TopicPartition, OffsetRange]
    ) -> Iterator[FetchedRecords]:
        seconds = self.options.timeout_seconds
        while not fetcher.finished:
            try:
                answers = fetcher.poll(Deadline.after(seconds))
            except LOST as error:
                self._lost(wanted[error.place], error, fetcher)
                continue
            if not answers and not fetcher.finished:
                raise RetriableError(_unanswered(fetcher, seconds))
            while answers:
                yield answers.pop(0)

    def _lost(self, wanted: OffsetRange, error: TaskFailedError, fetcher: Fetcher) -> None:
        """Report by policy what is gone of *wanted*, and continue after it if there is anything."""
        options = self.options
        policies = policies_of(options)
        left = wanted._replace(start=fetcher.positions.get(wanted.place, wanted.start))
        resumes, fails = left.end, options.fail_on_data_loss
        if isinstance(error, TopicRecreatedError):
            fails = policies.recreated is RecreatedPolicy.FAIL
            if policies.recreated is RecreatedPolicy.CONTINUE:
                _log.warning("%s It is read on at the position in the old one.", error)
                fetcher.add([_fetched(left._replace(topic_id=error.found))])
                return
        elif isinstance(error, TopicMissingError):
            fails = policies.removed is DataLossPolicy.FAIL
        elif isinstance(error, OffsetOutOfRangeError) and error.log_start > error.offset:
            resumes = min(error.log_start, left.end)
        lost(
            f"The offsets {left.start} to {resumes - 1} of {left.place} cannot be read. {error}",
            fails=fails,
        )
        if resumes < left.end:
            fetcher.add([_fetched(left._replace(start=resumes))])


def _fetched(wanted: OffsetRange) -> FetchRange:
    return FetchRange(
        place=wanted.place, start=wanted.start, end=wanted.end, topic_id=wanted.topic_id
    )


def _unanswered(fetcher: Fetcher, seconds: float) -> str:
    place, position = min(fetcher.positions.items())
    return (
        f"Kafka sent nothing for {seconds:g} s; {place} is at offset {position}. Check the brokers, or raise "
        "kafka.default.api.timeout.ms."
    )


def _columns(
    records: pa.RecordBatch, place: TopicPartition, names: tuple[str, ...]
) -> pa.RecordBatch:
    made = [_COLUMNS[name].made(records, place) for name in names]
    return pa.RecordBatch.from_arrays(made, schema=_schema(names))


@functools.cache
def _schema(names: tuple[str, ...]) -> pa.Schema:
    return pa.schema([(name, _COLUMNS[name].type) for name in names])


def _timestamp(records: pa.RecordBatch, _: TopicPartition) -> pa.Array:
    return pc.multiply(records["timestamp"], _MICROSECONDS).cast(_TIMESTAMP)


class _Column(NamedTuple):
    """A column of the source: its type, and how it is made of decoded records and where they come from."""

    type: pa.DataType
    made: Callable[[pa.RecordBatch, TopicPartition], pa.Array]


_COLUMNS: Final = {
    "key": _Column(pa.binary(), lambda records, _: records["key"]),
    "value": _Column(pa.binary(), lambda records, _: records["value"]),
    "topic": _Column(pa.string(), lambda records, place: pa.repeat(place.topic, len(records))),
    "partition": _Column(
        pa.int32(),
        lambda records, place: pa.repeat(pa.scalar(place.partition, pa.int32()), len(records)),
    ),
    "offset": _Column(pa.int64(), lambda records, _: records["offset"]),
    "timestamp": _Column(_TIMESTAMP, _timestamp),
    "timestampType": _Column(
        pa.int32(), lambda records, _: records["timestamp_type"].cast(pa.int32())
    ),
    HEADERS: _Column(_HEADERS, lambda records, _: records["headers"].cast(_HEADERS)),
}
