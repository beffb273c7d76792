"""Authors' plugins of one kind: where they lie, by which names, and why one cannot be used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from headrace.admission.plugin_search import Found, PluginSearch
from headrace.class_path import class_at
from headrace.connect.config import Config
from headrace.connect.errors import TaskFailedError

ABSTRACT: Final = "This class is abstract and cannot be created."
"""What Kafka Connect says of a class that only others can be made of."""

_EXTEND: Final = "Name a class that extends it."


@dataclass(frozen=True, slots=True)
class Interface:
    """What a class needs to be a plugin of one kind: *name* is Kafka Connect's, *fits* looks for the methods."""

    name: str
    fits: Callable[[type[Any]], bool]


class AuthoredPlugins:
    """Classes that are registered in *group*, and those in ``plugin.modules`` and ``plugin.path`` that fit *interface*.

    Their simple names may be said without one of *suffixes*. Any thread may call.
    """

    def __init__(
        self, search: PluginSearch, group: str, interface: Interface, *suffixes: str
    ) -> None:
        self._search = search
        self._group = group
        self._interface = interface
        self._suffixes = suffixes

    def path(self, name: str) -> str | None:
        """Where the class lies that *name* stands for, whatever it is; ``None`` when it may not be loaded."""
        called = {each.path for each in self._found if each.is_called(name, *self._suffixes)}
        # An ambiguous alias stands for nothing.
        if len(called) == 1:
            return called.pop()
        allowed = ":" in name and self._search.may_import(name.partition(":")[0])
        return name if allowed else None

    def class_of(self, name: str) -> type[Any] | None:
        """The class that *name* stands for, if it can be used."""
        path = self.path(name)
        return None if path is None or unusable(path, self._interface) else _loaded(path)

    def usable(self) -> dict[str, type[Any]]:
        """Those that were found and can be used, by their paths."""
        classes = {each.path: self.class_of(each.path) for each in self._found}
        return {path: found for path, found in classes.items() if found is not None}

    def broken(self) -> Iterator[tuple[str, str]]:
        """The paths of those that cannot be used, each with the reason."""
        for path in dict.fromkeys(each.path for each in self._found):
            told = unusable(path, self._interface)
            if told is not None:
                yield path, told

    @cached_property
    def _found(self) -> tuple[Found, ...]:
        return tuple(self._search.found(self._group, self._is_one))

    def _is_one(self, found: object) -> bool:
        """Whether *found*, which is in a module that is looked through, is one of them."""
        if not isinstance(found, type) or getattr(found, "_is_protocol", False):
            return False
        # Classes that only others are made of, or that a plugin makes for itself, are no plugins.
        is_part = inspect.isabstract(found) or _needs_arguments(found)
        return not is_part and self._interface.fits(found)


def unusable(path: str, interface: Interface) -> str | None:
    """Why the class at *path* cannot be used as *interface* says, if it cannot."""
    try:
        found = _loaded(path)
    except TaskFailedError as error:
        return str(error)
    if not interface.fits(found):
        return f"Class class {path} does not implement the {interface.name} interface"
    if inspect.isabstract(found):
        return f"{path}: {ABSTRACT} {_EXTEND}"
    if _needs_arguments(found):
        return f"Could not find a public no-argument constructor for class: {path}"
    return None


def has_methods(found: object, *names: str) -> bool:
    """Whether *found* can be called by all of *names*."""
    return all(callable(getattr(found, each, None)) for each in names)


def declared_config(found: object) -> type[Config] | None:
    """The settings that an author's class declares, if it does."""
    declared = getattr(found, "config_class", None)
    is_config = isinstance(declared, type) and issubclass(declared, Config)
    return declared if is_config else None


def declared_version(found: object) -> str | None:
    """The version that an author's class tells, if it does."""
    version = getattr(found, "version", None)
    return None if version is None else str(version)


def _needs_arguments(found: type[Any]) -> bool:
    try:
        inspect.signature(found).bind()
    except TypeError:
        return True
    except ValueError:
        # What is written in C need not tell.
        return False
    return False


def _loaded(path: str) -> type[Any]:
    found = class_at(path, object)
    assert isinstance(found, type)
    return found
