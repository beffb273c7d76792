"""What becomes of a MirrorMaker 2 file: workers of flows with their connectors, or all that is wrong with it."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from headrace.cli.mirror_flows import FlowWorker, MirrorFile, flow_workers
from headrace.cli.mirror_offsets import options_of
from headrace.config.spark_cores import machine_cores
from headrace.connect.errors import ConfigError
from headrace.mirror.dedicated import (
    CHECKPOINT_CONNECTOR,
    CONNECTORS,
    HEARTBEAT_CONNECTOR,
    SOURCE_CONNECTOR,
)

FILE = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
}


def read(folder: Path, props: dict[str, str]) -> MirrorFile:
    """A file with *props*."""
    path = folder / "mm2.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in props.items()))
    return MirrorFile.read(path)


def workers(folder: Path, props: dict[str, str], *, once: bool = False) -> dict[str, FlowWorker]:
    """The flows of a file with *props*."""
    file = read(folder, props)
    return {each.name: each for each in flow_workers(file, file.config.flows, once=once)}


def problems(folder: Path, props: dict[str, str]) -> dict[str, str]:
    """What is wrong with a file with *props*."""
    with pytest.raises(ConfigError) as raised:
        workers(folder, props)
    assert str(raised.value).startswith(f"{folder}/mm2.properties has ")
    return dict(raised.value.problems)


def test_a_flow_runs_on_its_target_with_its_connectors(tmp_path: Path):
    """Those that are enabled; their names are those of MirrorMaker's classes."""
    found = workers(tmp_path, {**FILE, "B->A.enabled": "true", "A.security.protocol": "SSL"})
    assert ["A->B", "B->A"] == list(found)
    there, back = found.values()
    assert ("b:9092",) == there.config.bootstrap_servers
    assert ("A-mm2", "B-mm2") == (there.config.group_id, back.config.group_id)
    assert SOURCE_CONNECTOR == there.connectors[0].name
    assert "SSL" == there.connectors[0].props["source.cluster.security.protocol"]
    assert not there.answers


def test_heartbeats_alone_are_a_flow_unless_it_is_to_end(tmp_path: Path):
    """They have no end."""
    props = {**FILE, "emit.heartbeats.enabled": "true"}
    found = workers(tmp_path, props)
    assert [*CONNECTORS] == [each.name for each in found["A->B"].connectors]
    assert [HEARTBEAT_CONNECTOR] == [each.name for each in found["B->A"].connectors]

    once = workers(tmp_path, props, once=True)
    assert ["A->B"] == list(once)
    assert [[SOURCE_CONNECTOR], [CHECKPOINT_CONNECTOR]] == [
        [each.name for each in phase] for phase in once["A->B"].phases
    ]


def test_what_only_a_distributed_worker_has_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """With a warning by the names in the file: it runs in MirrorMaker, so it runs here."""
    props = {
        **FILE,
        "B.rebalance.timeout.ms": "90000",
        "B.exactly.once.source.support": "preparing",
        "offset.storage.compression.type": "lz4",
        "status.storage.replication.factor": "1",
        "config.storage.replication.factor": "1",
    }
    with caplog.at_level(logging.WARNING):
        [flow] = workers(tmp_path, props).values()
    told = [each for each in caplog.messages if "no distributed worker" in each]
    keys = "B.exactly.once.source.support, B.rebalance.timeout.ms, offset.storage.compression.type"
    assert [f"A->B: left out, as there is no distributed worker here: {keys}"] == told
    assert flow.config.exactly_once


@pytest.mark.parametrize(
    ("given", "slots"),
    [
        ({}, 2),
        ({"emit.heartbeats.enabled": "true"}, 4),
        ({"B->A.enabled": "true", "A->C.enabled": "true", "C.bootstrap.servers": "c:1"}, 6),
        ({"tasks.max": "2"}, min(2, machine_cores()) + 1),
        ({"headrace.slots": "5"}, 5),
        ({"spark.master": "local[2]"}, 2),
    ],
)
def test_all_flows_have_the_same_slots(tmp_path: Path, given: dict[str, str], slots: int):
    """One for each task, if the file does not say how many, and at least two."""
    clusters = {"clusters": "A, B, C"} if "C.bootstrap.servers" in given else {}
    found = workers(tmp_path, {**FILE, **given, **clusters})
    assert {slots} == {each.config.slots for each in found.values()}


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("B.headrace.slots", "4", "give headrace.slots without a cluster"),
        ("B.spark.master", "local[4]", "All flows of the file have it"),
        ("B.state.file", "x.db", "--state"),
        ("B.headrace.lease.ms", "soon", "Not a number"),
        ("A->B.tasks.max", "none", "Not a number"),
        ("B.bootstrap.servers", "b", "Invalid url"),
        ("A.bootstrap.servers", "a", "Invalid url"),
        ("A->B.listeners", "what", "right format"),
        ("A->B.topics", "(", "("),
    ],
)
def test_problems_have_the_names_of_the_file(tmp_path: Path, key: str, value: str, told: str):
    """Of workers and of connectors, and nothing else is wrong."""
    found = problems(tmp_path, {**FILE, key: value})
    assert [key] == list(found)
    assert told in found[key]


