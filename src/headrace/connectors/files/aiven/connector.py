"""Aiven's S3 source: its configurations and its offsets, read by the connector ``files``.

Its records keep their keys, topics and Kafka partitions, and its tasks their objects. Exactly-once is
supported, which the original does not offer.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config
from headrace.connect.connector import Explained, Plan, PlanRequest
from headrace.connect.errors import ConnectError, OffsetsError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.schema import OPTIONAL_BYTES
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.connectors.files.aiven.config import AivenS3Config
from headrace.connectors.files.aiven.keys import UNUSED
from headrace.connectors.files.aiven.partitions import KnownByAddress, as_ours, as_theirs, key_of
from headrace.connectors.files.aiven.peer_config import PARTITION
from headrace.connectors.files.aiven.shares import java_hash, shared
from headrace.connectors.files.aiven.words import in_peers_words, say_in_peers_words
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.offsets import check_offsets
from headrace.connectors.files.task import FilesTask
from headrace.sources.sharing import Piece

_LOG = logging.getLogger(__name__)


class AivenS3Task(FilesTask):
    """Reads as ``files`` does; each record's key are the bytes of its object's key, as the original has it."""

    files_config: ClassVar[type[FilesConfig]] = AivenS3Config

    def poll(self) -> list[SourceBatch] | None:
        """See :class:`~headrace.connectors.files.task.FilesTask`."""
        with _in_peers_words():
            batches = super().poll()
        return None if batches is None else [self._with_key(each) for each in batches]

    def _with_key(self, batch: SourceBatch) -> SourceBatch:
        if batch.keys is not None:
            return batch
        key = pa.scalar(key_of(batch.source_partition).encode(), pa.binary())
        schema = OPTIONAL_BYTES if self._config.format == "avro" else None
        return dataclasses.replace(batch, keys=pa.repeat(key, len(batch)), key_schema=schema)


class AivenS3Connector(FilesConnector):
    """Lists a bucket, and shares its objects out as the original does."""

    config_class: ClassVar[type[Config]] = AivenS3Config
    task_class: ClassVar[type[SourceTask]] = AivenS3Task
    files_config: ClassVar[type[FilesConfig]] = AivenS3Config

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        with _in_peers_words():
            super().start(props)
        for each in UNUSED:
            if each.name in props:
                _LOG.info("%s has no effect: %s", each.name, each.told)
        self._peer = AivenS3Config.parse(props).peer

    def plan(self, request: PlanRequest) -> Plan:
        """As ``files`` plans, under the original's names of partitions."""
        with _in_peers_words():
            plan = super().plan(_by_address(request))
        renamed = [
            [dataclasses.replace(split, partition=as_theirs(split.partition)) for split in share]
            for share in plan.shares
        ]
        offsets = {as_theirs(partition): offset for partition, offset in plan.offsets.items()}
        return dataclasses.replace(plan, shares=renamed, offsets=offsets)

    def explain(self, request: PlanRequest) -> Iterator[Explained]:
        """See :class:`~headrace.connect.connector.PlannedConnector`."""
        with _in_peers_words():
            for each in super().explain(_by_address(request)):
                told = each.reason and in_peers_words(each.reason)
                yield dataclasses.replace(each, reason=told)

    def share_out(self, pieces: Sequence[Piece], slots: int) -> list[list[Split]]:
        """At most *slots* non-empty shares, by the key of each object or by its Kafka partition."""
        splits = [(key_of(each.split.partition), each.split) for each in pieces]
        by_partition = self._peer.distribution_type.lower() == PARTITION
        return shared(splits, slots, self._kafka_partition if by_partition else java_hash)

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """As ``files``, with the original's names of partitions."""
        renamed = dict[SourcePartition, SourceOffset | None]()
        for partition, offset in offsets.items():
            ours = as_ours(partition)
            if ours is None:
                shown = json.dumps(dict(partition), ensure_ascii=False)
                raise OffsetsError(
                    f"The partition {shown} must name an object by 'bucket' and 'objectKey'."
                )
            renamed[ours] = offset
        check_offsets(renamed)

    def lag(
        self, props: Mapping[str, str], offsets: Mapping[SourcePartition, SourceOffset]
    ) -> Mapping[SourcePartition, int]:
        """As ``files``, with the original's names of partitions."""
        ours = {found: offset for each, offset in offsets.items() if (found := as_ours(each))}
        with _in_peers_words():
            return {as_theirs(each): lag for each, lag in super().lag(props, ours).items()}

    def _tell(self, path: str, sentence: str | None) -> None:
        super()._tell(path, sentence and in_peers_words(sentence))

    def _kafka_partition(self, key: str) -> int:
        # Never without one: file.name.template has to tell it.
        return self._destinations.of(f"s3://{self._peer.aws_s3_bucket_name}/{key}").partition or 0


@contextmanager
def _in_peers_words() -> Generator[None]:
    """Errors that come out speak of the keys that the user wrote."""
    try:
        yield
    except ConnectError as error:
        say_in_peers_words(error)
        raise


def _by_address(request: PlanRequest) -> PlanRequest:
    return dataclasses.replace(request, offsets=KnownByAddress(request.offsets))
