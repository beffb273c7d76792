"""Versions of plugins that a configuration asks for (KIP-891)."""

from __future__ import annotations

import pytest

from headrace import __version__
from headrace.connect.errors import ConfigError
from headrace.plugins import checked_worker, validated_connector
from plugins.judged import CONNECTOR, WORKER, errors, validated

JSON = {"value.converter": "json"}


@pytest.mark.parametrize("version", [__version__, f"[{__version__},)", "latest", "(,1.0)"])
@pytest.mark.parametrize("key", ["connector", "key.converter", "value.converter"])
def test_a_version_that_is_installed_may_be_asked_for(key: str, version: str):
    """Of a connector, of a converter that is named with it, and of the worker's."""
    given = {**JSON, f"{key}.plugin.version": version}

    assert {} == errors(validated(given))
    assert (
        version
        == validated_connector({**CONNECTOR, **given}, checked_worker(WORKER)).props[
            next(reversed(given))
        ]
    )


@pytest.mark.parametrize(
    ("key", "plugin"),
    [
        ("connector", CONNECTOR["connector.class"]),
        ("value.converter", "org.apache.kafka.connect.json.JsonConverter"),
        ("key.converter", WORKER["key.converter"]),
    ],
)
def test_another_version_is_an_error_with_what_there_is(key: str, plugin: str):
    """At the key that asks and, in a validation, at the class; in Kafka Connect's words."""
    reported = (
        f"Plugin {plugin} not found that matches the version range [9.0,10), "
        f"available versions: [{__version__}]"
    )
    given = {**JSON, f"{key}.plugin.version": "[9.0,10)"}

    of_class = "connector.class" if key == "connector" else key
    assert {of_class: [reported], f"{key}.plugin.version": [reported]} == errors(validated(given))
    with pytest.raises(ConfigError) as refused:
        validated_connector({**CONNECTOR, **given}, checked_worker(WORKER))
    assert ((f"{key}.plugin.version", reported),) == refused.value.problems


def test_what_is_no_range_is_reported_once():
    """By its key."""
    assert {"key.converter.plugin.version": ["Unbounded range: [1"]} == errors(
        validated({"key.converter": "json", "key.converter.plugin.version": "[1"})
    )


def test_a_worker_s_converter_has_a_version_too():
    """A worker that asks for another one does not start."""
    with pytest.raises(ConfigError, match="matches the version range"):
        checked_worker({**WORKER, "value.converter.plugin.version": "4.3.1"})
