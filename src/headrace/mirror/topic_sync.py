"""What the driver of a mirror does at intervals beside copying: the settings and ACLs of remote topics follow the source's.

It also makes the topic of offset syncs where that is at the source, and sets for how long offset ranges are kept.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from headrace.connect.errors import TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.topic_admin import TopicAdmin, raise_refused
from headrace.kafka.wire.acls import create_acls, topic_acls
from headrace.mirror.acl_sync import acls_missing, remote_acls
from headrace.mirror.client_settings import ClientRole, Side
from headrace.mirror.clients import source_admin, source_admin_cluster, target_cluster
from headrace.mirror.filters import property_filter
from headrace.mirror.offset_ranges import DEFAULT_RETENTION_MS, RangesRetention
from headrace.mirror.own_topics import checked_target_admin, ensure_compacted, patience
from headrace.mirror.policies import IdentityReplicationPolicy
from headrace.mirror.scheduler import Scheduled, Scheduler
from headrace.mirror.settings import SYNCS_REPLICATION, MirrorSourceConfig
from headrace.mirror.topic_config_sync import settings_differing, settings_of_existing

_log = logging.getLogger(__name__)

# What the interval of the sync of settings is by default.
_RANGES_SECONDS: Final = 600.0
_RETENTION: Final = "retention.ms"


def topic_sync(config: MirrorSourceConfig, worker: Mapping[str, str]) -> Scheduler:
    """The jobs of one connector; nothing is connected before it starts.

    *worker* says how an admin client of the worker's reaches the cluster that is written to.
    """
    sync = TopicSync(config, worker)
    return Scheduler(config.name, [*_jobs(config, sync)], closed=sync.close)


def _jobs(config: MirrorSourceConfig, sync: TopicSync) -> Iterator[Scheduled]:
    is_at_source = config.offset_syncs_topic_location == Side.SOURCE.value
    if config.emit_offset_syncs_enabled and is_at_source:
        what = (
            f"the creation of topic {config.offset_syncs_topic} at the source, for MirrorMaker's offset syncs, which are not "
            "written without it (emit.offset-syncs.enabled, offset-syncs.topic.location),"
        )
        yield Scheduled(what, lambda: _ensure_syncs(config))
    if config.sync_configs_seconds is not None:
        what = "the sync of remote topics' settings (sync.topic.configs.enabled)"
        yield Scheduled(what, sync.sync_configs, config.sync_configs_seconds)
    if config.sync_acls_seconds is not None:
        what = "the sync of remote topics' ACLs (sync.topic.acls.enabled)"
        yield Scheduled(what, sync.sync_acls, config.sync_acls_seconds)
    what = f"a change of how long topic {sync.ranges_topic} keeps offset ranges"
    yield Scheduled(what, sync.keep_ranges, config.sync_configs_seconds or _RANGES_SECONDS)


def _ensure_syncs(config: MirrorSourceConfig) -> None:
    ensure_compacted(
        source_admin(config, ClientRole.OFFSET_SYNCS_SOURCE_ADMIN),
        config.offset_syncs_topic,
        patience(config),
        replication=config.offset_syncs_topic_replication_factor,
        key=SYNCS_REPLICATION,
    )


class TopicSync:
    """Changes remote topics, and the topic of offset ranges, after they were created. Used by one thread.

    Nothing is connected before the first call. Each raises :class:`~headrace.connect.errors.RetriableError` when a cluster does
    not answer in time, and :class:`~headrace.connect.errors.TaskFailedError` for what it refuses, once all else is done.
    """

    def __init__(self, config: MirrorSourceConfig, worker: Mapping[str, str]) -> None:
        self._config = config
        self._worker = worker
        self._copied = config.topics_copied
        self._retention = RangesRetention()
        self.ranges_topic = self._copied.policy.offset_ranges_topic(config.source_cluster_alias)
        self._source_admin: TopicAdmin | None = None
        self._target_admin: TopicAdmin | None = None
        self._source_cluster = source_admin_cluster(config, ClientRole.REPLICATION_SOURCE_ADMIN)
        self._target_cluster = target_cluster(config, worker)
        self._has_logged_no_authorizer = False

    def sync_configs(self) -> None:
        """Give remote topics the settings of their source topics, as MirrorMaker's ``syncTopicConfigs`` does."""
        deadline = patience(self._config)
        source, target = self._source(), self._target(deadline)
        there = target.topic_names(deadline)
        remote = {
            name: topic
            for topic in source.topic_names(deadline)
            if self._copied.copies(topic) and (name := self._copied.remote_topic(topic)) in there
        }
        of_source = source.topic_configs(remote.values(), deadline)
        of_remote = target.topic_configs(remote, deadline)
        chosen = property_filter(self._config.originals)
        changes = dict[str, dict[str, str | None]]()
        for name, has in of_remote.found.items():
            if remote[name] in of_source.found:
                wanted = settings_of_existing(of_source.found[remote[name]], chosen, has)
                changes[name] = settings_differing(wanted, has)
        refused = self._change(target, changes, deadline)
        raise_refused({**of_source.refused, **of_remote.refused, **refused})

    def sync_acls(self) -> None:
        """Create the ACLs of remote topics that follow from those of the source, as ``syncTopicAcls`` does; none is removed."""
        deadline = patience(self._config)
        found = topic_acls(self._source_cluster, deadline)
        if found is None:
            self._log_no_authorizer()
            return
        wanted = remote_acls(found, self._copied)
        if not wanted:
            return
        # Which checks that it is the worker's cluster.
        self._target(deadline)
        existing = topic_acls(self._target_cluster, deadline)
        if existing is None:
            raise TaskFailedError(
                f"The brokers of the target have no authorizer, so that {counted(len(wanted), 'ACL')} of remote topics cannot be "
                "created there. Configure authorizer.class.name there, or set sync.topic.acls.enabled to false."
            )
        missing = acls_missing(wanted, frozenset(existing))
        if missing:
            create_acls(self._target_cluster, missing, deadline)
            topics = {each.name for each in missing}
            _log.info(
                "ACLs of remote topics were created: %s of %s.",
                counted(len(missing), "ACL"),
                counted(len(topics), "topic"),
            )

    def keep_ranges(self) -> None:
        """Have the topic of offset ranges keep them as long as the longest retention of the topics that they are about.

        Heartbeats topics do not count: no one's offsets in them are translated. For what is not shortened at once see
        :class:`~headrace.mirror.offset_ranges.RangesRetention`.
        """
        deadline = patience(self._config)
        target = self._target(deadline)
        there = target.topic_names(deadline)
        if self.ranges_topic not in there:
            return
        remote = {each for each in there if self._is_spoken_of(each)}
        configs = target.topic_configs({self.ranges_topic, *remote}, deadline)
        # Of a topic that may not be looked at, ranges could be gone too early.
        raise_refused(configs.refused)
        found = dict(configs.found)
        has = found.pop(self.ranges_topic, None)
        if has is None:
            return
        now_ms = int(has[_RETENTION].value or DEFAULT_RETENTION_MS)
        listed = {
            topic: {name: each.value for name, each in settings.items()}
            for topic, settings in found.items()
        }
        decided = self._retention.decided(
            listed, remote | self._remote_of_source(deadline), now_ms=now_ms
        )
        if decided != now_ms:
            change = {_RETENTION: str(decided)}
            raise_refused(self._change(target, {self.ranges_topic: change}, deadline))

    def close(self) -> None:
        """Close the connections."""
        self._source_cluster.close()
        self._target_cluster.close()

    def _remote_of_source(self, deadline: Deadline) -> set[str]:
        """The remote topics that ranges are of, or will be, as the source lists its topics now."""
        topics = self._source().topic_names(deadline)
        remote = {self._copied.remote_topic(each) for each in topics if self._copied.copies(each)}
        return {each for each in remote if self._is_spoken_of(each)}

    def _is_spoken_of(self, topic: str) -> bool:
        """Whether ranges are of *topic*: another connector may copy it from the same source."""
        policy = self._copied.policy
        if policy.is_internal(topic) or policy.is_heartbeats_topic(topic):
            return False
        # Every topic of the target may come from the source by its name then.
        is_chosen = not isinstance(policy, IdentityReplicationPolicy) or self._copied.copies(topic)
        return is_chosen and self._copied.is_own(topic)

    def _change(
        self,
        target: TopicAdmin,
        changes: Mapping[str, Mapping[str, str | None]],
        deadline: Deadline,
    ) -> dict[str, str]:
        """Make *changes* of topics' settings that are not empty; why some were refused."""
        needed = {topic: change for topic, change in changes.items() if change}
        if not needed:
            return {}
        refused = target.set_topic_configs(needed, deadline)
        for topic in needed.keys() - refused.keys():
            changed = (
                f"{name}={'the default' if value is None else value}"
                for name, value in sorted(needed[topic].items())
            )
            _log.info("Settings of topic %s were changed: %s", topic, ", ".join(changed))
        return refused

    def _log_no_authorizer(self) -> None:
        if not self._has_logged_no_authorizer:
            self._has_logged_no_authorizer = True
            _log.info(
                "Connector %s: the brokers of the source have no authorizer, so that there are no ACLs for remote topics. They are "
                "not looked for with sync.topic.acls.enabled=false.",
                self._config.name,
            )

    def _source(self) -> TopicAdmin:
        self._source_admin = self._source_admin or source_admin(self._config)
        return self._source_admin

    def _target(self, deadline: Deadline) -> TopicAdmin:
        if self._target_admin is None:
            self._target_admin = checked_target_admin(
                self._config, self._worker, ClientRole.REPLICATION_TARGET_ADMIN, deadline
            )
        return self._target_admin
