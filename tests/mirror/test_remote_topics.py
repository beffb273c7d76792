"""What is done to the remote topics of a flow."""

from __future__ import annotations

from headrace.kafka.topic_admin import TopicSetting, WantedTopic
from headrace.mirror.filters import property_filter
from headrace.mirror.remote_topics import (
    RemoteTopic,
    TopicChanges,
    settings_of_remote,
    topic_changes,
)


def own(value: str) -> TopicSetting:
    """Set for the topic."""
    return TopicSetting(value=value, is_own=True)


def test_topics_are_created_and_given_more_partitions_and_never_fewer():
    """Those that are as they should be are left alone."""
    wanted = {
        "A.new": RemoteTopic(3, {"retention.ms": "1"}),
        "A.small": RemoteTopic(3),
        "A.right": RemoteTopic(3),
        "A.large": RemoteTopic(3),
    }
    existing = {"A.small": 2, "A.right": 3, "A.large": 9}

    new = WantedTopic(name="A.new", partitions=3, replication=2, settings={"retention.ms": "1"})
    assert TopicChanges(created={"A.new": new}, grown={"A.small": 3}) == topic_changes(
        wanted, existing, replication=2
    )


def test_a_remote_topic_takes_what_its_source_took_and_keeps_its_time():
    """Whatever the filter of settings says; it does not copy the type of timestamps by default."""
    source = {
        "cleanup.policy": own("compact"),
        "message.timestamp.type": own("LogAppendTime"),
        "message.timestamp.after.max.ms": own("5"),
        "max.message.bytes": own("9000000"),
        "min.insync.replicas": own("2"),
    }
    known = {*source, "message.timestamp.before.max.ms"}

    assert {
        "cleanup.policy": "compact",
        "max.message.bytes": "9000000",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": str(2**63 - 1),
        "message.timestamp.after.max.ms": str(2**63 - 1),
    } == settings_of_remote(source, property_filter({}), known)
