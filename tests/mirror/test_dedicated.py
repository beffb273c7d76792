"""The file of dedicated mode: what is refused, what is warned of, and what flows there are."""

from __future__ import annotations

import pytest

from headrace.connect.errors import ConfigError
from headrace.mirror.dedicated import (
    CHECKPOINT_CONNECTOR,
    CONNECTORS,
    GROUP_KEY,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
    dedicated_config,
)
from headrace.mirror.settings import MirrorSourceConfig

FILE = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
}
IDENTITY = {"replication.policy.class": "IdentityReplicationPolicy"}


def problems(props: dict[str, str], *repeated: str) -> list[tuple[str, str]]:
    """What is wrong with a file of *props*."""
    with pytest.raises(ConfigError) as raised:
        dedicated_config(props, repeated=repeated)
    return list(raised.value.problems)


def test_a_flow_has_three_connectors_and_a_worker_at_its_target():
    """And the flow back has heartbeats only."""
    there, back = dedicated_config(FILE).flows
    assert (there.name, back.name) == ("A->B", "B->A")
    assert list(there.active_connectors) == list(CONNECTORS)
    assert list(back.active_connectors) == [HEARTBEAT_CONNECTOR]
    assert there.worker["bootstrap.servers"] == "b:9092"
    config = MirrorSourceConfig.parse(there.connectors[SOURCE_CONNECTOR])
    assert (config.flow, config.group_id) == ("A->B", "connect-A.B")
    assert MirrorSourceConfig.problems(there.connectors[SOURCE_CONNECTOR]) == ()


@pytest.mark.parametrize("key", ["emit.checkpoints.enabled", "A->B.emit.offset-syncs.enabled"])
def test_a_flow_goes_on_without_checkpoints(key: str):
    """Where MirrorMaker's connector refuses to run, and copying goes on."""
    there = dedicated_config({**FILE, key: "false"}).flows[0]
    assert list(there.active_connectors) == [SOURCE_CONNECTOR, HEARTBEAT_CONNECTOR]


def test_without_heartbeats_there_are_only_the_flows_that_are_enabled():
    """Globally, or of one flow."""
    [flow] = dedicated_config({**FILE, "emit.heartbeats.enabled": "false"}).flows
    assert list(flow.active_connectors) == [SOURCE_CONNECTOR, CHECKPOINT_CONNECTOR]
    [flow] = dedicated_config({**FILE, "B->A.emit.heartbeats.enabled": "false"}).flows
    assert list(flow.active_connectors) == list(CONNECTORS)


def test_the_most_special_setting_wins():
    """The flow's before the cluster's before the file's."""
    props = {
        **FILE,
        "topics": "all",
        "security.protocol": "PLAINTEXT",
        "A.security.protocol": "SSL",
        "A->B.topics": "some",
    }
    there, back = dedicated_config(props).flows
    assert there.connectors[SOURCE_CONNECTOR]["topics"] == "some"
    assert back.connectors[SOURCE_CONNECTOR]["topics"] == "all"
    assert there.connectors[SOURCE_CONNECTOR]["source.cluster.security.protocol"] == "SSL"
    assert there.worker["security.protocol"] == "PLAINTEXT"


def test_placeholders_stay_what_they_are_and_providers_go_to_all():
    """The worker replaces them."""
    props = {
        **FILE,
        "config.providers": "file",
        "config.providers.file.class": "FileConfigProvider",
        "B.sasl.jaas.config": "${file:/secrets:b}",
    }
    [there, _] = dedicated_config(props).flows
    assert there.worker["sasl.jaas.config"] == "${file:/secrets:b}"
    assert there.connectors[SOURCE_CONNECTOR]["target.producer.sasl.jaas.config"] == (
        "${file:/secrets:b}"
    )
    assert there.worker["config.providers"] == "file"


def test_a_standalone_worker_has_no_topics_for_configurations_and_statuses():
    """Nor what is for connectors."""
    [there, _] = dedicated_config({**FILE, "tasks.max": "2", **IDENTITY}).flows
    assert "config.storage.topic" in there.worker
    assert not [
        key
        for key in there.standalone_worker
        if key.startswith(("config.", "status.", "tasks", "replication."))
    ]
    assert there.standalone_worker["offset.storage.topic"] == "mm2-offsets.A.internal"


def test_settings_of_the_process_are_told_apart():
    """There is one Spark session for all flows."""
    props = {**FILE, "spark.master": "local[4]", "headrace.slots": "4", "listeners": "http://:1"}
    config = dedicated_config(props)
    assert set(config.process) == {"spark.master", "headrace.slots", "listeners"}
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("estern.client.id", "'eastern.client.id'"),
        ("estern.client.rack", "'western.client.rack' or 'eastern.client.rack'"),
        ("estern->western.topics", "'eastern->western.topics'"),
        ("eastern->westren.topics", "'eastern->western.topics'"),
        ("southern.client.id", None),
        ("eastern->north.topics", None),
        ("eastern->western.colour", None),
        ("estern", None),
    ],
)
def test_a_misspelt_alias_is_named_with_the_key_that_was_meant(key: str, meant: str | None):
    """Where one of the file resembles it, and does not have the key already."""
    file = {
        "clusters": "eastern, western",
        "eastern.bootstrap.servers": "a:1",
        "western.bootstrap.servers": "b:1",
        "western.client.id": "b",
        "eastern->western.enabled": "true",
    }
    [warning] = dedicated_config({**file, key: "x"}).warnings
    assert key in warning
    assert ("Did you mean" in warning) == (meant is not None)
    assert meant is None or warning.endswith(f" Did you mean {meant}?")


