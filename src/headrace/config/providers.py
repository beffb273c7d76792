"""Placeholders, ``${provider:path:key}``, and the configuration providers that look up their values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

from headrace.config.properties_file import parsed_properties
from headrace.connect.config import Problem, under
from headrace.connect.setting import SettingType, parsed
from headrace.observe.log_format import hide_in_logs
from headrace.observe.secret_masking import Secrets, forms, masked_exceptions

NAMES: Final = "config.providers"
# Kafka's own pattern, in which the path is optional.
_PLACEHOLDER = re.compile(r"\$\{([^}]*?):(?:([^}]*?):)?([^}]*?)\}")
# A value this short, such as a number of tasks, would be found inside unrelated words.
_FEW = 3
_PACKAGE = "org.apache.kafka.common.config.provider"


class LookupFailedError(ValueError):
    """There is no such value, or it may not be read; the message is for the user."""


class Provider(Protocol):
    """Looks values up, again each time. Any thread may call."""

    def value(self, path: str, key: str) -> str:
        """The value of *key* in *path*. May read files. Raises :class:`LookupFailedError`."""
        ...

    def file(self, path: str, key: str) -> Path | None:
        """The file that holds the value, whether or not it exists; ``None`` when it is not in a file. Pure."""
        ...


def readable_path(path: str, allowed: tuple[str, ...]) -> Path:
    """*path*, which must lie in one of *allowed* if there are any; links are followed first.

    Raises :class:`LookupFailedError`.
    """
    if not path:
        raise LookupFailedError("it names no path")
    found = Path(path).resolve()
    if allowed and not any(found.is_relative_to(Path(each).resolve()) for each in allowed):
        raise LookupFailedError(f"{path} is not within allowed.paths of the provider")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentProvider:
    """``${env:PASSWORD}``, as Kafka's ``EnvVarConfigProvider``; only names that *pattern* matches as a whole."""

    pattern: re.Pattern[str] = re.compile(".*", re.DOTALL)
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)

    def value(self, path: str, key: str) -> str:
        """See :class:`~headrace.config.providers.Provider`."""
        if path:
            raise LookupFailedError(f"environment variables have no path, but it names {path}")
        if not self.pattern.fullmatch(key):
            raise LookupFailedError(f"{key} does not match allowlist.pattern of the provider")
        if key not in self.environment:
            raise LookupFailedError(f"the worker's environment has no variable {key}")
        return self.environment[key]

    def file(self, path: str, key: str) -> Path | None:
        """None: environment variables are not in a file."""
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProvider:
    """``${file:/etc/secrets.properties:password}``, as Kafka's ``FileConfigProvider``."""

    allowed: tuple[str, ...] = ()

    def value(self, path: str, key: str) -> str:
        """See :class:`~headrace.config.providers.Provider`."""
        content = _content(readable_path(path, self.allowed), path)
        try:
            found = parsed_properties(content)
        except ValueError:
            # The error would show the line.
            raise LookupFailedError(f"{path} is not a properties file") from None
        if key not in found:
            raise LookupFailedError(f"there is no key {key} in {path}")
        return found[key]

    def file(self, path: str, key: str) -> Path | None:
        """See :class:`~headrace.config.providers.Provider`."""
        return Path(path)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectoryProvider:
    """``${directory:/run/secrets:password}``: a file's whole content, as Kafka's ``DirectoryConfigProvider``."""

    allowed: tuple[str, ...] = ()

    def value(self, path: str, key: str) -> str:
        """See :class:`~headrace.config.providers.Provider`."""
        folder = readable_path(path, self.allowed)
        if not key or key in (".", "..") or "/" in key:
            raise LookupFailedError(f"{key!r} is not the name of a file in {path}")
        # A link may lead out of the allowed folders.
        file = readable_path(str(folder / key), self.allowed)
        try:
            return _content(file, f"{path}/{key}").decode()
        except UnicodeDecodeError:
            raise LookupFailedError(f"{path}/{key} is not text in UTF-8") from None

    def file(self, path: str, key: str) -> Path | None:
        """See :class:`~headrace.config.providers.Provider`."""
        return Path(path) / key


