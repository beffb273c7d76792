"""Settings that the client refuses, found by creating a client that connects to no broker."""

# The library re-exports its own names in a way that the type checker takes for private.
# pyright: reportPrivateImportUsage=false

from __future__ import annotations

import logging
import re
from collections.abc import Collection
from pathlib import Path

from confluent_kafka import KafkaException, Producer

from headrace.connect.config import Problem
from headrace.connect.errors import ConfigError
from headrace.kafka.client_config import ClientConfig, Settings
from headrace.kafka.errors import kafka_error
from headrace.kafka.java_settings import connect_name, means

_QUOTED = re.compile(r"[\"`]([a-z0-9._]+)[\"`]")
_NAMED = re.compile(r"\b((?:sasl|security|ssl)\.[a-z0-9._]*[a-z0-9])")
_WHICH_CLIENT = re.compile(r"^Failed to create [a-z ]+: ")
_OF_ONE = re.compile(r"onfiguration property:? \"([^\"]+)\"")
_SILENT = logging.getLogger("headrace.kafka.trial")
_SILENT.disabled = True


def refused_settings(error: KafkaException, settings: Settings) -> ConfigError:
    """The client's refusal of its *settings*, as a problem of the user's configuration."""
    problem = _problem(_reason(error), (), settings)
    return ConfigError([problem], where="The Kafka client's configuration")


def producer_refusals(config: ClientConfig, given: Collection[str]) -> tuple[Problem, ...]:
    """What a producer would refuse of *config*, as problems by the user's keys; *given* are those that are set.

    Connects to no broker. Called when a worker's or a connector's configuration is validated.
    """
    settings = {
        key: value for key, value in config.settings.items() if not key.startswith("bootstrap.")
    }
    problems = list[Problem]()
    while reason := _refusal(settings):
        blamed = _blamed(reason)
        wrong = [key for key in settings if means(key, blamed)]
        of_one = _OF_ONE.search(reason) is not None
        # A problem of several settings together may result from those that were removed before.
        if of_one or not problems:
            problems.append(_problem(reason, given, settings))
        if not (of_one and wrong):
            break
        # The client reports only the first one.
        for key in wrong:
            del settings[key]
    return tuple(problems)


def _refusal(settings: Settings) -> str:
    try:
        Producer({**settings, "logger": _SILENT})
    except KafkaException as error:
        return _reason(error)
    return ""


def _reason(error: KafkaException) -> str:
    return _WHICH_CLIENT.sub("", kafka_error(error).str().strip().rstrip("."))


def _blamed(reason: str) -> str:
    """The client's own name of the setting that *reason* is about; empty when it names none."""
    if "SASL mechanism" in reason:
        return "sasl.mechanisms"
    found = _OF_ONE.search(reason) or _QUOTED.search(reason) or _NAMED.search(reason)
    return found.group(1) if found else ""


def _problem(reason: str, given: Collection[str], settings: Settings) -> Problem:
    blamed = _blamed(reason)
    if not blamed:
        return "producer", f"{reason}."
    key = next((each for each in given if means(each, blamed)), connect_name(blamed))
    if blamed.endswith(".location"):
        reason = _unreadable(str(settings.get(blamed, ""))) or reason
    return key, f"{reason.replace(blamed, key)}."


def _unreadable(path: str) -> str:
    """Why the file cannot be read, which the client does not report; empty when it can."""
    try:
        with Path(path).open("rb"):
            return ""
    except OSError as error:
        return f"The file {path!r} cannot be read: {error.strerror}"
