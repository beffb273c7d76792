"""The topics of a group of workers, as its settings describe them."""

from __future__ import annotations

import pytest

from headrace.config.internal_topics import CONFIGS, OFFSETS, STATUSES, InternalTopic
from headrace.kafka.admin import CompactedTopic

PROPS = {
    "config.storage.topic": "configs",
    "config.storage.replication.factor": "2",
    "config.storage.partitions": "3",
    "config.storage.min.insync.replicas": "2",
    "offset.storage.topic": "offsets",
    "offset.storage.partitions": "7",
    "offset.storage.cleanup.policy": "delete",
    "offset.storage.segment.bytes": "1048576",
    "offset.storage.compression.type": "lz4",
    "status.storage.topic": "statuses",
    "group.id": "g",
}


@pytest.mark.parametrize(
    ("kind", "partitions", "keeps", "settings"),
    [
        (CONFIGS, 1, "connector configurations", {"min.insync.replicas": "2"}),
        (
            OFFSETS,
            7,
            "source connector offsets",
            {"segment.bytes": "1048576", "compression.type": "lz4"},
        ),
        (STATUSES, 7, "connector and task statuses", {}),
    ],
    ids=["configs", "offsets", "statuses"],
)
def test_other_settings_with_the_prefix_are_the_topic_s(
    kind: InternalTopic, partitions: int, keeps: str, settings: dict[str, str]
) -> None:
    """But for its name, its numbers and its policy; that of configurations has one partition, whatever is said."""
    found = kind.described(PROPS, name="t", partitions=7, replication=2)

    assert found == CompactedTopic(
        name="t",
        partitions=partitions,
        replication=2,
        setting=f"{kind.prefix}topic",
        keeps=keeps,
        prefix=kind.prefix,
        settings=settings,
        is_single=kind is CONFIGS,
    )


def test_what_has_no_effect_is_told_in_kafka_connect_s_words() -> None:
    """Nothing is told of what was not given."""
    policy = {"config.storage.cleanup.policy": "compact,delete", "offset.storage.partitions": "1"}

    assert [
        "Ignoring 'config.storage.partitions=3' setting, since config topic partitions is always 1",
        "Ignoring 'config.storage.cleanup.policy=compact,delete' setting, since compaction is always used",
    ] == [*CONFIGS.ignored({**PROPS, **policy})]
    assert [
        "Ignoring 'offset.storage.cleanup.policy=delete' setting, since compaction is always used"
    ] == [*OFFSETS.ignored({**PROPS, "offset.storage.partitions": "1"})]
    assert [] == [*STATUSES.ignored(PROPS)]
