"""What a mirror's driver does on the target: remote topics, their ends, and its group."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Final, NamedTuple

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.sentences import counted
from headrace.kafka.topic_admin import TopicAdmin, TopicSetting, raise_refused
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import LATEST, Cluster, IsolationLevel
from headrace.mirror.client_settings import Side
from headrace.mirror.filters import property_filter
from headrace.mirror.formats import OffsetRange
from headrace.mirror.own_topics import COMPACTED, check_one_cluster
from headrace.mirror.remote_topics import (
    RemoteTopic,
    RemoteTopics,
    missing_topics,
    settings_of_remote,
)
from headrace.mirror.settings import SYNCS_REPLICATION, MirrorSourceConfig
from headrace.mirror.topic_tail import TopicTail

_log = logging.getLogger(__name__)

_RETENTION: Final = "offsets.retention.minutes"
_DEFAULT_RETENTION_MINUTES: Final = 7 * 24 * 60
_PART: Final = 4
_SHOWN: Final = 3
# For how long is set once the remote topics are there.
_KEPT: Final = {"cleanup.policy": "delete", "retention.ms": "-1"}

SettingsOf = Callable[[Collection[str]], Mapping[str, Mapping[str, TopicSetting]]]
"""The settings of topics of the source, as far as this client may see them."""


class TargetClients(NamedTuple):
    """Clients of the target. *writing* is one of the cluster that the tasks write to, if that has other addresses."""

    cluster: Cluster
    admin: TopicAdmin
    writing: TopicAdmin | None = None


class LackingPartitions(NamedTuple):
    """Why a remote topic lacks partitions, those with the number *first* and higher: all of them where there is no such topic."""

    problem: str
    first: int = 0


class MirrorTarget:
    """Asks and changes the target cluster. Used by one thread; each method raises what the clients raise."""

    def __init__(
        self,
        config: MirrorSourceConfig,
        clients: TargetClients,
        settings_of: SettingsOf,
        *,
        seconds: float,
    ) -> None:
        self._config = config
        self._copied = config.topics_copied
        self._cluster, self._admin, self._writing = clients
        self._settings_of = settings_of
        self._seconds = seconds
        self._topics = RemoteTopics(
            self._admin, self._cluster, replication=config.replication_factor, seconds=seconds
        )
        self._internal = self._own(config.ranges_replication)
        self._syncs = self._own(config.offset_syncs_topic_replication_factor)
        self._ensured: dict[str, int] = {}
        self._lacking: dict[str, LackingPartitions] = {}
        self._ranges: TopicTail | None = None
        self._in_ranges = set[str]()
        self._silent = frozenset[TopicPartition]()

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id, as it was last answered."""
        return self._cluster.known.cluster_id

    def doubt(self) -> None:
        """Look again whether topics are there that were there before."""
        self._ensured.clear()
        self._lacking.clear()

    def ensure(
        self, topics: Mapping[str, int], copied: Collection[str]
    ) -> dict[str, LackingPartitions]:
        """Make sure that the remote topics are there of the source's *topics*, each of which has so many partitions.

        Of *copied* ones records have been copied before. Where the remote topic of one of them is gone, it is not created if
        the settings say so. Returns why for partitions of some of *topics* there is nothing to copy to, that or what the target has
        refused: this is looked at again after :meth:`doubt`. Raises :class:`~headrace.connect.errors.TaskFailedError` for two topics of
        one remote name.
        """
        source = self._by_remote_name(topics)
        wanted = {
            name: topics[topic]
            for name, topic in source.items()
            if self._ensured.get(name, 0) < topics[topic] and name not in self._lacking
        }
        if wanted:
            self._ensure(wanted, source, copied)
        return {source[name]: each for name, each in self._lacking.items() if name in source}

    def gone(self, copied: Collection[str]) -> dict[str, str]:
        """Why nothing would be copied of those of the source's topics that are *copied* and whose remote topics are gone.

        Nothing is created; none where the settings say that they are created again.
        """
        if self._config.on_remote_removed != "fail":
            return {}
        gone = self._without_remote(copied)
        return {topic: _removed(self._copied.remote_topic(topic)) for topic in gone}

    def copied_before(self, topics: Collection[str]) -> frozenset[str]:
        """Those of the source's *topics* whose remote topics are gone, and that were copied as far as offset ranges say.

        A group's entries for a topic are removed with it, and the ranges stay for as long as they are kept. Asked where the group
        has an entry for the ranges' own topic, which is there then. Raises
        :class:`~headrace.connect.errors.RetriableError` until they are read to their end; each call reads on.
        """
        gone = self._without_remote(topics)
        return self._topics_in_ranges() & gone if gone else frozenset()

    def _without_remote(self, topics: Collection[str]) -> frozenset[str]:
        """Those of the source's *topics* whose remote topics are not there."""
        names = {self._copied.remote_topic(each): each for each in topics}
        lacking = self._topics.existing(names).lacks(names)
        return frozenset(names[name] for name in self._missing(lacking))

    def _missing(self, lacking: AbstractSet[str]) -> frozenset[str]:
        """Those of *lacking*, which an answer does not have, that are not there."""
        deadline = self._deadline()
        return missing_topics(self._cluster, lacking, deadline, beside=self._internal_topic)

    def _topics_in_ranges(self) -> frozenset[str]:
        topic = self._internal_topic
        if self._ranges is None:
            self._ranges = TopicTail(self._cluster, topic, self._in_ranges.clear)
        try:
            for columns in self._ranges.read(self._deadline()):
                self._in_ranges.update(topics_in(columns["key"].unique().to_pylist()))
        except TaskFailedError as error:
            # Without the right to read it, topics are copied nevertheless.
            _log.warning(
                "A remote topic that was deleted while the connector did not run may be taken for a new one, and its source be "
                "copied from its beginning, as the topic %s does not say what was copied before: %s",
                topic,
                error,
            )
        else:
            if not (self._ranges.is_there and self._ranges.is_complete):
                is_there = self._ranges.is_there
                found = (
                    "was not read to its end in time" if is_there else "is not known to the brokers"
                )
                raise RetriableError(
                    f"The topic {topic}, which says what was copied before, {found}; it is tried again."
                )
        self._ranges.close()
        self._ranges = None
        return frozenset(self._in_ranges)

    def _ensure(
        self, wanted: Mapping[str, int], source: Mapping[str, str], copied: Collection[str]
    ) -> None:
        existing, hidden = self._topics.existing(frozenset(wanted))
        self._note_refused(hidden)
        wanted = {name: count for name, count in wanted.items() if name not in hidden}
        missing = {name: source[name] for name in wanted if name not in existing}
        lacking = {name for name, topic in missing.items() if topic in copied}
        self._note_removed(self._missing(lacking))
        wanted = {name: count for name, count in wanted.items() if name not in self._lacking}
        missing = {name: topic for name, topic in missing.items() if name in wanted}
        settings = self._settings_at_creation(missing) if missing else {}
        refused = self._topics.ensure(
            {name: RemoteTopic(count, settings.get(name, {})) for name, count in wanted.items()},
            existing,
        )
        self._note_refused(refused, existing)
        self._ensured |= {name: count for name, count in wanted.items() if name not in refused}

    def ensure_internal(self) -> None:
        """Make sure that the flow's own topics are there.

        Offset ranges are always there: under that topic's partition the flow's first discovery is noted.
        """
        if self._writing is not None:
            check_one_cluster(self._admin, self._writing, self._deadline())
            self._writing = None
        config = self._config
        ranges = RemoteTopic(1, _KEPT)
        self._ensure_own(
            self._internal, self._internal_topic, ranges, config.ranges_replication_key
        )
        is_on_target = config.offset_syncs_topic_location == Side.TARGET.value
        if config.emit_offset_syncs_enabled and is_on_target:
            syncs = RemoteTopic(1, COMPACTED)
            self._ensure_own(self._syncs, config.offset_syncs_topic, syncs, SYNCS_REPLICATION)

    def _ensure_own(
        self, topics: RemoteTopics, name: str, wanted: RemoteTopic, replication_key: str
    ) -> None:
        if name in self._ensured:
            return
        existing, hidden = topics.existing(frozenset([name]))
        raise_refused(hidden)
        refused = topics.ensure({name: wanted}, existing)
        replication = f"Its replication factor is that of {replication_key}."
        raise_refused({each: f"{said} {replication}" for each, said in refused.items()})
        self._ensured[name] = 1

    def _own(self, replication: int) -> RemoteTopics:
        return RemoteTopics(
            self._admin, self._cluster, replication=replication, seconds=self._seconds
        )

    def check_group(self) -> None:
        """Raise :class:`~headrace.connect.errors.TaskFailedError` while consumers are members of the group.

        The broker would let both commit: a consumer's offsets are of the remote topics, and the mirror's of the source.
        """
        group = self._config.group_id
        members = self._cluster.describe_group(group, self._deadline()).members
        if members:
            shown = ", ".join(f"{each.client_id} at {each.host}" for each in members[:_SHOWN])
            raise TaskFailedError(
                f"The group {group!r} on the target has {counted(len(members), 'member')} ({shown}), and the mirror keeps its positions "
                "there: nobody may consume with it. Stop them, or give the mirror another group (mirror.group.id)."
            )

    def ends(self, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Where remote partitions end, aborted records and open transactions included.

        Those whose leader does not answer now are left out, and logged once.
        """
        wanted = dict.fromkeys(places, LATEST)
        if not wanted:
            return {}
        found = self._cluster.list_offsets(
            wanted, self._deadline(), isolation=IsolationLevel.READ_UNCOMMITTED
        )
        ends = {place: each.offset for place, each in found.items() if each.offset is not None}
        silent = frozenset(wanted.keys() - ends.keys())
        if silent - self._silent:
            _log.warning(
                "The target's brokers do not say now where the logs of %s without a position end, such as %s; copying begins "
                "when they do.",
                counted(len(silent), "remote partition"),
                min(silent),
            )
        self._silent = silent
        return ends

    def existing(self, places: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        """Those of remote partitions that are there."""
        counts = self._topics.existing(frozenset(each.topic for each in places)).partitions
        return frozenset(each for each in places if each.partition < counts.get(each.topic, 0))

    def recommit_seconds(self) -> float:
        """How often each position has to be committed so that none expires: a quarter of what the target keeps it for."""
        found = self._admin.broker_setting(_RETENTION, self._deadline())
        minutes = int(found) if found is not None else _DEFAULT_RETENTION_MINUTES
        return minutes * 60 / _PART

    def _settings_at_creation(self, topics: Mapping[str, str]) -> dict[str, dict[str, str]]:
        """The settings of remote topics that are to be created, by their names; *topics* are those of their sources."""
        found = self._settings_of(topics.values())
        chosen = property_filter(self._config.originals)
        known = self._known_settings()
        return {
            name: settings_of_remote(found.get(topic, {}), chosen, known)
            for name, topic in topics.items()
        }

    def _known_settings(self) -> frozenset[str]:
        """The settings that topics of the target have, as those of the flow's own topic tell."""
        found = self._admin.topic_configs([self._internal_topic], self._deadline()).found
        return frozenset(found.get(self._internal_topic, ()))

    @property
    def _internal_topic(self) -> str:
        return self._config.policy.offset_ranges_topic(self._config.source_cluster_alias)

    def _by_remote_name(self, topics: Collection[str]) -> dict[str, str]:
        found = dict[str, str]()
        for topic in sorted(topics):
            name = self._copied.remote_topic(topic)
            if name in found:
                raise TaskFailedError(
                    f"The topics {found[name]} and {topic} would both be copied to {name}: the replication policy has to give "
                    "different topics different names."
                )
            found[name] = topic
        return found

    def _note_removed(self, gone: Collection[str]) -> None:
        for name in sorted(gone):
            if self._config.on_remote_removed == "fail":
                self._lacking[name] = LackingPartitions(_removed(name))
            else:
                _log.warning(
                    "%s It is created again, and copying goes on at the position, or at the beginning where the position is gone "
                    "with the topic.",
                    _found_gone(name),
                )

    def _note_refused(
        self, refused: Mapping[str, str], existing: Mapping[str, int] | None = None
    ) -> None:
        """Remember the *refused* topics; those that are *existing* have so many partitions, and were refused more."""
        for name, reason in refused.items():
            count = (existing or {}).get(name, 0)
            what = f"Partitions from {count} on are not" if count else "Nothing is"
            problem = f"{reason} {what} copied to it until this is tried again."
            self._lacking[name] = LackingPartitions(problem, count)

    def _deadline(self) -> Deadline:
        return Deadline.after(self._seconds)


def _found_gone(name: str) -> str:
    return (
        f"The remote topic {name} is gone from the target, and its source has been copied before."
    )


def _removed(name: str) -> str:
    return (
        f"{_found_gone(name)} Set mirror.on.remote.removed to continue to have it created again: it is empty then, and copying goes "
        "on at the position, or at the beginning where the position is gone with the topic."
    )


def topics_in(keys: Iterable[bytes | None]) -> Iterator[str]:
    """The topics that offset ranges with *keys* are about; the connector of checkpoints reports others than a mirror's."""
    for key in keys:
        with suppress(ValueError):
            yield OffsetRange.topic_of(key or b"")