def test_a_misspelt_address_is_named_where_it_is_missing():
    """Beside the problem that there is none."""
    props = {
        "clusters": "eastern, B",
        "estern.bootstrap.servers": "a:1",
        "B.bootstrap.servers": "b:1",
    }
    with pytest.raises(ConfigError, match=r"Did you mean 'eastern\.bootstrap\.servers'"):
        dedicated_config({**props, "eastern->B.enabled": "true"})


def test_keys_that_have_no_effect_are_named_in_warnings():
    """With the key that was meant, if there is one that it resembles."""
    props = {**FILE, "topic": "x", "A->B.topics.exlude": "x", "A->C.topics": "x", "colour": "red"}
    warnings = dedicated_config(props).warnings
    assert len(warnings) == 4
    assert "Did you mean 'topics'?" in warnings[0]
    assert "Did you mean 'topics.exclude'?" in warnings[1]
    assert "clusters does not have C" in warnings[2]
    assert "isn't a known config." in warnings[3]


@pytest.mark.parametrize(
    "key",
    [
        "A->B.transforms.x.type",
        "A->B.producer.override.linger.ms",
        "A->B.source.consumer.fetch.max.bytes",
        "A->B.exactly.once.support",
        "A.consumer.isolation.level",
        "B.exactly.once.source.support",
        "offset.storage.replication.factor",
        "replication.policy.mine",
        "A->B.mirror.start",
        "mirror.on.lost",
    ],
)
def test_keys_that_have_an_effect_are_not_warned_of(key: str):
    """Of connectors, workers, clients and the mirror."""
    value = "fail" if key == "mirror.on.lost" else "earliest"
    assert dedicated_config({**FILE, key: value}).warnings == ()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("A->B.mirror.on.lots", "mirror.on.lost"),
        ("mirror.group", "There is no such setting"),
        ("A->B.transaction.producer.enable", "transaction.producer.enabled"),
        ("partition.discovery.intervall.ms", "partition.discovery.interval.ms"),
        ("A.mirror.start", "There is no such setting"),
    ],
)
def test_a_misspelt_key_of_the_mirrors_own_is_refused(key: str, meant: str):
    """MirrorMaker has no such keys, so that it cannot be one of a file that ran before."""
    [(found, told)] = problems({**FILE, key: "x"})
    assert found == key
    assert meant in told


@pytest.mark.parametrize("heartbeats", ["true", "false"])
@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("A->B.enabeld", "Did you mean A->B.enabled?"),
        ("A->B.enable", "Did you mean A->B.enabled?"),
        ("a->B.enabled", "between A, B?"),
    ],
)
def test_a_file_that_would_copy_nothing_for_a_misspelt_key_is_refused(
    key: str, meant: str, heartbeats: str
):
    """Heartbeats alone are not what was meant; where another flow is enabled, the file is MirrorMaker's to take."""
    given = {**FILE, "emit.heartbeats.enabled": heartbeats, key: "true"}
    del given["A->B.enabled"]

    [(found, told)] = problems(given)
    assert (key, True) == (found, meant in told)
    assert dedicated_config({**given, "B->A.enabled": "true"}).warnings


def test_a_file_of_heartbeats_alone_is_taken():
    """MirrorMaker runs it."""
    assert len(dedicated_config({**FILE, "A->B.enabled": "false"}).flows) == 2


def test_a_flow_that_is_named_twice_is_refused():
    """By an alias that is there twice, or by a line that is."""
    assert [key for key, _ in problems({**FILE, "clusters": "A, B, A"})] == ["clusters"]
    assert [key for key, _ in problems(FILE, "A->B.enabled", "colour")] == ["A->B.enabled"]


@pytest.mark.parametrize(
    ("clusters", "told"),
    [
        ("", "No clusters"),
        ("A", "No source->target"),
        ("A,A->B", "no alias"),
        ("A,A.B", "Keys of A.B"),
    ],
)
def test_aliases_that_cannot_be_told_apart_are_refused(clusters: str, told: str):
    """As are files without flows."""
    assert told in str(problems({**FILE, "clusters": clusters}))


def test_an_alias_with_the_separator_in_it_is_refused():
    """Whether it is the default one or another."""
    dotted = {
        "clusters": "us.west, B",
        "us.west.bootstrap.servers": "a:9092",
        "B.bootstrap.servers": "b:9092",
        "us.west->B.enabled": "true",
    }
    assert "us.west" in str(problems(dotted))
    assert dedicated_config({**dotted, "replication.policy.separator": "__"}).flows
    dashed = {**FILE, "clusters": "A-1, B", "A-1.bootstrap.servers": "a:9092"}
    dashed |= {"A-1->B.enabled": "true", "replication.policy.separator": "-"}
    del dashed["A->B.enabled"], dashed["A.bootstrap.servers"]
    assert "A-1" in str(problems(dashed))


