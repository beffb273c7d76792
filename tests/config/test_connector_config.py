"""The settings of every connector."""

from __future__ import annotations

import pytest

from headrace.config.connector_config import ConnectorConfig
from headrace.config.rules import connector_problems, connector_warnings
from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import ConfigError
from headrace.converters import converter_problems
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy, PluginChoice

_LEAST = {"name": "c", "connector.class": "files"}
_WORKER = {
    "key.converter": "string",
    "value.converter": "json",
    "value.converter.schemas.enable": "false",
}


def _worker(props: dict[str, str] | None = None) -> WorkerConfig:
    return WorkerConfig.parse({**_WORKER, **(props or {})})


def _keys(props: dict[str, str], worker: dict[str, str] | None = None) -> list[str]:
    problems = connector_problems({**_LEAST, **props}, _worker(worker), converter_problems)
    return [key for key, _ in problems]


def test_a_name_and_a_class_are_enough():
    """Transactions last a second, exactly-once is requested, one task runs."""
    config = ConnectorConfig.parse(_LEAST)
    assert (1, BoundaryKind.INTERVAL, 1_000) == (
        config.tasks_max,
        config.boundary,
        config.interval_ms(_worker()),
    )
    assert not config.requires_exactly_once
    assert [] == _keys({})
    assert ["name", "connector.class"] == [key for key, _ in ConnectorConfig.problems({})]


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("", "String may not be empty"),
        (
            "a\x01b\x02c",
            "String may not contain control sequences but had the following ASCII chars: 1, 2",
        ),
    ],
)
def test_names_have_characters_that_can_be_seen(name: str, complaint: str):
    """The sentences are Connect's."""
    ((_, reported),) = ConnectorConfig.problems({**_LEAST, "name": name})
    assert reported.endswith(complaint)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tasks.max", "0"),
        ("transaction.boundary", "never"),
        ("transaction.boundary.interval.ms", "-1"),
        ("transaction.boundary.interval.ms", "60000"),
        ("exactly.once.support", "maybe"),
        ("headrace.max.records.per.second", "0"),
        ("offsets.storage.topic", ""),
        ("errors.tolerance", "some"),
        ("errors.log.enable", "perhaps"),
        ("errors.retry.timeout", "-2"),
        ("errors.retry.delay.max.ms", "0"),
        ("errors.deadletterqueue.topic.name", "dead letters"),
        ("errors.deadletterqueue.topic.name", ".."),
        ("errors.deadletterqueue.topic.replication.factor", "0"),
        ("errors.deadletterqueue.topic.partitions", "3"),
        ("value.converter", "Protobuf"),
        ("producer.override.acks", "1"),
    ],
)
def test_what_is_wrong_or_has_no_effect_is_refused(key: str, value: str):
    """The refusal names its key."""
    assert [key] == _keys({key: value})


def test_dead_letters_have_a_topic_of_their_own():
    """Among the records they would be read as such."""
    name = "errors.deadletterqueue.topic.name"

    assert [name] == _keys({name: "t", "topic": "t"})
    assert [] == _keys({name: "t-dead", "topic": "t"})


def test_words_are_taken_in_any_case():
    """As in Kafka Connect."""
    config = ConnectorConfig.parse(
        {**_LEAST, "transaction.boundary": "POLL", "exactly.once.support": "Required"}
    )
    assert BoundaryKind.POLL is config.boundary
    assert config.requires_exactly_once


def test_defaults_of_connect_may_be_spelt_out():
    """A key that has no effect yet does not hurt with Kafka Connect's own default."""
    spelt = {"errors.tolerance": "none", "errors.log.enable": "false"}
    assert [] == _keys({**spelt, "config.action.reload": "restart", "tasks.max.enforce": "true"})


def test_required_exactly_once_needs_a_worker_that_has_it():
    """The sentence is Connect's."""
    props = {**_LEAST, "exactly.once.support": "required"}
    worker = _worker({"exactly.once.source.support": "disabled"})
    ((key, reported),) = connector_problems(props, worker, converter_problems)
    assert "exactly.once.support" == key
    assert "This worker does not have exactly-once source support enabled." == reported


def test_converters_do_not_mix_settings():
    """A connector's own converter has only its own settings, the worker's only the worker's."""
    theirs = ConnectorConfig.parse({**_LEAST, "value.converter.schemas.enable": "true"})
    assert _worker().converter("value") == theirs.converter("value", _worker())
    own = ConnectorConfig.parse({**_LEAST, "value.converter": "json"})
    assert PluginChoice(class_name="json") == own.converter("value", _worker())


def test_settings_of_a_named_converter_are_validated():
    """Their keys come with the prefix."""
    props = {"value.converter": "json", "value.converter.schemas.enable": "x"}
    assert ["value.converter.schemas.enable"] == _keys(props)
    assert [] == _keys({"value.converter.schemas.enable": "x"})


def test_producer_overrides_win():
    """The connector's settings come after the worker's."""
    config = ConnectorConfig.parse({**_LEAST, "producer.override.linger.ms": "7"})
    worker = _worker({"producer.linger.ms": "5", "producer.batch.size": "9"})
    expected = {"bootstrap.servers": "localhost:9092", "linger.ms": "7", "batch.size": "9"}
    assert expected == config.producer(worker)