def _content(file: Path, named: str) -> bytes:
    try:
        return file.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not a path"
        raise LookupFailedError(f"{named} cannot be read: {reason}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of provider: its *parameter*, the check of that, and how to make a provider of it."""

    parameter: str
    problem: Callable[[str], str | None]
    made: Callable[[str], Provider]


def providers_of(props: Mapping[str, str]) -> Mapping[str, Provider]:
    """The providers of a worker's *props*, by their names; those with problems are left out. Pure."""
    made = dict[str, Provider]()
    for name in _names(props):
        kind = _KINDS.get(_class(name, props))
        if kind is not None and not list(_problems(name, props)):
            made[name] = kind.made(_parameters(name, props).get(kind.parameter, ""))
    return made


def provider_problems(props: Mapping[str, str]) -> Iterator[Problem]:
    """What is wrong with the providers of a worker's *props*. Checks on disk whether allowed paths exist."""
    names = _names(props)
    for name in names:
        yield from _problems(name, props)
    for key in props:
        named = key.removeprefix(f"{NAMES}.")
        if named != key and not any(named.startswith(f"{name}.") for name in names):
            yield (
                key,
                f"{key} belongs to no provider in {NAMES}; add the provider there, or leave this key out.",
            )


def _problems(name: str, props: Mapping[str, str]) -> Iterator[Problem]:
    key = f"{NAMES}.{name}.class"
    if key not in props:
        yield key, f'Missing required configuration "{key}" which has no default value.'
        return
    kind = _KINDS.get(_class(name, props))
    if kind is None:
        message = f"Invalid value {props[key]} for configuration {key}: Class {props[key]}"
        yield key, f"{message} could not be found. Valid ones are: file, env, directory."
        return
    for parameter, value in _parameters(name, props).items():
        where = f"{NAMES}.{name}.param.{parameter}"
        if parameter != kind.parameter:
            yield where, f"{where} is not a parameter of this provider; it has {kind.parameter}."
        elif problem := kind.problem(value):
            yield where, f"Invalid value {value} for configuration {where}: {problem}"


def _names(props: Mapping[str, str]) -> tuple[str, ...]:
    return _items(props.get(NAMES, ""))


def _class(name: str, props: Mapping[str, str]) -> str:
    return props.get(f"{NAMES}.{name}.class", "").strip()


def _parameters(name: str, props: Mapping[str, str]) -> dict[str, str]:
    return under(props, f"{NAMES}.{name}.param.")


def _items(text: str) -> tuple[str, ...]:
    items = parsed(text, SettingType.LIST)
    assert isinstance(items, tuple)
    return items


def _paths_problem(text: str) -> str | None:
    for each in map(Path, _items(text)):
        if not each.is_absolute():
            return f"Path {each} is not absolute"
        if not each.exists():
            return f"Path {each} does not exist"
    return None


def _pattern_problem(text: str) -> str | None:
    try:
        re.compile(text)
    except re.error as error:
        return f"Syntax error in regular expression: {error}"
    return None


def _environment(text: str) -> Provider:
    return EnvironmentProvider(pattern=re.compile(text)) if text else EnvironmentProvider()


_FILE = _Kind(
    parameter="allowed.paths",
    problem=_paths_problem,
    made=lambda text: FileProvider(allowed=_items(text)),
)
_DIRECTORY = _Kind(
    parameter="allowed.paths",
    problem=_paths_problem,
    made=lambda text: DirectoryProvider(allowed=_items(text)),
)
_ENVIRONMENT = _Kind(parameter="allowlist.pattern", problem=_pattern_problem, made=_environment)
_KINDS: Mapping[str, _Kind] = {
    "file": _FILE,
    f"{_PACKAGE}.FileConfigProvider": _FILE,
    "directory": _DIRECTORY,
    f"{_PACKAGE}.DirectoryConfigProvider": _DIRECTORY,
    "env": _ENVIRONMENT,
    f"{_PACKAGE}.EnvVarConfigProvider": _ENVIRONMENT,
}


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
    def masked_exceptions(self) -> Generator[None]:
        """Mask secrets in what is raised within, such as by an author's class."""
        with masked_exceptions(Secrets(values=self.secrets)):
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
