"""The converters that a worker may use: headrace's own, and authors'."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import headrace
from headrace.admission.plugin_search import Found, PluginSearch
from headrace.admission.versions import version_problem
from headrace.class_path import class_at
from headrace.connect.config import Config, Problem
from headrace.connect.errors import TaskFailedError
from headrace.connect.setting import Setting
from headrace.converters import (
    converter_class,
    converter_classes,
    converter_problems,
    converter_settings,
    header_converter_classes,
)
from headrace.runtime.herder.answers import Plugin, PluginKind
from headrace.runtime.settings.worker_config import Role

GROUP: Final = "headrace.converters"
"""The group of entry points that name converters, of keys and values as well as of headers."""

_VERSION: Final = "plugin.version"
_SUFFIXES: Final = ("HeaderConverter", "Converter")
_OWN: Final[Mapping[PluginKind, tuple[str, ...]]] = {
    PluginKind.CONVERTER: converter_classes(),
    PluginKind.HEADER_CONVERTER: header_converter_classes(),
}


class Converters:
    """What a configuration may name as a converter. Any thread may call.

    An author's is a class that is a :class:`~headrace.connect.converting.Converter` or a
    :class:`~headrace.connect.converting.HeaderConverter`; one of the former does for headers, too. Its settings are
    those of its ``config_class``, if it has one, and its version is its ``version``.
    """

    def __init__(self, search: PluginSearch) -> None:
        self._search = search

    def has(self, name: str) -> bool:
        """Whether *name* stands for a converter that can be used."""
        return converter_class(name) is not None or self._class(name) is not None

    def path(self, name: str) -> str:
        """What a slot makes for *name*: an author's class by where it lies, our own as they are called."""
        return name if converter_class(name) else self._path(name) or name

    def full_name(self, name: str) -> str:
        """What is shown for *name*: Java's name of our own, an author's path; what is neither as it is."""
        return converter_class(name) or self._path(name) or name

    def recommended(self, role: Role) -> tuple[str, ...]:
        """The full names of those that may be set for *role*."""
        kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
        own = filter(None, map(converter_class, _OWN[kind]))
        return tuple(sorted((*own, *self._paths(kind))))

    def settings(self, name: str) -> tuple[Setting, ...]:
        """The own settings of a converter, without its role's prefix; none for a name of none."""
        config = _config_class(self._class(name))
        return converter_settings(name) if config is None else config.settings()

    def version(self, name: str) -> str | None:
        """The version of a converter; ``None`` when its author does not tell."""
        return headrace.__version__ if converter_class(name) else _version(self._class(name))

    def problems(
        self, role: Role, class_name: str, config: Mapping[str, str]
    ) -> tuple[Problem, ...]:
        """What is wrong with a converter, its own settings and its version; the key of the class itself is empty."""
        found = tuple(self._problems(role, class_name, config))
        told = version_problem(class_name, config.get(_VERSION), self.version(class_name))
        return found if told is None or ("" in dict(found)) else (*found, (_VERSION, told))

    def listed(self) -> tuple[Plugin, ...]:
        """All of them, those of keys and values first, sorted by class."""
        return tuple(each for kind in _OWN for each in self._of_kind(kind))

    def _of_kind(self, kind: PluginKind) -> list[Plugin]:
        own = (
            Plugin(class_name=each, kind=kind, version=headrace.__version__) for each in _OWN[kind]
        )
        usable = (
            Plugin(class_name=each, kind=kind, version=_version(self._class(each)))
            for each in self._paths(kind)
        )
        broken = self._broken() if kind is PluginKind.CONVERTER else ()
        return sorted((*own, *usable, *broken), key=lambda each: each.class_name)

    def _broken(self) -> Iterator[Plugin]:
        for path in dict.fromkeys(each.path for each in self._found):
            told = _unusable(path)
            if told is not None:
                yield Plugin(class_name=path, kind=PluginKind.CONVERTER, problem=told)

    def _paths(self, kind: PluginKind) -> list[str]:
        paths = dict.fromkeys(each.path for each in self._found)
        return [each for each in paths if _is_of(self._class(each), kind)]

    def _problems(self, role: Role, name: str, config: Mapping[str, str]) -> Iterator[Problem]:
        path = None if converter_class(name) else self._path(name)
        if path is None:
            yield from converter_problems(role, name, config, others=self._others(role, name))
            return
        kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
        told = _unusable(path, kind)
        if told is not None:
            yield "", told
            return
        config_class = _config_class(self._class(path))
        yield from () if config_class is None else config_class.problems(config)

    def _others(self, role: Role, name: str) -> tuple[str, ...]:
        """What to offer beside our own in place of *name*, which may be one of them."""
        if converter_class(name):
            return ()
        return tuple(each for each in self.recommended(role) if ":" in each)

    def _class(self, name: str) -> type[Any] | None:
        """The author's class that *name* stands for, if it can be used."""
        path = None if converter_class(name) else self._path(name)
        return None if path is None or _unusable(path) else _loaded(path)

    def _path(self, name: str) -> str | None:
        called = {each.path for each in self._found if each.is_called(name, *_SUFFIXES)}
        # An ambiguous alias stands for nothing.
        if len(called) == 1:
            return called.pop()
        allowed = ":" in name and self._search.may_import(name.partition(":")[0])
        return name if allowed else None

    @cached_property
    def _found(self) -> tuple[Found, ...]:
        """Authors' converters, found once."""
        return tuple(self._search.found(GROUP, _is_converter))


def _loaded(path: str) -> type[Any]:
    found = class_at(path, object)
    assert isinstance(found, type)
    return found


def _unusable(path: str, *kinds: PluginKind) -> str | None:
    """Why the class at *path* cannot be used as any of *kinds*, if it cannot."""
    try:
        found = _loaded(path)
    except TaskFailedError as error:
        return str(error)
    if any(_is_of(found, kind) for kind in kinds or _OWN):
        return None
    interface = "HeaderConverter" if PluginKind.HEADER_CONVERTER in kinds else "Converter"
    return f"Class class {path} does not implement the {interface} interface"


def _is_of(found: type[Any] | None, kind: PluginKind) -> bool:
    methods = {"encode"} | ({"encode_header"} if kind is PluginKind.HEADER_CONVERTER else set())
    is_made = found is not None and not inspect.isabstract(found)
    return is_made and _can(found, "configure") and any(_can(found, each) for each in methods)


def _can(found: object, method: str) -> bool:
    return callable(getattr(found, method, None))


def _is_converter(found: object) -> bool:
    """Whether *found*, which is in a module that is looked through, is an author's converter."""
    is_protocol = getattr(found, "_is_protocol", False)
    return (
        isinstance(found, type) and not is_protocol and _is_of(found, PluginKind.HEADER_CONVERTER)
    )


def _config_class(found: type[Any] | None) -> type[Config] | None:
    declared = getattr(found, "config_class", None)
    is_config = isinstance(declared, type) and issubclass(declared, Config)
    return declared if is_config else None


def _version(found: type[Any] | None) -> str | None:
    version = getattr(found, "version", None)
    return None if version is None else str(version)