def test_a_separator_that_separates_nothing_is_refused():
    """The key says so, as the file has it."""
    for key in ("replication.policy.separator", "A->B.replication.policy.separator"):
        [(named, _)] = problems({**FILE, key: ""})
        assert key == named


def test_a_cluster_without_an_address_is_refused():
    """Unless there is one for all."""
    nowhere = {key: value for key, value in FILE.items() if key != "B.bootstrap.servers"}
    assert [key for key, _ in problems(nowhere)] == ["B.bootstrap.servers"]
    assert dedicated_config({**nowhere, "bootstrap.servers": "b:9092"}).flows


def test_the_same_names_both_ways_are_refused_unless_topics_differ():
    """Each record would come back and go on without end."""
    both = {**FILE, **IDENTITY, "B->A.enabled": "true"}
    assert [key for key, _ in problems(both)] == ["A->B.replication.policy.class"]
    half = {**both, "A->B.topics": "a.*"}
    assert dedicated_config({**half, "B->A.topics": "b.*"}).flows
    assert problems({**half, "B->A.topics": "b.*, a1", "A->B.topics": "a1, a2"})
    assert dedicated_config({**both, "replication.policy.class": "${env:POLICY}"}).flows


def test_the_same_names_within_one_cluster_are_refused():
    """Under two aliases."""
    told = problems({**FILE, **IDENTITY, "B.bootstrap.servers": "a:9092"})
    assert [key for key, _ in told] == ["replication.policy.class"]


def test_a_switch_that_is_no_boolean_is_refused():
    """It would be taken for false."""
    assert problems({**FILE, "A->B.enabled": "yes"}) == [
        ("A->B.enabled", "yes is neither true nor false.")
    ]


def test_flows_are_chosen_by_their_targets():
    """As --clusters does; one that is not there is an error."""
    config = dedicated_config(FILE)
    assert [each.name for each in config.towards(["A"])] == ["B->A"]
    assert len(config.towards([])) == 2
    with pytest.raises(ConfigError, match="No flow of the file has the target C"):
        config.towards(["A", "C"])


def test_groups_of_two_sources_at_one_target_are_not_the_same():
    """Their connectors have the same name."""
    props = {**FILE, "clusters": "A, B, C", "C.bootstrap.servers": "c:1", "C->B.enabled": "true"}
    flows = {each.name: each for each in dedicated_config(props).flows}
    groups = [flows[name].connectors[SOURCE_CONNECTOR][GROUP_KEY] for name in ("A->B", "C->B")]
    assert groups == ["connect-A.B", "connect-C.B"]


def test_secrets_are_not_shown():
    """In what is logged of a file."""
    props = {**FILE, "A.sasl.jaas.config": "secret"}
    assert "secret" not in repr(dedicated_config(props))


def test_a_key_that_is_there_twice_is_warned_of():
    """Java takes the last one without a word."""
    [told] = dedicated_config(FILE, repeated=["topics"]).warnings
    assert told == "The file has 'topics' more than once: the last value counts."


def test_requests_are_answered_by_the_worker_of_the_flow_that_says_so():
    """Its connectors know nothing of it, nor do other flows."""
    props = {**FILE, "A->B.listeners": "http://:1", "A->B.rest.advertised.port": "2"}
    config = dedicated_config(props)
    there, back = config.flows
    assert there.standalone_worker["listeners"] == "http://:1"
    assert there.standalone_worker["rest.advertised.port"] == "2"
    assert "listeners" not in back.worker
    assert "listeners" not in there.connectors[SOURCE_CONNECTOR]
    assert config.warnings == ()


@pytest.mark.parametrize(
    ("key", "given", "named"),
    [
        ("bootstrap.servers", {}, "B.bootstrap.servers"),
        ("bootstrap.servers", {"bootstrap.servers"}, "bootstrap.servers"),
        ("source.cluster.bootstrap.servers", {"A.bootstrap.servers"}, "A.bootstrap.servers"),
        ("source.consumer.security.protocol", {"A.security.protocol"}, "A.security.protocol"),
        ("source.consumer.max.poll.records", {}, "A.consumer.max.poll.records"),
        ("target.admin.ssl.key.password", {"ssl.key.password"}, "ssl.key.password"),
        ("headrace.lease.ms", {"headrace.lease.ms", "A.x"}, "headrace.lease.ms"),
        ("topics", {"A->B.topics", "topics"}, "A->B.topics"),
        ("tasks.max", {"tasks.max"}, "tasks.max"),
        ("replication.factor", {}, "A->B.replication.factor"),
    ],
)
def test_keys_are_named_as_the_file_has_them(key: str, given: set[str], named: str):
    """Or as it could have them."""
    there, _ = dedicated_config(FILE).flows
    assert there.key_in_file(key, given) == named
