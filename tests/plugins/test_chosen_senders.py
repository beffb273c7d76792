"""What sends a connector's records: as its configuration says, or by what its producer's settings need."""

from __future__ import annotations

import pytest

from headrace.config.connector_config import ConnectorConfig
from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import ConfigError
from headrace.plugins.connector_spec import ChosenSender, chosen_sender
from headrace.plugins.validation import validated_connector
from headrace.plugins.worker_validation import checked_worker
from headrace.task.connector_spec import SenderKind
from plugins.judged import errors, run_spec, validated, validator

CONNECTOR = {"name": "c", "connector.class": "file_stream", "file": "/nowhere", "topic": "t"}
WORKER = {"key.converter": "string", "value.converter": "string"}
RANDOM = {"producer.override.partitioner": "random"}
BY_WIRE = {"headrace.sender": "wire"}


def config(**settings: str) -> ConnectorConfig:
    """A connector's, with underscores for dots."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    return ConnectorConfig.parse({**CONNECTOR, **given})


@pytest.fixture
def worker() -> WorkerConfig:
    """One that converts to text."""
    return checked_worker(WORKER)


def test_a_connector_that_names_no_sender_is_sent_by_the_wire(worker: WorkerConfig) -> None:
    """There is nothing to say about it."""
    assert ChosenSender(kind=SenderKind.WIRE) == chosen_sender(config(), worker)
    spec = run_spec(validator({}), CONNECTOR)
    assert (SenderKind.WIRE, None) == (spec.sender, spec.not_by_wire)


def test_a_group_is_always_the_wires(worker: WorkerConfig) -> None:
    """Whatever the connector names; what the wire cannot have of its settings is known."""
    named = config(headrace_sender="client", producer_override_retries="3")
    chosen = chosen_sender(named, worker, has_group=True)

    assert SenderKind.WIRE is chosen.kind
    assert "retries: " in (chosen.reason or "")


@pytest.mark.parametrize("named", SenderKind)
def test_what_the_connector_names_sends(worker: WorkerConfig, named: SenderKind) -> None:
    """Although the wire could."""
    assert ChosenSender(kind=named) == chosen_sender(config(headrace_sender=named.value), worker)


def test_the_wire_sends_if_it_can(worker: WorkerConfig) -> None:
    """Otherwise the client library does, with the settings that are the reason and without secrets."""
    login = {
        "producer_override_security_protocol": "SASL_PLAINTEXT",
        "producer_override_sasl_mechanism": "PLAIN",
        "producer_override_sasl_username": "me",
        "producer_override_sasl_password": "hush",
    }
    can = chosen_sender(config(**login), worker)
    cannot = chosen_sender(config(**login, producer_override_partitioner="random"), worker)

    assert ChosenSender(kind=SenderKind.WIRE) == can
    assert SenderKind.CLIENT is cannot.kind
    assert cannot.reason is not None
    assert "partitioner: " in cannot.reason
    assert "hush" not in cannot.reason


def test_a_wire_that_cannot_is_refused_at_the_setting() -> None:
    """By a validation, and before anything is created."""
    found = errors(validated({**BY_WIRE, **RANDOM, "producer.override.retries": "3"}))

    assert ["producer.override.partitioner", "producer.override.retries"] == sorted(found)
    assert "headrace.sender" in str(found)
    with pytest.raises(ConfigError, match=r"producer\.override\.partitioner: .*headrace\.sender"):
        validated_connector({**CONNECTOR, **BY_WIRE, **RANDOM}, checked_worker(WORKER))
    assert {} == errors(validated(RANDOM))


def test_a_wire_that_cannot_have_the_workers_settings_is_refused() -> None:
    """At the connector's own key: the other one is not in its configuration."""
    worker = checked_worker({**WORKER, "producer.partitioner": "random"})

    with pytest.raises(ConfigError, match=r"headrace\.sender: .*partitioner"):
        validated_connector({**CONNECTOR, **BY_WIRE}, worker)


def test_a_setting_that_is_wrong_for_both_is_reported_once() -> None:
    """As the client library says it."""
    found = errors(validated({**BY_WIRE, "producer.override.batch.size": "soon"}))

    assert [1] == [len(each) for each in found.values()]


def test_what_the_wire_does_not_need_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Not with the client library, which has it, whether it is named or sends what the wire cannot."""
    linger = {"producer.override.linger.ms": "5"}
    validated_connector({**CONNECTOR, **linger, **RANDOM}, checked_worker(WORKER))
    validated_connector(
        {**CONNECTOR, **linger, "headrace.sender": "client"}, checked_worker(WORKER)
    )
    assert "linger.ms" not in caplog.text

    validated_connector({**CONNECTOR, **linger}, checked_worker(WORKER))

    assert "The producer's setting linger.ms has no effect" in caplog.text
