"""``spark.read``: a bounded read, whose starts and ends are resolved when Spark plans it."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from headrace.discovery.enumerator import PartitionEnumerator
from headrace.kafka.deadline import Deadline
from headrace.spark.kafka.connection import discoverer_of
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.planning import OffsetRange, tasks
from headrace.spark.kafka.reading import KafkaInputPartition, RangeReader
from headrace.spark.kafka.subscription import refuse_latest_start, subscriber_of


class KafkaReader(DataSourceReader):
    """See :class:`pyspark.sql.datasource.DataSourceReader`. Pickled to the tasks."""

    def __init__(self, options: KafkaSourceOptions) -> None:
        refuse_latest_start(options)
        self._options = options
        self._reader = RangeReader(options)

    def partitions(self) -> list[InputPartition]:
        """The tasks, from the partitions that there are now. Spark calls this once for each execution of the query."""
        options = self._options
        enumerator = PartitionEnumerator(
            policies=options.policies(subscriber_of(options).growth),
        )
        discoverer = discoverer_of(options, is_bounded=True)
        discoverer.discover(enumerator, Deadline.after(options.timeout_seconds))
        found = [
            OffsetRange(each.place, each.start, each.stop, each.topic_id)
            for each in enumerator.unassigned()
            if each.start is not None and each.stop is not None and each.start < each.stop
        ]
        planned = tasks(
            found,
            at_least=options.min_partitions,
            most_records=options.max_records_per_partition,
        )
        return [KafkaInputPartition(each) for each in planned]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task; runs on an executor."""
        return self._reader.read(partition)
