"""A worker's settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.distributed_config import DistributedConfig
from headrace.config.rules import worker_problems
from headrace.config.state_file import state_path
from headrace.config.worker_config import WorkerConfig, worker_warnings
from headrace.connect.errors import ConfigError
from headrace.converters import converter_problems
from headrace.task.connector_spec import Delivery, PluginChoice

_LEAST = {"key.converter": "string", "value.converter": "json"}


def _worker(**more: str) -> WorkerConfig:
    return WorkerConfig.parse({**_LEAST, **_dotted(more)})


def _dotted(props: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in props.items()}


def test_converters_are_all_that_is_needed():
    """Everything else has a default, and exactly-once is on."""
    worker = _worker()
    assert ("localhost:9092",) == worker.bootstrap_servers
    assert Delivery.EXACTLY_ONCE is worker.delivery
    assert "w-offsets" == worker.offsets_topic("w")
    assert {"spark.master": "local[2]"} == worker.spark()
    missing = [key for key, _ in WorkerConfig.problems({})]
    assert ["key.converter", "value.converter"] == missing


def test_exactly_once_is_switched_off_only_on_purpose():
    """``disabled`` is obeyed, ``enabled`` is the default, ``preparing`` is refused."""
    assert Delivery.AT_LEAST_ONCE is _worker(exactly_once_source_support="disabled").delivery
    assert _worker() == _worker()
    problems = WorkerConfig.problems({**_LEAST, "exactly.once.source.support": "preparing"})
    assert ["exactly.once.source.support"] == [key for key, _ in problems]


def test_a_worker_without_exactly_once_is_reported():
    """It is obeyed, and not what headrace is for."""
    [reported] = worker_warnings({**_LEAST, "exactly.once.source.support": "disabled"})
    assert "records may be sent to Kafka again" in reported
    assert () == worker_warnings({**_LEAST, "exactly.once.source.support": "enabled"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.speculation", "true"),
        ("headrace.lease.ms", "60000"),
        ("headrace.slots", "0"),
        ("offset.storage.partitions", "0"),
        ("offset.storage.replication.factor", "-2"),
        ("config.storage.topic", "configs"),
        ("offset.storage.file.filename", ""),
        ("offset.storage.cleanup.policy", "delete"),
        ("metrics.num.samples", "3"),
    ],
)
def test_what_cannot_be_honoured_is_refused(key: str, value: str):
    """The refusal names its key."""
    assert [key] == [each for each, _ in WorkerConfig.problems({**_LEAST, key: value})]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("config.storage.replication.factor", "1"),
        ("connect.protocol", "eager"),
        ("heartbeat.interval.ms", "1000"),
        ("inter.worker.key.size", "256"),
        ("rebalance.timeout.ms", "1000"),
        ("scheduled.rebalance.max.delay.ms", "0"),
        ("session.timeout.ms", "20000"),
        ("status.storage.min.insync.replicas", "2"),
    ],
)
def test_what_only_a_group_has_is_refused_with_the_command_that_takes_it(key: str, value: str):
    """It is supported, and its default does not matter."""
    [(_, told)] = WorkerConfig.problems({**_LEAST, key: value})
    assert "'headrace worker'" in told
    assert "not supported" not in told
    assert "default" not in told


@pytest.mark.parametrize(
    "key",
    [
        each.name
        for each in DistributedConfig.settings()
        if each.name.startswith("headrace.")
        and each.name not in {one.name for one in WorkerConfig.settings()}
    ],
)
def test_what_only_headraces_groups_have_has_no_effect_on_a_single_worker(key: str):
    """It is no misspelt key, and its command is named."""
    [warning] = worker_warnings({**_LEAST, key: "1"})
    assert warning.startswith(f"{key} has no effect here: it is for the workers of a group")
    assert "'headrace worker'" in warning


def test_what_no_worker_has_is_not_attributed_to_a_group():
    """Only Kafka Connect's own workers have it."""
    [(_, told)] = WorkerConfig.problems({**_LEAST, "worker.sync.timeout.ms": "1"})
    assert "not supported yet; only its default (3000) can be set." in told


def test_defaults_of_connect_may_be_spelt_out():
    """A key that has no effect yet does not hurt with Kafka Connect's own default."""
    spelt = {"connect.protocol": "sessioned", "topic.creation.enable": "true", "plugin.path": ""}
    assert () == WorkerConfig.problems({**_LEAST, **spelt})
    assert () == worker_warnings({**_LEAST, **spelt})


@pytest.mark.parametrize("value", ["only_scan", "HYBRID_FAIL", "service_load"])
def test_every_way_to_discover_plugins_is_taken(value: str):
    """Only words that Kafka Connect does not know are refused."""
    assert () == WorkerConfig.problems({**_LEAST, "plugin.discovery": value})
    assert WorkerConfig.problems({**_LEAST, "plugin.discovery": f"{value}s"})


