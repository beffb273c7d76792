"""Settings that the client refuses, found by making a client that talks to no one."""

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
    problem = _problem(_told(error), (), settings)
    return ConfigError([problem], where="The Kafka client's configuration")


def producer_refusals(config: ClientConfig, given: Collection[str]) -> tuple[Problem, ...]:
    """What a producer would refuse of *config*, as problems by the user's keys, of which *given* are there.

    No broker is asked. Called for a worker and for each connector, before they are let in.
    """
    settings = {
        key: value for key, value in config.settings.items() if not key.startswith("bootstrap.")
    }
    problems = list[Problem]()
    while told := _refusal(settings):
        blamed = _blamed(told)
        wrong = [key for key in settings if means(key, blamed)]
        of_one = _OF_ONE.search(told) is not None
        # What is said of several settings together may come from those that were left out before.
        if of_one or not problems:
            problems.append(_problem(told, given, settings))
        if not (of_one and wrong):
            break
        # The client names the first one only.
        for key in wrong:
            del settings[key]
    return tuple(problems)


def _refusal(settings: Settings) -> str:
    try:
        Producer({**settings, "logger": _SILENT})
    except KafkaException as error:
        return _told(error)
    return ""


def _told(error: KafkaException) -> str:
    return _WHICH_CLIENT.sub("", kafka_error(error).str().strip().rstrip("."))


def _blamed(told: str) -> str:
    """The client's own name of the setting that *told* is about; empty when it names none."""
    if "SASL mechanism" in told:
        return "sasl.mechanisms"
    found = _OF_ONE.search(told) or _QUOTED.search(told) or _NAMED.search(told)
    return found.group(1) if found else ""


def _problem(told: str, given: Collection[str], settings: Settings) -> Problem:
    blamed = _blamed(told)
    if not blamed:
        return "producer", f"{told}."
    key = next((each for each in given if means(each, blamed)), connect_name(blamed))
    if blamed.endswith(".location"):
        told = _unreadable(str(settings.get(blamed, ""))) or told
    return key, f"{told.replace(blamed, key)}."


def _unreadable(path: str) -> str:
    """Why the file cannot be read, which the client does not tell; empty when it can."""
    try:
        with Path(path).open("rb"):
            return ""
    except OSError as error:
        return f"The file {path!r} cannot be read: {error.strerror}"
