"""``spark.read``: a bounded read, whose starts and ends are resolved when Spark plans it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from headrace.connect.errors import RetriableError
from headrace.discovery.discoverer import PartitionDiscoverer
from headrace.discovery.enumerator import DiscoveryPolicies, PartitionEnumerator
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import listed
from headrace.spark.kafka.discovering import discoverer_of
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.planning import OffsetRange
from headrace.spark.kafka.reading import RangeReader, input_partitions
from headrace.spark.kafka.subscription import policies_of, refuse_latest_start

_log = logging.getLogger(__name__)

# Leaders are elected within a second or two.
_PAUSE_SECONDS: Final = 0.5


class KafkaReader(DataSourceReader):
    """See :class:`pyspark.sql.datasource.DataSourceReader`. Pickled to the tasks."""

    def __init__(self, options: KafkaSourceOptions) -> None:
        refuse_latest_start(options)
        self._options = options
        self._reader = RangeReader(options)

    def partitions(self) -> list[InputPartition]:
        """The tasks, from the partitions that there are now. Spark calls this once for each execution of the query.

        Raises :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time, and the errors of a
        discovery.
        """
        options = self._options
        for each in options.warnings(is_bounded=True):
            _log.warning("%s", each)
        discoverer = discoverer_of(options, is_bounded=True)
        deadline = Deadline.after(options.timeout_seconds)
        found = bounded_ranges(discoverer, policies_of(options), deadline)
        return input_partitions(found, options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task; runs on an executor."""
        return self._reader.read(partition)


def bounded_ranges(
    discoverer: PartitionDiscoverer, policies: DiscoveryPolicies, deadline: Deadline
) -> list[OffsetRange]:
    """What a bounded read reads: every partition that there is now, those without a leader once they have one.

    Raises :class:`~headrace.connect.errors.RetriableError` for partitions that have none until *deadline*: without them the
    result would be incomplete. One that would begin after its end is logged.
    """
    enumerator = PartitionEnumerator(policies=policies)
    while True:
        discoverer.discover(enumerator, deadline)
        unresolved = enumerator.unresolved()
        if not unresolved:
            break
        if deadline.expired:
            raise RetriableError(
                f"The partition {min(unresolved)} has no leader, and a read without it would be incomplete. Check the brokers."
            )
        time.sleep(deadline.remaining(_PAUSE_SECONDS))
    reversed_ranges = [
        f"{each.place} from {each.start} to before {each.stop}"
        for each in enumerator.unassigned()
        if each.start is not None and each.stop is not None and each.start > each.stop
    ]
    if reversed_ranges:
        # It may be what was meant: a start behind records of a transaction that is still open.
        _log.warning(
            "The read begins after its end, so that nothing is read of: %s.",
            listed(reversed_ranges),
        )
    return [
        OffsetRange(each.place, each.start, each.stop, each.topic_id)
        for each in enumerator.unassigned()
        if each.start is not None and each.stop is not None and each.start < each.stop
    ]