def test_the_lease_ends_before_the_transaction():
    """A longer transaction allows a longer lease."""
    assert (
        60_000
        == _worker(headrace_lease_ms="60000", producer_transaction_timeout_ms="90000").lease_ms
    )


def test_a_master_and_a_remote_exclude_each_other():
    """Spark is reached in one way."""
    there = {"headrace.channel.listener": "worker:7070"}
    props = {**_LEAST, **there, "spark.master": "local[4]", "spark.remote": "sc://host"}
    assert ["spark.remote"] == [key for key, _ in WorkerConfig.problems(props)]
    remote = _worker(spark_remote="sc://host", headrace_channel_listener="worker:7070")
    assert {"spark.remote": "sc://host"} == remote.spark()
    assert "local[4]" == _worker(spark_master="local[4]").spark()["spark.master"]


@pytest.mark.parametrize(
    ("listener", "protocol", "is_encrypted"),
    [
        ("127.0.0.1:0", None, False),
        ("localhost:7070", None, False),
        ("worker.example.org:7070", None, True),
        ("10.0.0.8:7070", None, True),
        ("10.0.0.8:7070", "PLAINTEXT", False),
        ("127.0.0.1:0", "SSL", True),
    ],
)
def test_what_others_could_read_is_encrypted(
    listener: str, protocol: str | None, *, is_encrypted: bool
):
    """In the clear only by a setting, or where no one else is."""
    given = {} if protocol is None else {"headrace_channel_security_protocol": protocol}

    assert is_encrypted == _worker(headrace_channel_listener=listener, **given).encrypts_channel


@pytest.mark.parametrize(
    ("place", "listener", "is_refused"),
    [
        ("spark://one:7077,two:7077", "127.0.0.1:0", True),
        ("yarn", "localhost:7070", True),
        ("k8s://https://127.0.0.1:6443", "0.0.0.0:7070", True),
        ("spark://10.0.0.7:7077", "[::]:7070", True),
        ("spark://one:7077", "worker.example.org:7070", False),
        ("spark://one:7077", "10.0.0.8:7070", False),
        ("spark://localhost:7077", "127.0.0.1:0", False),
        ("spark://[::1]:7077", "127.0.0.1:0", False),
        ("local-cluster[2,1,1024]", "127.0.0.1:0", False),
    ],
)
def test_tasks_elsewhere_have_to_reach_the_worker(place: str, listener: str, *, is_refused: bool):
    """Each of them would be lost after half a minute."""
    given = {"spark.master": place, "headrace.channel.listener": listener}
    problems = WorkerConfig.problems({**_LEAST, **given})

    assert [key for key, _ in problems] == ["headrace.channel.listener"] * is_refused
    remote = {"spark.remote": "sc://spark.example.org:15002"}
    assert ["headrace.channel.listener"] == [
        key for key, _ in WorkerConfig.problems({**_LEAST, **remote})
    ]


def test_a_misspelt_master_is_refused_before_anything_starts():
    """Spaces around one are not part of it, as in Kafka Connect; they are not passed to Spark either."""
    ((key, sentence),) = WorkerConfig.problems({**_LEAST, "spark.master": "locl[2]"})
    assert "spark.master" == key
    assert "does not know the master locl[2]" in sentence
    assert {"spark.master": "local[2]"} == _worker(spark_master=" local[2] ").spark()


def test_a_local_spark_with_fewer_cores_than_slots_is_refused():
    """The slots that do not fit would wait for ever; more cores than slots are no one's trouble."""
    small = {**_LEAST, "headrace.slots": "3", "spark.master": "local[2]"}
    ((key, sentence),) = WorkerConfig.problems(small)
    assert "spark.master" == key
    assert "make it local[3], or lower headrace.slots to 2" in sentence
    assert () == WorkerConfig.problems({**small, "spark.master": "local[4]"})
    assert () == WorkerConfig.problems({**small, "spark.master": "spark://127.0.0.1:7077"})
    remote = {**_LEAST, "spark.remote": "local[1]"}
    assert ["spark.remote"] == [key for key, _ in WorkerConfig.problems(remote)]


def test_prefixes_reach_their_clients():
    """Tasks' clients take prefixed keys, the worker's own the plain ones, as in Kafka Connect."""
    worker = _worker(
        bootstrap_servers="a:1, b:2",
        producer_linger_ms="5",
        security_protocol="SSL",
        value_converter_schemas_enable="false",
    )
    assert {"bootstrap.servers": "a:1,b:2", "linger.ms": "5"} == worker.client("producer")
    assert {"bootstrap.servers": "a:1,b:2", "security.protocol": "SSL"} == worker.connection()
    json = PluginChoice(class_name="json", config={"schemas.enable": "false"})
    assert json == worker.converter("value")


