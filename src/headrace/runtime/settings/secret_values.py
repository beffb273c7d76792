"""What of a connector's configuration nobody may read in a log, a trace or an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from headrace.connect.config import Problem
from headrace.connect.setting import Setting
from headrace.connect.setting_type import HIDDEN, SettingType
from headrace.observe.hidden import Hidden
from headrace.runtime.settings.secret_keys import is_secret_key

# A password of fewer characters is likely to be a word, and every sentence with it would be spoilt.
_SHORTEST = 8
_REDACTION: Final = "spark.redaction.regex"
# Spark's own default.
_REDACTED: Final = "(?i)secret|password|token|access[.]?key"
# The passwords within a line for JAAS.
_QUOTED = re.compile(r'"([^"]*)"')


def hidden_values(
    placeholders: Mapping[str, str],
    settings: Iterable[Setting],
    *configs: Mapping[str, str],
) -> Hidden:
    """What *placeholders* stand for, and the passwords in *configs*: of *settings*, or so by their names. Pure."""
    passwords = frozenset(each.name for each in settings if each.type is SettingType.PASSWORD)
    written = {
        text: HIDDEN
        for config in configs
        for key, value in config.items()
        if key in passwords or is_secret_key(key)
        for text in _texts(value)
    }
    return Hidden(values={**written, **placeholders})


def _texts(value: str) -> Iterator[str]:
    yield from (
        each
        for each in (value.strip(), *_QUOTED.findall(value))
        if len(each) >= _SHORTEST and not each.startswith("${")
    )


def spark_problems(given: Mapping[str, str], resolved: Mapping[str, str]) -> Iterator[Problem]:
    """Placeholders in keys of Spark's whose values it shows in its event log and on its pages. Pure."""
    pattern = re.compile(_REDACTED)
    with suppress(re.error):
        pattern = re.compile(given.get(_REDACTION, _REDACTED))
    for key, value in given.items():
        if key.startswith("spark.") and resolved.get(key) != value and not pattern.search(key):
            yield (
                key,
                (
                    "Spark would show in its event log what the placeholder stands for: only keys that "
                    f"match {_REDACTION} ({pattern.pattern}) can have one. Extend that expression."
                ),
            )
