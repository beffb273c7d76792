"""Configurations with their placeholders replaced, and sentences without what was put in."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headrace.connect.config import Problem
from headrace.observe.hidden import Hidden, kept_secret
from headrace.observe.secret_forms import forms
from headrace.runtime.providers.provider import LookupFailedError, Provider

# Kafka's own: the path may be left out.
_PLACEHOLDER = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
# So short a value, such as a number of tasks, would be found inside the words of every sentence.
_FEW = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """A configuration as it was *given*, and *resolved*; values are ``None`` where JSON had null.

    *problems* are of placeholders that could not be replaced, *secrets* the placeholder of each value that
    was put in, *files* where values come from.
    """

    given: Mapping[str, str | None] = field(repr=False)
    resolved: Mapping[str, str | None] = field(repr=False)
    problems: tuple[Problem, ...] = ()
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    files: frozenset[Path] = frozenset()

    def props(self) -> dict[str, str]:
        """The resolved values that are there."""
        return {key: value for key, value in self.resolved.items() if value is not None}

    def nulls(self) -> tuple[str, ...]:
        """The keys without a value."""
        return tuple(key for key, value in self.resolved.items() if value is None)

    @contextmanager
    def kept_secret(self) -> Generator[None]:
        """Let what is raised within, such as by an author's class, show no secret."""
        with kept_secret(Hidden(values=self.secrets)):
            yield

    def masked(self, text: str) -> str:
        """*text* with the placeholders in place of what they stand for. Pure."""
        shown = dict(self.secrets)
        for key, value in self.props().items():
            given = self.given[key]
            if value.strip() and given is not None and given != value:
                shown |= {value: given, value.strip(): given.strip()}
        if not shown:
            return text
        for secret, given in [*shown.items()]:
            shown = {**dict.fromkeys(forms(secret), given), **shown}
        secrets = "|".join(map(_found_as, sorted(shown, key=len, reverse=True)))
        return re.sub(secrets, lambda found: shown[found[0]], text)


def _found_as(secret: str) -> str:
    """The expression that finds *secret*: one of a few characters only where it stands alone."""
    found = re.escape(secret)
    return found if len(secret) > _FEW else rf"(?<!\w){found}(?!\w)"


def resolution(config: Mapping[str, str | None], providers: Mapping[str, Provider]) -> Resolution:
    """*config* with the placeholders of *providers*, by their names, replaced; others stay as they are.

    May read files. Nothing that was put in is looked at for placeholders again.
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