def test_a_transaction_outlives_its_interval_and_the_lease():
    """Both are measured against the connector's own transaction timeout."""
    longer = {"producer.override.transaction.timeout.ms": "90000"}
    assert [] == _keys({**longer, "transaction.boundary.interval.ms": "60000"})
    shorter = {"producer.override.transaction.timeout.ms": "10000"}
    assert ["producer.override.transaction.timeout.ms"] == _keys(shorter)
    assert [] == _keys(shorter, {"exactly.once.source.support": "disabled"})


def test_time_decides_about_commits():
    """The boundary's interval with exactly-once, the flush interval without."""
    config = ConnectorConfig.parse({**_LEAST, "transaction.boundary.interval.ms": "250"})
    assert 0.25 == config.commit_seconds(_worker())
    disabled = _worker({"exactly.once.source.support": "disabled"})
    assert 60.0 == config.commit_seconds(disabled)


@pytest.mark.parametrize(
    ("connector", "worker", "seconds"),
    [
        ({}, {"offset.flush.interval.ms": "5000"}, 1.0),
        ({"transaction.boundary": "interval"}, {"offset.flush.interval.ms": "5000"}, 5.0),
        ({"transaction.boundary": "Interval"}, {"offset.flush.interval.ms": "59999"}, 59.999),
        ({"transaction.boundary": "interval", "transaction.boundary.interval.ms": "7"}, {}, 0.007),
    ],
)
def test_an_interval_that_is_asked_for_is_the_workers_unless_it_is_said(
    connector: dict[str, str], worker: dict[str, str], seconds: float
):
    """As in Kafka Connect; without a word about boundaries it is a second."""
    config = ConnectorConfig.parse({**_LEAST, **connector})
    assert seconds == config.commit_seconds(_worker(worker))
    assert [] == _keys(connector, worker)
    assert () == connector_warnings(config, _worker(worker))


def test_an_interval_of_the_worker_fits_into_the_transaction():
    """Kafka Connect's defaults, a minute each, would let the broker abort; whoever says so is refused."""
    asked = {"transaction.boundary": "interval"}
    config = ConnectorConfig.parse({**_LEAST, **asked})
    assert 30.0 == config.commit_seconds(_worker())
    assert [] == _keys(asked)
    (warning,) = connector_warnings(config, _worker())
    assert "offset.flush.interval.ms (60000) does not fit" in warning
    assert warning.endswith("transactions end after 30000 ms.")
    longer = _worker({"producer.transaction.timeout.ms": "90000"})
    assert 60.0 == config.commit_seconds(longer)
    assert () == connector_warnings(config, longer)


def test_bad_records_fail_the_task_unless_something_else_is_said():
    """The defaults are Kafka Connect's."""
    assert ErrorPolicy() == ConnectorConfig.parse(_LEAST).errors
    assert (False, None, 3) == (
        ErrorPolicy().tolerate,
        ErrorPolicy().dead_letters,
        ErrorPolicy().replication,
    )


def test_what_happens_to_bad_records_is_kafka_connects_keys():
    """KIP-298's names for sinks."""
    config = ConnectorConfig.parse(
        {
            **_LEAST,
            "errors.tolerance": "all",
            "errors.log.enable": "true",
            "errors.log.include.messages": "true",
            "errors.deadletterqueue.topic.name": "dead",
            "errors.deadletterqueue.topic.replication.factor": "-1",
            "errors.deadletterqueue.context.headers.enable": "true",
        }
    )

    assert config.errors == ErrorPolicy(
        tolerate=True, dead_letters="dead", replication=-1, headers=True, log=True, log_content=True
    )


def test_a_misspelt_key_of_dead_letters_is_reported_with_those_that_there_are():
    """It would lose records otherwise, unseen."""
    with pytest.raises(ConfigError) as caught:
        ConnectorConfig.parse({**_LEAST, "errors.deadletterqueue.topc.name": "dead"})

    ((key, sentence),) = caught.value.problems
    assert "errors.deadletterqueue.topc.name" == key
    assert sentence.endswith(
        "If it is misspelt: supported are errors.deadletterqueue.context.headers.enable, "
        "errors.deadletterqueue.topic.name, errors.deadletterqueue.topic.replication.factor."
    )


@pytest.mark.parametrize(("reported", "seconds"), [("-1", None), ("0", 0.0), ("1500", 1.5)])
def test_a_retry_timeout_is_without_end_none_or_so_long(reported: str, seconds: float | None):
    """And 60 seconds lie between two tries at most, if nothing else is said."""
    config = ConnectorConfig.parse({**_LEAST, "errors.retry.timeout": reported})

    assert ErrorPolicy(retry_seconds=seconds, retry_delay_seconds=60.0) == config.errors


@pytest.mark.parametrize(
    ("props", "words"),
    [
        ({"errors.deadletterqueue.topic.name": "dead"}, "has no effect"),
        ({"errors.tolerance": "all"}, "are skipped"),
        ({"errors.log.include.messages": "true"}, "errors.log.enable is false"),
        ({"errors.tolerance": "all", "errors.deadletterqueue.topic.name": "dead"}, None),
        ({}, None),
    ],
)
def test_settings_that_lose_records_or_do_nothing_are_reported(
    props: dict[str, str], words: str | None
):
    """In the log, at the start."""
    reported = connector_warnings(ConnectorConfig.parse({**_LEAST, **props}), _worker())

    assert [] == list(reported) if words is None else words in reported[0]