def test_what_reaches_kafka_is_one_list():
    """Keys of librdkafka's own are understood without a prefix, too; a misspelt address is reported."""
    worker = _worker(broker_address_family="v4")
    assert {"bootstrap.servers": "localhost:9092", "broker.address.family": "v4"} == (
        worker.connection()
    )
    assert () == worker_warnings(worker.originals)
    assert 1 == len(worker_warnings({**_LEAST, "bootstrap.server": "a:1"}))


def test_unknown_keys_are_warned_about():
    """A misspelt key is reported, a key that is passed on is not."""
    props = {**_LEAST, "grup.id": "x", "spark.ui.enabled": "false", "sasl.mechanism": "PLAIN"}
    assert (
        "The configuration 'grup.id' was supplied but isn't a known config. Did you mean 'group.id'?",
    ) == worker_warnings(props)


def test_a_distributed_workers_file_is_refused_in_one_sentence():
    """It says that there is no distributed mode yet, and which of its keys to leave out; others are judged."""
    problems = dict(
        WorkerConfig.problems(
            {
                **_LEAST,
                "bootstrap.servers": "localhost:9092",
                "group.id": "connect-cluster",
                "offset.storage.topic": "connect-offsets",
                "offset.storage.replication.factor": "1",
                "config.storage.topic": "connect-configs",
                "config.storage.replication.factor": "1",
                "status.storage.topic": "connect-status",
                "status.storage.replication.factor": "1",
                "offset.flush.interval.ms": "10000",
                "metrics.num.samples": "3",
            }
        )
    )

    assert {"config.storage.topic", "metrics.num.samples"} == problems.keys()
    reported = problems["config.storage.topic"]
    assert "'headrace worker' starts one" in reported
    assert (
        "leave out config.storage.replication.factor, config.storage.topic, "
        "status.storage.replication.factor, status.storage.topic."
    ) in reported


def test_internal_converters_are_ignored_as_in_connect():
    """They are told about, and nothing else happens."""
    props = {**_LEAST, "internal.key.converter": "x", "internal.key.converter.schemas.enable": "y"}
    assert () == WorkerConfig.problems(props)
    (warning,) = worker_warnings(props)
    assert warning.startswith("internal.key.converter is ignored")


def test_converters_and_producers_are_validated_with_the_worker():
    """What slots would stumble over is found before anything starts."""
    worker = _worker(key_converter="nope", value_converter_schemas_enable="x", producer_acks="1")
    problems = worker_problems(worker, converter_problems)
    keys = ["key.converter", "value.converter.schemas.enable", "producer.acks"]
    assert keys == [key for key, _ in problems]


def test_secrets_are_not_shown():
    """The text of a configuration leaves out what was passed on."""
    assert "hunter2" not in repr(_worker(producer_sasl_password="hunter2"))


def test_each_worker_file_has_a_state_file_of_its_own():
    """By default below the user's state, never beside the worker file."""
    home = {"HOME": "/home/a"}
    one = state_path(_worker(), Path("/etc/headrace/one.json"), home)
    two = state_path(_worker(), Path("/etc/other/one.json"), home)
    assert Path("/home/a/.local/state/headrace") == one.parent == two.parent
    assert one != two
    elsewhere = state_path(_worker(), Path("/etc/one.json"), {**home, "XDG_STATE_HOME": "/s"})
    assert Path("/s/headrace") == elsewhere.parent


def test_a_relative_state_file_lies_beside_the_worker_file():
    """A path that is given is taken from the worker file's folder."""
    worker = _worker(state_file="my.db")
    assert Path("/etc/my.db") == state_path(worker, Path("/etc/one.json"), {})
    absolute = _worker(state_file="/var/my.db")
    assert Path("/var/my.db") == state_path(absolute, Path("/etc/one.json"), {})


@pytest.mark.parametrize("servers", ["notaport", "a:1,b", "a:", ":9092", "a:x", "a b:1", ""])
def test_brokers_are_named_with_their_ports(servers: str):
    """The client would take 9092, or wait for a broker that no one meant."""
    with pytest.raises(
        ConfigError, match=r"^The configuration has 1 problem:\n  bootstrap\.servers:"
    ):
        _worker(bootstrap_servers=servers)


@pytest.mark.parametrize("servers", ["a:1", "a:1, b.c:2", "[::1]:9092", "SSL://a-b_c:1"])
def test_every_form_of_an_address_is_taken(servers: str):
    """As Kafka's clients take them."""
    assert servers.split(", ") == list(_worker(bootstrap_servers=servers).bootstrap_servers)
