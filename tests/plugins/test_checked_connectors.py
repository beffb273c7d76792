"""What is told of configurations that are let in."""

from __future__ import annotations

import logging
import tracemalloc
from contextlib import nullcontext

import pytest

from headrace.connect.errors import ConfigError
from headrace.plugins import checked_worker, validated_connector, validated_connectors

WORKER = {"key.converter": "string", "value.converter": "string"}
PLAIN = {"name": "c", "connector.class": "file_stream", "file": "/nowhere", "topic": "t"}
CONNECTOR = {
    **PLAIN,
    "producer.override.interceptor.classes": "a.B",
    "producer.override.enable.idempotence": "false",
}


def test_producer_settings_without_effect_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Whoever set them would believe in them otherwise."""
    with caplog.at_level(logging.WARNING):
        validated_connector(CONNECTOR, checked_worker(WORKER))

    ignored, overruled = (record.getMessage() for record in caplog.records)
    assert "Connector c: producer.override.interceptor.classes has no effect" in ignored
    assert "The value 'false' for the 'enable.idempotence' property will be ignored" in overruled


def test_a_configuration_without_a_name_is_no_connector_without_a_name() -> None:
    """A record of the config topic names it in its key, and its status says which it is."""
    nameless = {key: value for key, value in CONNECTOR.items() if key != "name"}

    with pytest.raises(ConfigError) as caught:
        validated_connector(nameless, checked_worker(WORKER))

    assert str(caught.value).startswith(
        "The configuration of a connector, which does not name it, has 1 problem:\n  name: Missing required"
    )


def test_the_connector_of_an_unknown_key_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """Of several connectors, somebody has to find the one with the misspelt key."""
    with caplog.at_level(logging.WARNING):
        validated_connector({**CONNECTOR, "taks.max": "2"}, checked_worker(WORKER))

    assert (
        "Connector c: The configuration 'taks.max' was supplied but isn't a known config. "
        "Did you mean 'tasks.max'?" in caplog.messages
    )


def test_a_misspelt_key_of_a_converter_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    """In a connector's configuration and in a worker's; what another converter left behind is not misspelt."""
    with caplog.at_level(logging.WARNING):
        worker = checked_worker({**WORKER, "key.converter.encodign": "UTF-8"})
        converter = {"value.converter": "json", "value.converter.schema.enable": "false"}
        left = {"key.converter": "string", "key.converter.schemas.enable": "false"}
        validated_connector({**PLAIN, **converter, **left}, worker)

    reported = "configuration '{}' was supplied but isn't a known config."
    meant = " Did you mean 'value.converter.schemas.enable'?"
    assert [
        f"The {reported.format('key.converter.encodign')}",
        f"Connector c: The {reported.format('value.converter.schema.enable')}{meant}",
    ] == caplog.messages


@pytest.mark.parametrize(
    ("prefix", "first", "rest"),
    [
        ("taks.max.", "Did you mean 'tasks.max'?", "80 other configurations were supplied but"),
        ("key.converter.x", "isn't a known config", "80 other configurations were supplied but"),
        ("producer.override.x", "has no effect", "80 other settings have no effect"),
        ("consumer.override.x", "", "Each of 100 settings consumer.override.* has no effect"),
    ],
)
def test_of_many_unknown_keys_the_first_are_named(
    caplog: pytest.LogCaptureFixture, prefix: str, first: str, rest: str
) -> None:
    """And the others are counted: each line costs, and a request may have a hundred thousand keys."""
    many = {f"{prefix}{number}": "x" for number in range(100)}
    with caplog.at_level(logging.WARNING):
        validated_connector({**PLAIN, "key.converter": "string", **many}, checked_worker(WORKER))

    assert first in caplog.messages[0]
    assert len(caplog.messages) <= 21
    assert rest in caplog.messages[-1]


def test_nothing_is_looked_for_that_a_very_long_key_may_mean() -> None:
    """That takes forty times its size."""
    worker, size = checked_worker(WORKER), 1_000_000
    tracemalloc.start()
    try:
        validated_connector({**PLAIN, "x" * size: "y"}, worker)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 15 * size


def test_a_misspelt_required_key_is_pointed_at() -> None:
    """Beside the problem that it causes, as the warning that it is alone."""
    wrong = {"name": "c", "connector.class": "files", "topic": "t", "files.pth": "in", "mine": "1"}

    with pytest.raises(ConfigError) as refused:
        validated_connector(wrong, checked_worker(WORKER))

    reported = "The configuration '{}' was supplied but isn't a known config."
    assert (
        "The configuration of connector c has 1 problem:\n"
        '  files.path: Missing required configuration "files.path" which has no default value.\n'
        "and 2 warnings:\n"
        f"  {reported.format('files.pth')} Did you mean 'files.path'?\n"
        f"  {reported.format('mine')}"
    ) == str(refused.value)


def test_a_misspelt_address_of_kafka_is_refused() -> None:
    """The default would be another cluster than the one that was meant."""
    with pytest.raises(ConfigError) as refused:
        checked_worker({**WORKER, "bootstrap.server": "kafka:9092"})

    assert ["bootstrap.servers"] == [key for key, _ in refused.value.problems]
    assert "Did you mean 'bootstrap.servers'?" in str(refused.value)
    assert () == refused.value.warnings


def test_the_default_address_of_kafka_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Whoever forgot to name a cluster sees which one is taken."""
    with caplog.at_level(logging.INFO):
        checked_worker(WORKER)

    assert any("the default, localhost:9092, is used" in each for each in caplog.messages)


