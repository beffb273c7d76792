"""Which topics, groups and settings are copied."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConfigError
from headrace.mirror.filters import (
    CopiedTopics,
    Patterns,
    TopicFilter,
    TopicFilterConfig,
    group_filter,
    property_filter,
    topic_filter,
)
from headrace.mirror.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
)


class Short(TopicFilter):
    """A filter of a user's own."""

    def copies(self, topic: str) -> bool:
        """Names of one and two characters."""
        return len(topic) < 3


def copied(**props: str) -> CopiedTopics:
    """The topics of a flow from a to b with the default filter."""
    return CopiedTopics(
        policy=DefaultReplicationPolicy(), chosen=topic_filter(props), source="a", target="b"
    )


def test_patterns_are_for_whole_names_and_none_matches_nothing():
    """A part of a name is no match."""
    assert Patterns(("a", "b.*")).match("bc")
    assert not Patterns(("a", "b.*")).match("ab")
    assert not Patterns(()).match("")
    assert not Patterns(()).match("a")


def test_excluded_topics_are_left_out_of_the_included_ones():
    """Excluding wins."""
    chosen = topic_filter({"topics": "orders.*, payments", "topics.exclude": "orders-old"})
    assert chosen.copies("orders-new")
    assert chosen.copies("payments")
    assert not chosen.copies("orders-old")
    assert not chosen.copies("payments2")


@pytest.mark.parametrize(
    ("policy", "topic", "is_remote"),
    [
        (DefaultReplicationPolicy(), "a.t", True),
        (DefaultReplicationPolicy(), "a.heartbeats", True),
        (DefaultReplicationPolicy(), "a.u", False),
        (DefaultReplicationPolicy(), "c.t", False),
        (DefaultReplicationPolicy(), "t", False),
        (IdentityReplicationPolicy(source="a"), "t", True),
        (IdentityReplicationPolicy(source="a"), "u", False),
    ],
)
def test_remote_topics_are_known_by_their_names(
    policy: ReplicationPolicy, topic: str, *, is_remote: bool
):
    """Those of the topics that are copied, whether they are there or not."""
    chosen = topic_filter({"topics": "t"})
    flow = CopiedTopics(policy=policy, chosen=chosen, source="a", target="b")
    assert is_remote == flow.is_remote(topic)


def test_groups_of_consoles_and_of_connectors_are_left_out_by_default():
    """So positions of mirrors are no groups to translate."""
    chosen = group_filter({})
    assert chosen.copies("billing")
    assert not chosen.copies("console-consumer-1")
    assert not chosen.copies("connect-mirror")
    assert not group_filter({"groups": ""}).copies("billing")


def test_settings_that_depend_on_the_cluster_are_left_out_by_default():
    """Defaults of the source are copied only when asked for."""
    chosen = property_filter({})
    assert chosen.copies("retention.ms")
    assert not chosen.copies("min.insync.replicas")
    assert not chosen.copies_default("retention.ms")
    assert property_filter({"use.defaults.from": "source"}).copies_default("retention.ms")


def test_internal_topics_and_cycles_are_not_copied_and_heartbeats_are():
    """Whatever the filter says."""
    chosen = copied(topics="none")
    assert chosen.copies("heartbeats")
    assert not chosen.copies("b.heartbeats")
    assert not chosen.copies("orders")
    assert not copied(**{"topics.exclude": "x"}).copies("__consumer_offsets")
    assert not copied().copies("b.orders")
    assert copied().copies("c.orders")
    assert not copied(**{"topics.exclude": "x"}).copies("a.checkpoints.internal")


def test_the_targets_own_remote_topics_are_those_of_the_source_but_checkpoints():
    """Topics of other flows to the same target are not."""
    assert copied().is_own("a.t")
    assert not copied().is_own("a.checkpoints.internal")
    assert not copied().is_own("c.t")
    assert copied().remote_topic("t") == "a.t"


def test_a_filter_of_ones_own_is_named_by_its_path():
    """It alone decides."""
    chosen = topic_filter({"topic.filter.class": f"{__name__}:Short"})
    assert chosen.copies("ab")
    assert not chosen.copies("abc")


def test_a_pattern_that_cannot_be_used_is_told_with_its_key():
    """With the reason why a quantifier may have been torn apart."""
    [(key, told)] = TopicFilterConfig.problems({"topics": "a{1,2}"})
    assert key == "topics"
    assert "Commas separate patterns" in told
    with pytest.raises(ConfigError):
        topic_filter({"topics": "("})
