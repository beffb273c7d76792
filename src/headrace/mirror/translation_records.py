"""The records that offset translation needs, and when a task of the mirror writes them, and to which cluster."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.connect.encoded import CopiedRun
from headrace.connect.record import BytesRecord
from headrace.kafka.wire.cluster import Cluster
from headrace.mirror.client_settings import Side
from headrace.mirror.copied_offsets import CopiedOffsets
from headrace.mirror.formats import OffsetSync
from headrace.mirror.offset_sync_writer import OffsetSyncWriter
from headrace.mirror.positions import Flow
from headrace.mirror.settings import MirrorSourceConfig


class TranslationRecords:
    """Offset ranges go into the commit of their records. Offset syncs, too, if they are on the target; otherwise they follow it.

    One thread owns it; *cluster* is a client of the source.
    """

    def __init__(self, config: MirrorSourceConfig, cluster: Cluster, *, task: int) -> None:
        flow = Flow.of(config.originals)
        self._offsets = CopiedOffsets(flow, config.policy, config.offset_lag_max)
        self._has_ranges = config.mirror_offset_ranges_enabled
        self._has_syncs = config.emit_offset_syncs_enabled
        self._ranges_topic = config.policy.offset_ranges_topic(flow.source)
        self._syncs_topic = config.offset_syncs_topic
        is_at_source = config.offset_syncs_topic_location == Side.SOURCE.value
        self._writer = OffsetSyncWriter(config, cluster, task=task) if is_at_source else None
        self._following: Sequence[OffsetSync] = ()

    def of_commit(self, copied: Sequence[CopiedRun]) -> Sequence[BytesRecord]:
        """What belongs into the commit of what is *copied*."""
        if not (self._has_ranges or self._has_syncs):
            return ()
        written, records = self._offsets.of_commit(copied), list[BytesRecord]()
        if self._has_ranges:
            records += [
                BytesRecord(self._ranges_topic, 0, *each.encoded()) for each in written.ranges
            ]
        if self._has_syncs and self._writer is None:
            records += [
                BytesRecord(self._syncs_topic, 0, *each.encoded()) for each in written.syncs
            ]
        elif self._has_syncs:
            self._following = written.syncs
        return records

    def committed(self) -> None:
        """The commit has happened."""
        following, self._following = self._following, ()
        if following and self._writer is not None:
            self._writer.write(following)

    def close(self) -> None:
        """Wait a moment for what is on its way."""
        if self._writer is not None:
            self._writer.close()