def test_the_problems_of_all_connectors_are_reported_together() -> None:
    """Nobody should have to start once for each mistake."""

    def unreadable() -> dict[str, object]:
        raise ConfigError([("file", "It cannot be read: No such file.")], where="b.json")

    configs = [
        lambda: {**CONNECTOR, "name": "a", "tasks.max": "x"},
        unreadable,
        lambda: CONNECTOR,
        lambda: CONNECTOR,
    ]
    with pytest.raises(ConfigError) as caught:
        validated_connectors(configs, checked_worker(WORKER))

    reported = str(caught.value)
    assert ["tasks.max", "file", "name"] == [key for key, _ in caught.value.problems]
    assert "The configuration of connector a has 1 problem:\n  tasks.max: " in reported
    assert "\nb.json has 1 problem:\n" in reported
    assert "\n  name: Connector c already exists" in reported


@pytest.mark.parametrize(
    ("key", "value", "reported"),
    [
        ("linger.ms", "abc", "Invalid value"),
        ("compression.type", "lzo", '"lzo" for configuration property "compression.type"'),
    ],
)
def test_producer_settings_are_checked_before_anything_starts(
    key: str, value: str, reported: str
) -> None:
    """By the names that the user gave, of a connector as of a worker."""
    for prefix, check in (
        (
            "producer.override.",
            lambda props: validated_connector(CONNECTOR | props, checked_worker(WORKER)),
        ),
        ("producer.", lambda props: checked_worker(WORKER | props)),
    ):
        with pytest.raises(ConfigError) as caught:
            check({f"{prefix}{key}": value})

        [(named, sentence)] = caught.value.problems
        assert f"{prefix}{key}" == named
        assert reported in sentence


def test_numbers_and_booleans_are_text() -> None:
    """As they are in a JSON file; a program need not write them in quotes."""
    worker = checked_worker({**WORKER, "headrace.slots": 1, "plugin.modules": ""})
    props = validated_connector(
        {**CONNECTOR, "tasks.max": 1, "key.converter.x": True}, worker
    ).props

    assert 1 == worker.slots
    assert ("1", "true") == (props["tasks.max"], props["key.converter.x"])


def test_what_is_no_value_is_refused_in_a_sentence() -> None:
    """A list or nothing at all has no text of its own."""
    with pytest.raises(
        ConfigError, match=r"connector c(.|\n)*topic: A conf(.|\n)*tasks\.max: Null"
    ):
        validated_connector(
            {**CONNECTOR, "tasks.max": None, "topic": ["t"]}, checked_worker(WORKER)
        )


def test_a_worker_s_problems_are_reported_with_their_place() -> None:
    """Such as its file, when it comes from one."""
    with pytest.raises(ConfigError, match=r"^worker\.json has 1 problem:"):
        checked_worker({**WORKER, "headrace.slots": "x"}, where="worker.json")
    with pytest.raises(ConfigError, match=r"^worker\.json has 1 problem:"):
        checked_worker({**WORKER, "producer.linger.ms": "x"}, where="worker.json")


