"""Looks for plugins in all places from which a worker may load them, and in no others."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType
from typing import Final

from headrace.admission.plugin_path import PluginPath
from headrace.runtime.settings.worker_config import WorkerConfig

Registered = Callable[[str], Iterable[EntryPoint]]
"""The entry points of a group."""

_HIDDEN: Final = "another module of this name is installed, and comes before those of plugin.path"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A plugin that may be loaded, by its *path*; *alias* is the name that it was registered with.

    *problem* says why it cannot be loaded.
    """

    path: str
    alias: str | None = None
    problem: str | None = None

    def is_called(self, name: str, *suffixes: str) -> bool:
        """Whether *name* is its path, its alias, or its class's name, in full or without one of *suffixes* (1.9)."""
        simple = self.path.partition(":")[2]
        names = {self.path, self.alias, simple, *(simple.removesuffix(each) for each in suffixes)}
        return bool(name) and name in names


class PluginSearch:
    """Entry points, and what lies in ``plugin.modules`` and ``plugin.path``. Any thread may call.

    Modules are imported when they are first asked for; what is installed does not change while a worker runs.
    """

    def __init__(self, worker: WorkerConfig, registered: Registered | None = None) -> None:
        self._modules = worker.plugin_modules
        self._path = PluginPath(worker.plugin_path)
        self._looks_inside = worker.plugin_discovery.lower() != "service_load"
        self._registered = registered or (lambda group: entry_points(group=group))

    def may_import(self, module: str) -> bool:
        """Whether the worker's configuration allows *module* to be loaded. Imports nothing."""
        return any(_within(module, each) for each in self._modules) or self._path.holds(module)

    def found(self, group: str, fits: Callable[[object], bool]) -> Iterator[Found]:
        """What is registered in *group*, and every class that *fits*; one that has two names is there twice."""
        for each in self._registered(group):
            yield Found(path=f"{each.module}:{each.attr}", alias=each.name)
        for name, module in self._looked_into.items():
            if isinstance(module, ModuleType):
                yield from (_of_class(each) for each in _classes(module, name) if fits(each))

    def broken(self) -> Iterator[Found]:
        """Modules that cannot be imported, with the reason."""
        for name, module in self._looked_into.items():
            if isinstance(module, str):
                yield Found(path=name, problem=f"{name} could not be imported: {module}")

    @cached_property
    def _looked_into(self) -> dict[str, ModuleType | str]:
        """Modules by their names; in place of one that cannot be imported, the reason."""
        inside = self._path.modules if self._looks_inside else ()
        return {
            **{name: _imported(name) if self._path.holds(name) else _HIDDEN for name in inside},
            **{name: _imported(name) for name in self._modules},
        }


def _imported(name: str) -> ModuleType | str:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a module may raise anything when it is imported)
        return str(error) or type(error).__name__


def _classes(module: ModuleType, name: str) -> Iterator[type]:
    """The classes that are defined in *module* or below it, and not only imported."""
    for value in vars(module).values():
        if isinstance(value, type) and f"{value.__module__}.".startswith(f"{name}."):
            yield value


def _of_class(found: type) -> Found:
    return Found(path=f"{found.__module__}:{found.__qualname__}")


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
