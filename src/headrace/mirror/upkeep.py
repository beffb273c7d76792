"""What the driver of a mirror does at intervals beside copying."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.mirror.client_settings import ClientRole, Side
from headrace.mirror.clients import source_admin
from headrace.mirror.own_topics import ensure_compacted, patience
from headrace.mirror.scheduler import Scheduled, Scheduler
from headrace.mirror.settings import MirrorSourceConfig


def upkeep(config: MirrorSourceConfig) -> Scheduler:
    """All of it for one connector; nothing is connected before it starts."""
    return Scheduler(config.name, [*_jobs(config)])


def _jobs(config: MirrorSourceConfig) -> Iterator[Scheduled]:
    is_at_source = config.offset_syncs_topic_location == Side.SOURCE.value
    if config.emit_offset_syncs_enabled and is_at_source:
        what = (
            f"the creation of topic {config.offset_syncs_topic} at the source, for MirrorMaker's offset syncs, which are not "
            "written without it (emit.offset-syncs.enabled, offset-syncs.topic.location),"
        )
        yield Scheduled(what, lambda: _ensure_syncs(config))


def _ensure_syncs(config: MirrorSourceConfig) -> None:
    ensure_compacted(
        source_admin(config, ClientRole.OFFSET_SYNCS_SOURCE_ADMIN),
        config.offset_syncs_topic,
        patience(config),
        replication=config.offset_syncs_topic_replication_factor,
        key="offset-syncs.topic.replication.factor",
    )