def test_all_that_is_wrong_with_a_worker_is_reported_together() -> None:
    """Single settings, keys without effect, rules across settings, converters, clients, placeholders."""
    wrong = {
        "task.shutdown.graceful.timeout.ms": "abc",
        "config.storage.topic": "configs",
        "spark.speculation": "true",
        "key.converter": "nonsense",
        "producer.linger.ms": "x",
        "spark.app.name": "${no one:a:b}",
        "group.id": "${env:HEADRACE_TEST_LOST}",
        "config.providers": "env",
        "config.providers.env.class": "env",
        "listeners": "what",
    }

    with pytest.raises(ConfigError) as caught:
        checked_worker({**WORKER, **wrong}, also=lambda props: [("listeners", props["listeners"])])

    fine = {"spark.app.name", "config.providers", "config.providers.env.class"}
    assert sorted(wrong.keys() - fine) == sorted(key for key, _ in caught.value.problems)


@pytest.mark.parametrize(
    "wrong",
    [
        {"bootstrap.servers": "a", "producer.bootstrap.servers": "b:1"},
        {"headrace.slots": "x", "spark.master": "local[1]"},
        {"exactly.once.source.support": "x", "headrace.lease.ms": "60000"},
        {"value.converter": "x", "value.converter.schemas.enable": "x"},
    ],
)
def test_a_setting_that_cannot_be_read_is_reported_alone(wrong: dict[str, str]) -> None:
    """No rule complains that others do not fit its default, which no one gave."""
    with pytest.raises(ConfigError) as caught:
        checked_worker({**WORKER, **wrong})
    assert [next(iter(wrong))] == [key for key, _ in caught.value.problems]


FILES = {"name": "c", "connector.class": "files", "topic": "t"}
AVRO = {"value.converter": "avro", "value.converter.schema.registry.url": "http://localhost:1"}


@pytest.mark.parametrize(
    ("props", "reported"),
    [
        ({"files.path": "/in", "files.format": "jsonl"}, "JSON lines"),
        ({"files.path": "/in/a.avro,/in/*.ndjson.gz"}, "JSON lines"),
        ({"files.path": "/in/*.csv"}, "CSV rows without csv.schemas.enable=true"),
        ({"files.path": "/in/*.csv", "csv.schemas.enable": "true"}, None),
        ({"files.path": "/in/*.txt,/in/*.parquet"}, None),
        ({"files.path": "/in"}, None),
    ],
)
@pytest.mark.parametrize("of_worker", [True, False])
def test_a_converter_that_would_refuse_every_value_is_refused(
    props: dict[str, str], reported: str | None, *, of_worker: bool
) -> None:
    """Before anything starts, whoever named it; where only the files tell, their first record does."""
    worker = checked_worker({**WORKER, **AVRO} if of_worker else WORKER)
    given = {**FILES, **props, **({} if of_worker else AVRO)}
    if reported is None:
        assert "c" == validated_connector(given, worker).name
        return

    with pytest.raises(ConfigError) as caught:
        validated_connector(given, worker)

    [(key, sentence)] = caught.value.problems
    assert "value.converter" == key
    assert (
        f"The converter avro needs values with a schema, and there is none for {reported}."
        in sentence
    )


@pytest.mark.parametrize(("asked", "is_taken"), [("select", True), ("where", False)])
def test_what_sql_selects_has_a_schema(asked: str, *, is_taken: bool) -> None:
    """Whatever it was before; a condition alone changes nothing."""
    step = {"transforms": "s", "transforms.s.type": "SparkSql", f"transforms.s.{asked}": "value"}
    given = {**FILES, **AVRO, "files.path": "/in/*.jsonl", **step}
    refusal = nullcontext() if is_taken else pytest.raises(ConfigError, match="none for JSON lines")

    with refusal:
        validated_connector(given, checked_worker(WORKER))


def test_a_start_tells_all_that_is_wrong_at_once() -> None:
    """With the framework's settings, with the connector's own, and with what these have in common."""
    wrong = {
        **PLAIN,
        "tasks.max": "0",
        "errors.tolerance": "some",
        "producer.override.acks": "perhaps",
        "transforms": "one",
        "transforms.one.type": "Nowhere",
        "exactly.once.support": "required",
    }
    worker = checked_worker({**WORKER, "exactly.once.source.support": "disabled"})
    with pytest.raises(ConfigError) as refused:
        validated_connector({key: wrong[key] for key in wrong if key != "file"}, worker)

    named = {key for key, _ in refused.value.problems}
    assert {*wrong} - {"connector.class", "name", "topic", "transforms", "file"} == named
