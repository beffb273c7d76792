"""Which values of a configuration are secrets, to be masked in logs, traces and answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from headrace.connect.config import Problem
from headrace.connect.setting import HIDDEN, Setting, SettingType
from headrace.kafka.client_config import redacted
from headrace.observe.secret_masking import Secrets

# A shorter password is likely to be a common word, and masking it would spoil every sentence with that word.
_SHORTEST = 8
_REDACTION: Final = "spark.redaction.regex"
# Spark's own default.
_REDACTED: Final = "(?i)secret|password|token|access[.]?key"
# The passwords within a line for JAAS.
_QUOTED = re.compile(r'"([^"]*)"')


def is_secret_key(key: str) -> bool:
    """Whether the name of *key* suggests that its value is a secret. Pure."""
    lowered = key.lower()
    is_secret = any(
        word in lowered for word in ("credential", "access.key", "user.info", "api.key")
    )
    return is_secret or redacted({lowered: ""})[lowered] == HIDDEN


def connector_secrets(
    placeholders: Mapping[str, str],
    settings: Iterable[Setting],
    *configs: Mapping[str, str],
) -> Secrets:
    """The values of *placeholders*, and the passwords in *configs*, by *settings* or by the names of keys. Pure."""
    passwords = frozenset(each.name for each in settings if each.type is SettingType.PASSWORD)
    written = {
        text: HIDDEN
        for config in configs
        for key, value in config.items()
        if key in passwords or is_secret_key(key)
        for text in _texts(value)
    }
    return Secrets(values={**written, **placeholders})


def _texts(value: str) -> Iterator[str]:
    yield from (
        each
        for each in (value.strip(), *_QUOTED.findall(value))
        if len(each) >= _SHORTEST and not each.startswith("${")
    )


def spark_problems(given: Mapping[str, str], resolved: Mapping[str, str]) -> Iterator[Problem]:
    """Placeholders in Spark's keys whose values Spark shows in its event log and its UI. Pure."""
    pattern = re.compile(_REDACTED)
    with suppress(re.error):
        pattern = re.compile(given.get(_REDACTION, _REDACTED))
    for key, value in given.items():
        if key.startswith("spark.") and resolved.get(key) != value and not pattern.search(key):
            yield (
                key,
                (
                    "Spark would write the placeholder's value to its event log: only keys that match "
                    f"{_REDACTION} ({pattern.pattern}) may have placeholders. Extend that expression."
                ),
            )
