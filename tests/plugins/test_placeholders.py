"""Placeholders in connectors' and workers' configurations: resolved to run, and never shown."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

import pytest

from headrace.connect.config import Config, Problem, setting
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError
from headrace.herder.errors import BadRequestError
from headrace.plugins import checked_worker, validated_connector
from headrace.rest import answers as wire
from plugins.judged import CONNECTOR, WORKER, errors, key, run_spec, validator

CANARY = "canary in the mine"
PROVIDERS = {"config.providers": "env", "config.providers.env.class": "env"}


@pytest.fixture(autouse=True)
def _a_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_TEST_SECRET", CANARY)
    monkeypatch.setenv("HEADRACE_TEST_TOPIC", "t")


def test_a_connector_runs_with_what_placeholders_stand_for():
    """And is kept with the placeholders."""
    given = {**CONNECTOR, "topic": "${env:HEADRACE_TEST_TOPIC}"}
    made = validated_connector(given, checked_worker({**WORKER, **PROVIDERS}))

    assert ("t", given) == (made.props["topic"], made.given)
    assert "t" == run_spec(validator(PROVIDERS), given).props["topic"]


def test_a_validation_shows_the_placeholder():
    """Of a value that is right as of one that is wrong."""
    given = {
        **CONNECTOR,
        "topic": "${env:HEADRACE_TEST_TOPIC}",
        "tasks.max": "${env:HEADRACE_TEST_SECRET}",
        "batch.size": "${env:HEADRACE_TEST_LOST}",
        "producer.override.linger.ms": "${env:HEADRACE_TEST_SECRET}",
        "value.converter": "avro",
        "value.converter.schema.registry.url": "http://localhost:1",
        "value.converter.basic.auth.credentials.source": "USER_INFO",
        "value.converter.basic.auth.user.info": "${env:HEADRACE_TEST_SECRET}",
    }
    infos = validator(PROVIDERS).validate(given)

    assert CANARY not in repr([(each.value, each.value.value) for each in infos.configs])
    assert "${env:HEADRACE_TEST_TOPIC}" == key(infos, "topic").value.value
    assert "[hidden]" == key(infos, "value.converter.basic.auth.user.info").value.value
    found = errors(infos)
    assert {"tasks.max", "batch.size", "producer.override.linger.ms"} == set(found)
    assert (
        "Invalid value ${env:HEADRACE_TEST_SECRET} for configuration tasks.max: "
        "Not a number of type INT"
    ) == found["tasks.max"][0]
    assert [
        (
            "batch.size could not be resolved: the worker's environment has no variable "
            "HEADRACE_TEST_LOST."
        )
    ] == found["batch.size"]


@pytest.mark.parametrize("form", ["%s", "first,%s", "%s,%s"])
@pytest.mark.parametrize(
    "name",
    [
        "errors.tolerance",
        "exactly.once.support",
        "header.converter",
        "name",
        "offsets.storage.topic",
        "predicates",
        "predicates.p.type",
        "producer.override.acks",
        "tasks.max",
        "topic.creation.groups",
        "transforms",
        "transforms.a.predicate",
        "transforms.a.type",
    ],
)
def test_no_text_of_a_validation_is_made_of_a_secret(
    name: str, form: str, monkeypatch: pytest.MonkeyPatch
):
    """Neither groups nor names, definitions, values or errors; a list's short items are kept secret, too."""
    monkeypatch.setenv("HEADRACE_TEST_SECRET", "canary,in,the mine")
    given = {
        **CONNECTOR,
        "transforms": "a",
        "predicates": "p",
        name: form.replace("%s", "${env:HEADRACE_TEST_SECRET}"),
    }
    text = json.dumps(wire.config_infos(validator(PROVIDERS).validate(given)))

    assert "${env:HEADRACE_TEST_SECRET}" in text
    for item in ("canary", "the mine"):
        assert item not in text


