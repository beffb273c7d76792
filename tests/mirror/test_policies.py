"""How topics are named, and what their names say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.errors import ConfigError
from headrace.mirror.policies import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    alias_problem,
    replication_policy,
    separator_problem,
)

ALIASES = st.text("abz09_-", min_size=1, max_size=5)
TOPICS = st.text("abz09_-.", min_size=1, max_size=9)
JAVA = "org.apache.kafka.connect.mirror."


class Prefixed(ReplicationPolicy):
    """A policy of a user's own."""

    prefix: str

    @classmethod
    def configured(cls, props: Mapping[str, str]) -> Self:
        """Take the prefix."""
        made = cls()
        made.prefix = props["my.prefix"]
        return made

    def remote_topic(self, source: str, topic: str) -> str:
        """With a slash, which Kafka would refuse."""
        return f"{self.prefix}{source}/{topic}"

    def topic_source(self, topic: str) -> str | None:
        """What stands before the slash."""
        source, found, _ = topic.removeprefix(self.prefix).partition("/")
        return source if found else None


def test_the_default_policy_puts_the_alias_before_the_name():
    """Remote names are taken apart at the first separator, original ones as often as there is one."""
    policy = DefaultReplicationPolicy()
    assert policy.remote_topic("a", "t") == "a.t"
    assert policy.topic_source("a.t") == "a"
    assert policy.upstream_topic("a.t") == "t"
    assert policy.original_topic("b.a.t") == "t"


@pytest.mark.parametrize("topic", ["t", "t.", "t..", ".", ""])
def test_a_name_without_anything_behind_the_separator_is_no_remote_one(topic: str):
    """Neither is one that ends with separators only."""
    policy = DefaultReplicationPolicy()
    assert policy.topic_source(topic) is None
    assert policy.upstream_topic(topic) is None
    assert policy.original_topic(topic) == topic


@given(ALIASES, TOPICS.filter(lambda each: each.strip(".")), st.sampled_from([".", "__", "-.-"]))
def test_what_the_default_policy_has_named_it_finds_again(alias: str, topic: str, separator: str):
    """Unless it takes the remote name for no remote one."""
    policy = DefaultReplicationPolicy(separator)
    if separator in alias or alias_problem(policy, alias):
        return
    remote = policy.remote_topic(alias, topic)
    if policy.topic_source(remote) is not None:
        assert (alias, topic) == (policy.topic_source(remote), policy.upstream_topic(remote))


def test_a_separator_is_used_in_internal_names_unless_they_are_to_have_a_dot():
    """For topics that are copied it is always the one that is set."""
    both = replication_policy({"replication.policy.separator": "_"})
    one = replication_policy(
        {
            "replication.policy.separator": "_",
            "replication.policy.internal.topic.separator.enabled": "false",
        }
    )
    assert both.checkpoints_topic("a") == "a_checkpoints_internal"
    assert both.offset_syncs_topic("a") == "mm2-offset-syncs_a_internal"
    assert both.offset_ranges_topic("a") == "mm2-offset-ranges_a_internal"
    assert one.checkpoints_topic("a") == "a.checkpoints.internal"
    assert one.remote_topic("a", "t") == both.remote_topic("a", "t") == "a_t"
    assert both.is_internal("mm2-offset-ranges_a_internal")


def test_the_switch_for_internal_names_counts_only_beside_a_separator():
    """As in MirrorMaker."""
    policy = replication_policy({"replication.policy.internal.topic.separator.enabled": "false"})
    assert DefaultReplicationPolicy() == policy


def test_the_identity_policy_keeps_names_except_those_of_heartbeats():
    """Every other topic is taken for one of the source."""
    policy = replication_policy(
        {"replication.policy.class": "IdentityReplicationPolicy", "source.cluster.alias": "a"}
    )
    assert policy == IdentityReplicationPolicy(source="a")
    assert policy.remote_topic("a", "t") == policy.upstream_topic("t") == "t"
    assert policy.topic_source("t") == "a"
    assert policy.remote_topic("a", "heartbeats") == "a.heartbeats"
    assert policy.topic_source("heartbeats") is None
    assert policy.original_topic("b.a.heartbeats") == "heartbeats"
    assert policy.is_heartbeats_topic("b.a.heartbeats")
    assert not policy.is_heartbeats_topic("t")


def test_a_topic_that_has_been_on_the_target_is_a_cycle():
    """However many clusters ago; the identity policy sees only heartbeats' cycles."""
    policy = DefaultReplicationPolicy()
    assert policy.is_cycle("b.t", "b")
    assert policy.is_cycle("c.b.t", "b")
    assert not policy.is_cycle("c.t", "b")
    assert not policy.is_cycle("b", "b")
    assert not IdentityReplicationPolicy(source="a").is_cycle("b.t", "b")
    assert IdentityReplicationPolicy(source="a").is_cycle("b.heartbeats", "b")


def test_a_policy_of_ones_own_is_named_by_its_path_and_gets_the_configuration():
    """What it does not define is as by default."""
    props = {"replication.policy.class": f"{__name__}:Prefixed", "my.prefix": "from-"}
    policy = replication_policy(props)
    assert policy.remote_topic("a", "t") == "from-a/t"
    assert policy.is_internal("a.checkpoints.internal")


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("com.example.Policy", "Class com.example.Policy could not be found"),
        ("headrace.mirror.filters:DefaultTopicFilter", "is not a ReplicationPolicy"),
        ("headrace.mirror.policies:None_", "could not be loaded"),
    ],
)
def test_what_is_no_policy_is_refused(path: str, told: str):
    """The problem has the key and the reason."""
    with pytest.raises(ConfigError, match=told) as raised:
        replication_policy({"replication.policy.class": path})
    assert raised.value.problems[0][0] == "replication.policy.class"


@pytest.mark.parametrize(
    "name", ["DefaultReplicationPolicy", f"{JAVA}DefaultReplicationPolicy", None]
)
def test_javas_names_stand_for_the_policies_here(name: str | None):
    """With and without the package, and by default."""
    props = {} if name is None else {"replication.policy.class": name}
    assert DefaultReplicationPolicy() == replication_policy(props)


def test_an_alias_that_has_the_separator_in_it_is_a_problem():
    """So is one whose end runs into the separator."""
    assert alias_problem(DefaultReplicationPolicy(), "us.west") is not None
    assert alias_problem(DefaultReplicationPolicy("--"), "us-") is not None
    assert alias_problem(DefaultReplicationPolicy("--"), "us-west") is None
    assert alias_problem(IdentityReplicationPolicy(), "us.west") is None


@pytest.mark.parametrize(("separator", "is_valid"), [("", False), ("/", False), ("._-", True)])
def test_a_separator_is_made_of_characters_that_topics_may_have(separator: str, *, is_valid: bool):
    """An empty one separates nothing."""
    assert is_valid == (separator_problem(separator) is None)
