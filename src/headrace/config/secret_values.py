"""Secrets in configurations: placeholders that stand for them, and values to hide in logs, traces and answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from headrace.config.providers import LookupFailedError, Provider, providers_of
from headrace.connect.config import Problem
from headrace.connect.setting import HIDDEN, Setting, SettingType
from headrace.kafka.client_config import redacted
from headrace.observe.log_format import hide_in_logs
from headrace.observe.secret_masking import Secrets, forms, kept_secret

# A shorter password is likely to be a common word, and masking it would spoil every sentence with that word.
_SHORTEST = 8
_REDACTION: Final = "spark.redaction.regex"
# Spark's own default.
_REDACTED: Final = "(?i)secret|password|token|access[.]?key"
# The passwords within a line for JAAS.
_QUOTED = re.compile(r'"([^"]*)"')
# Kafka's own pattern, in which the path is optional.
_PLACEHOLDER = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
# A value this short, such as a number of tasks, would be found inside unrelated words.
_FEW = 3


def is_secret_key(key: str) -> bool:
    """Whether the name of *key* suggests that its value is a secret. Pure."""
    lowered = key.lower()
    is_secret = any(
        word in lowered for word in ("credential", "access.key", "user.info", "api.key")
    )
    return is_secret or redacted({lowered: ""})[lowered] == HIDDEN


def hidden_values(
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


@dataclass(frozen=True, kw_only=True)
class Resolution:
    """A configuration as it was *given*, and *resolved*; values are ``None`` where JSON had null.

    *problems* are those of placeholders that could not be resolved, *secrets* the placeholder of each value that was
    inserted, *files* the files with values.
    """

    given: Mapping[str, str | None] = field(repr=False)
    resolved: Mapping[str, str | None] = field(repr=False)
    problems: tuple[Problem, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    files: frozenset[Path] = frozenset()

    def props(self) -> dict[str, str]:
        """The resolved values without nulls."""
        return {key: value for key, value in self.resolved.items() if value is not None}

    def nulls(self) -> tuple[str, ...]:
        """The keys whose value is null."""
        return tuple(key for key, value in self.resolved.items() if value is None)

    @contextmanager
    def kept_secret(self) -> Generator[None]:
        """Mask secrets in what is raised within, such as by an author's class."""
        with kept_secret(Secrets(values=self.secrets)):
            yield

    def masked(self, text: str) -> str:
        """*text* with placeholders in place of their values. Pure."""
        if self._found is None:
            return text
        return self._found.sub(lambda found: self._shown[found[0]], text)

    @cached_property
    def _shown(self) -> Mapping[str, str]:
        """The text to show for each secret. Cached, because a configuration may have many problems to mask."""
        shown = dict(self.secrets)
        for key, value in self.props().items():
            given = self.given[key]
            if value.strip() and given is not None and given != value:
                shown |= {value: given, value.strip(): given.strip()}
        for secret, given in [*shown.items()]:
            for form in forms(secret):
                shown.setdefault(form, given)
        return shown

    @cached_property
    def _found(self) -> re.Pattern[str] | None:
        secrets = "|".join(map(_found_as, sorted(self._shown, key=len, reverse=True)))
        return re.compile(secrets) if secrets else None


def _found_as(secret: str) -> str:
    """The expression that finds *secret*; a short one is found only as a whole word."""
    found = re.escape(secret)
    return found if len(secret) > _FEW else rf"(?<!\w){found}(?!\w)"


def resolution(config: Mapping[str, str | None], providers: Mapping[str, Provider]) -> Resolution:
    """*config* with the placeholders of *providers*, by their names, replaced; others stay as they are.

    May read files. Placeholders in inserted values are not resolved.
    """
    resolved = dict(config)
    problems = list[Problem]()
    secrets = dict[str, str]()
    files = set[Path]()
    for key, text in config.items():
        if text is None or "${" not in text:
            continue
        try:
            resolved[key] = _PLACEHOLDER.sub(_replacing(providers, secrets, files), text)
        except LookupFailedError as error:
            problems.append((key, f"{key} could not be resolved: {error}."))
    return Resolution(
        given=config,
        resolved=resolved,
        problems=tuple(problems),
        secrets=secrets,
        files=frozenset(files),
    )


def _replacing(
    providers: Mapping[str, Provider], secrets: dict[str, str], files: set[Path]
) -> Callable[[re.Match[str]], str]:
    def replaced(found: re.Match[str]) -> str:
        name, path, key = found.groups(default="")
        provider = providers.get(name)
        if provider is None:
            return found[0]
        path, key = path.strip(), key.strip()
        file = provider.file(path, key)
        if file is not None:
            files.add(file)
        value = provider.value(path, key)
        # Errors show values without the white space around them.
        secrets.update({secret: found[0] for secret in (value, value.strip()) if secret})
        return value

    return replaced


def resolved_in(worker: Mapping[str, str], config: Mapping[str, str | None]) -> Resolution:
    """*config* with the placeholders of the *worker*'s providers replaced, and their values hidden in logs.

    May read files. Placeholders that cannot be resolved are among the result's problems. Any thread may call.
    """
    found = resolution(config, providers_of(worker))
    hide_in_logs(found.secrets)
    return found
