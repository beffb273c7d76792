"""The providers that a worker's configuration names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.connect.config import Problem, under
from headrace.connect.setting_type import SettingType, parsed
from headrace.runtime.providers.environment import EnvironmentProvider
from headrace.runtime.providers.files import DirectoryProvider, FileProvider
from headrace.runtime.providers.provider import Provider

NAMES: Final = "config.providers"
_PACKAGE = "org.apache.kafka.common.config.provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """A kind of providers: its *parameter*, what is wrong with one, and how a provider is made of it."""

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
    """What is wrong with the providers of a worker's *props*. Looks whether allowed paths are there."""
    names = _names(props)
    for name in names:
        yield from _problems(name, props)
    for key in props:
        named = key.removeprefix(f"{NAMES}.")
        if named != key and not any(named.startswith(f"{name}.") for name in names):
            yield (
                key,
                f"{key} is of no provider that {NAMES} names; add it there, or leave this out.",
            )


def _problems(name: str, props: Mapping[str, str]) -> Iterator[Problem]:
    key = f"{NAMES}.{name}.class"
    if key not in props:
        yield key, f'Missing required configuration "{key}" which has no default value.'
        return
    kind = _KINDS.get(_class(name, props))
    if kind is None:
        told = f"Invalid value {props[key]} for configuration {key}: Class {props[key]}"
        yield key, f"{told} could not be found. There are: file, env, directory."
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
