"""A worker to validate in, and short ways to look at what it answers."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.herder.answers import CheckedKey, ConfigInfos
from headrace.plugins import PluginConnectorValidator, Plugins, checked_worker
from headrace.runtime.services import RunSpec

JSON = "org.apache.kafka.connect.json.JsonConverter"
WORKER = {"key.converter": JSON, "value.converter": "StringConverter"}
FILE_STREAM = "org.apache.kafka.connect.file.FileStreamSourceConnector"
CONNECTOR = {"name": "c", "connector.class": FILE_STREAM, "topic": "t", "file": "/nowhere"}


def validator(
    worker: Mapping[str, object] | None = None, plugins: Plugins | None = None
) -> PluginConnectorValidator:
    """The validator of a worker with *worker*'s settings besides the usual ones."""
    config = checked_worker({**WORKER, **(worker or {})})
    return PluginConnectorValidator(config, "g", plugins=plugins)


def run_spec(judge: PluginConnectorValidator, config: Mapping[str, str]) -> RunSpec:
    """What *judge* has a connector with *config* run with."""
    return judge.run_spec(judge.resolved(config))


def validated(changes: Mapping[str, str | None], *without: str, **worker: str) -> ConfigInfos:
    """What is said of the usual connector with *changes*, and *without* some of its keys.

    Of *worker*'s keys an underscore stands for a dot.
    """
    given = {key: value for key, value in CONNECTOR.items() if key not in without}
    settings = {key.replace("_", "."): value for key, value in worker.items()}
    return validator(settings).validate({**given, **changes})


def errors(infos: ConfigInfos) -> dict[str, list[str]]:
    """What is wrong, by key."""
    return {each.value.name: list(each.value.errors) for each in infos.configs if each.value.errors}


def key(infos: ConfigInfos, name: str) -> CheckedKey:
    """The one key of that name."""
    [found] = [each for each in infos.configs if each.value.name == name]
    return found