def test_an_alias_from_a_placeholder_is_shown_as_the_placeholder():
    """In its group and in the names of its keys."""
    given = {**CONNECTOR, "transforms": "${env:HEADRACE_TEST_SECRET}"}
    infos = validator(PROVIDERS).validate(given)

    assert "Transforms: ${env:HEADRACE_TEST_SECRET}" in infos.groups
    assert "transforms.${env:HEADRACE_TEST_SECRET}.type" in errors(infos)


def test_no_aliases_from_a_placeholder_are_no_problem(monkeypatch: pytest.MonkeyPatch):
    """An empty value is one."""
    monkeypatch.setenv("HEADRACE_TEST_SECRET", "")
    given = {**CONNECTOR, "transforms": "${env:HEADRACE_TEST_SECRET}"}

    assert {} == errors(validator(PROVIDERS).validate(given))


class TalkativeConfig(Config):
    """One text."""

    topic: str = setting(doc="A text.")


class TalkativeConnector(SourceConnector):
    """Complains of keys that it makes of values."""

    config_class = TalkativeConfig

    def start(self, props: Mapping[str, str]) -> None:
        """Nothing."""

    def problems(self, props: Mapping[str, str]) -> tuple[Problem, ...]:
        """One, of a key that no one has given."""
        return ((f"topic.{props['topic']}", "Too long."),)


def test_a_key_that_a_connector_makes_of_a_secret_is_masked():
    """It is told of, under the placeholder."""
    talkative = {
        "connector.class": f"{__name__}:TalkativeConnector",
        "topic": "${env:HEADRACE_TEST_SECRET}",
    }
    judge = validator({**PROVIDERS, "plugin.modules": __name__})
    found = errors(judge.validate({"name": "c", **talkative}))
    with pytest.raises(ConfigError) as failed:
        run_spec(judge, {"name": "c", **talkative})

    assert ["topic.${env:HEADRACE_TEST_SECRET}"] == list(found)
    assert list(found) == [key for key, _ in failed.value.problems]


@pytest.mark.parametrize(
    "name", ["tasks.max", "connector.class", "key.converter", "file.max.line.bytes"]
)
def test_no_error_shows_what_a_placeholder_stands_for(name: str, caplog: pytest.LogCaptureFixture):
    """Neither its message, nor what it came from, nor the log."""
    given = {**CONNECTOR, name: "${env:HEADRACE_TEST_SECRET}"}
    judge = validator(PROVIDERS)
    with caplog.at_level(logging.DEBUG), pytest.raises(ConfigError) as failed:
        run_spec(judge, given)
    if name == "connector.class":
        with pytest.raises(BadRequestError) as refused:
            judge.validate(given)
        assert CANARY not in str(refused.value)
        assert refused.value.__cause__ is None

    assert "${env:HEADRACE_TEST_SECRET}" in str(failed.value)
    assert CANARY not in str(failed.value)
    assert failed.value.__cause__ is None
    assert CANARY not in caplog.text


def test_without_providers_nothing_is_replaced():
    """A request cannot read the worker's environment."""
    infos = validator().validate({**CONNECTOR, "file": "${env:HEADRACE_TEST_SECRET}"})

    assert "${env:HEADRACE_TEST_SECRET}" == key(infos, "file").value.value
    assert {} == errors(infos)


def test_a_worker_s_configuration_has_placeholders_too():
    """And its problems do not show them."""
    worker = {**WORKER, **PROVIDERS}

    assert CANARY == checked_worker({**worker, "group.id": "${env:HEADRACE_TEST_SECRET}"}).group_id
    with pytest.raises(ConfigError) as failed:
        checked_worker({**worker, "headrace.slots": "${env:HEADRACE_TEST_SECRET}"})
    assert CANARY not in str(failed.value)
    assert failed.value.__cause__ is None
    with pytest.raises(ConfigError, match="has no variable HEADRACE_TEST_LOST"):
        checked_worker({**worker, "group.id": "${env:HEADRACE_TEST_LOST}"})