def test_all_problems_are_reported_together(tmp_path: Path):
    """Those of all flows, each once."""
    props = {**FILE, "B->A.enabled": "true", "tasks.max": "no", "A->B.topics": "("}
    assert {"tasks.max", "A->B.topics"} == problems(tmp_path, props).keys()


WRONG_VALUES = {
    "offset.lag.max": "-5",
    "refresh.topics.interval.seconds": "0",
    "replication.factor": "0",
    "A->B.mirror.start": "yesterday",
}


@pytest.mark.parametrize(
    "earlier",
    [
        {"mirror.on.lots": "fail"},
        {"emit.heartbeats.enabled": "perhaps"},
        {"A->B.replication.policy.separator": "/"},
        {"B.headrace.slots": "4"},
        {"headrace.lease.ms": "soon", "B.offset.flush.interval.ms": "-1"},
        {"B.bootstrap.servers": "b"},
        {"B.bootstrap.servers": ""},
        {"B.security.protocol": "TLS"},
        {"tasks.max": "0", "A.security.protocol": "TLS"},
        {"transforms": "one", "transforms.one.type": "Nowhere"},
        {"A->B.topics": "(", "A.bootstrap.servers": "a"},
        {"A->B.listeners": "what"},
    ],
)
def test_no_problem_hides_those_of_other_values(tmp_path: Path, earlier: dict[str, str]):
    """Whichever is found first; each is told once."""
    with pytest.raises(ConfigError) as raised:
        workers(tmp_path, {**FILE, **earlier, **WRONG_VALUES})

    found = [key for key, _ in raised.value.problems]
    assert sorted(found) == sorted({*earlier, *WRONG_VALUES} - {"transforms"})


def test_a_misspelt_key_is_refused_or_warned_of(tmp_path: Path):
    """Refused where it is the mirror's own: no file of MirrorMaker has that."""
    file = read(tmp_path, {**FILE, "A->B.topics.exlude": "x"})
    [told] = file.warnings
    assert "Did you mean 'topics.exclude'?" in told
    with pytest.raises(ConfigError, match=r"mm2\.properties has 1 problem") as raised:
        read(tmp_path, {**FILE, "mirror.on.lots": "fail"})
    assert "Did you mean mirror.on.lost?" in str(raised.value)


def test_listeners_of_no_flow_are_warned_of(tmp_path: Path):
    """And that several nodes share nothing."""
    props = {
        **FILE,
        "listeners": "http://:8083",
        "dedicated.mode.enable.internal.rest": "true",
    }
    rest, internal = read(tmp_path, props).warnings
    assert "A->B.listeners" in rest
    assert "dedicated.mode.enable.internal.rest has no effect" in internal
    assert not workers(tmp_path, props)["A->B"].answers
    assert workers(tmp_path, {**FILE, "A->B.listeners": "http://:0"})["A->B"].answers


def test_values_are_taken_from_providers(tmp_path: Path):
    """As in MirrorMaker's file; what a connector stores is the placeholder."""
    (tmp_path / "secrets").write_text("servers=a:1\n")
    props = {
        **FILE,
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "A.bootstrap.servers": f"${{file:{tmp_path}/secrets:servers}}",
    }
    [flow] = workers(tmp_path, props).values()
    source = flow.connectors[0]
    assert "a:1" == source.props["source.cluster.bootstrap.servers"]
    assert "${file:" in source.given["source.cluster.bootstrap.servers"]


def test_flows_are_chosen_by_their_targets(tmp_path: Path):
    """One that is not there is an error that names the file."""
    file = read(tmp_path, {**FILE, "B->A.enabled": "true"})
    assert ["B->A"] == [each.name for each in file.towards(["A"])]
    with pytest.raises(ConfigError, match=r"mm2\.properties .*\n.* the target C"):
        file.towards(["C"])


def test_no_warning_calls_settings_of_clients_unknown(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    """Nor those of the other two connectors, which each of the three is given."""
    props = {
        **FILE,
        "emit.heartbeats.interval.seconds": "5",
        "A.consumer.isolation.level": "read_committed",
        "B.producer.linger.ms": "5",
        "ssl.endpoint.identification.algorithm": "https",
        "replication.policy.separator": "_",
    }
    with caplog.at_level(logging.WARNING):
        workers(tmp_path, props)
    assert [] == [each for each in caplog.messages if "known config" in each]


def test_the_command_that_reaches_a_flow_is_by_its_address_or_its_file(tmp_path: Path):
    """As a shell takes it."""
    file = read(tmp_path, {**FILE, "B->A.enabled": "true", "B->A.listeners": "http://:8084"})
    there, back = flow_workers(file, file.config.flows)

    assert f"--mirror {file.path} --flow 'A->B'" == (
        options_of(file.path, there, None, answers=False)
    )
    with_state = f"--mirror {file.path} --flow 'A->B' --state '/my states'"
    assert with_state == options_of(file.path, there, Path("/my states"), answers=False)
    assert "--url http://127.0.0.1:8084" == options_of(file.path, back, None, answers=True)
    assert options_of(file.path, back, None, answers=False).startswith("--mirror ")
