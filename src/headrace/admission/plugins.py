"""The connectors that a worker may load: headrace's own, entry points', and those of plugin.modules."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from typing import Final

import headrace
from headrace.class_path import class_at
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import TaskFailedError
from headrace.converters import converter_classes, header_converter_classes
from headrace.runtime.herder.answers import Plugin, PluginKind
from headrace.runtime.settings.aliases import CONNECTORS, UnknownConnectorError, connector_path
from headrace.runtime.settings.connector_version import connector_version
from headrace.runtime.settings.worker_config import WorkerConfig

GROUP: Final = "headrace.connectors"
"""The group of entry points that name connectors, as ``name = "package.module:Class"``."""

_OWN: Final = "headrace."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A connector that may be loaded, by its *path*; *alias* is the name that it was registered with."""

    path: str
    alias: str | None = None
    problem: str | None = None

    def names(self) -> frozenset[str]:
        """What it may be called besides its path (1.9)."""
        simple = self.path.partition(":")[2]
        names = {simple, simple.removesuffix("Connector"), self.alias or simple}
        return frozenset(name for name in names if name)


class Plugins:
    """What a configuration may name in this worker. Any thread may call; modules are imported when first asked for.

    A module is imported only if it is headrace's own, an entry point's, or named in ``plugin.modules``.
    """

    def __init__(
        self,
        worker: WorkerConfig,
        registered: Callable[[], Iterable[EntryPoint]] = lambda: entry_points(group=GROUP),
    ) -> None:
        self._modules = worker.plugin_modules
        self._registered = registered

    def connector_class(self, name: str) -> type[SourceConnector]:
        """The class that *name* stands for.

        Raises :class:`~headrace.runtime.settings.aliases.UnknownConnectorError`, with the same words each time, for
        what is no connector, or one that cannot be imported or made.
        """
        path = self._path(name)
        try:
            found = class_at(path, SourceConnector)
        except TaskFailedError as error:
            raise UnknownConnectorError(str(error)) from error
        assert isinstance(found, type)
        if inspect.isabstract(found):
            raise UnknownConnectorError(
                f"{path}: This class is abstract and cannot be created. Name a class that extends it."
            )
        return found

    def connector(self, name: str) -> SourceConnector:
        """A fresh connector of the class that *name* stands for; raises as :meth:`connector_class`."""
        found = self.connector_class(name)
        try:
            made = found()
        except Exception as error:  # (authors write constructors)
            raise UnknownConnectorError(f"{name} could not be made: {error}") from error
        if getattr(made, "config_class", None) is None:
            path = f"{found.__module__}.{found.__qualname__}"
            # Kafka Connect's sentence; here it is config_class that is missing.
            raise UnknownConnectorError(
                f"{path}.config() must return a ConfigDef that is not null."
            )
        return made

    @property
    def version(self) -> str:
        """The version of what comes with headrace."""
        return headrace.__version__

    def may_load(self, name: str) -> bool:
        """Whether *name* stands for a place in a module that may be imported, whatever lies there."""
        try:
            self._path(name)
        except UnknownConnectorError:
            return False
        return True

    def same(self, one: str, other: str) -> bool:
        """Whether two names stand for one class."""
        return self.may_load(one) and self.may_load(other) and self._path(one) == self._path(other)

    def listed(self) -> tuple[Plugin, ...]:
        """All of them, each once, in Kafka Connect's order: by kind, then by class."""
        sources = {each.path: self._source(each) for each in self._found}
        converters = (
            Plugin(class_name=each, kind=kind, version=self.version)
            for kind, classes in (
                (PluginKind.CONVERTER, converter_classes()),
                (PluginKind.HEADER_CONVERTER, header_converter_classes()),
            )
            for each in sorted(classes)
        )
        return (*sorted(sources.values(), key=lambda each: each.class_name), *converters)

    def _path(self, name: str) -> str:
        try:
            return connector_path(name, plugin_modules=self._modules)
        except UnknownConnectorError as error:
            found = self._found
            called = {each.path for each in found if name in (each.path, *each.names())}
            # An ambiguous alias stands for nothing.
            if len(called) == 1:
                return called.pop()
            others = dict.fromkeys(each.path for each in found if not each.path.startswith(_OWN))
            if "available connectors are" not in str(error) or not others:
                raise
            raise UnknownConnectorError(", ".join((str(error), *others))) from error

    @cached_property
    def _found(self) -> tuple[_Found, ...]:
        """Every connector, found once: what is installed does not change while a worker runs.

        One that has two names is there twice.
        """
        return (*self._own(), *self._of_entry_points(), *self._of_modules())

    @staticmethod
    def _own() -> Iterator[_Found]:
        for alias, path in CONNECTORS.items():
            yield _Found(path=path, alias=alias)

    def _of_entry_points(self) -> Iterator[_Found]:
        for each in self._registered():
            yield _Found(path=f"{each.module}:{each.attr}", alias=each.name)

    def _of_modules(self) -> Iterator[_Found]:
        for name in self._modules:
            try:
                module = importlib.import_module(name)
            except Exception as error:  # noqa: BLE001 (a module may raise anything when it is imported)
                yield _Found(path=name, problem=f"{name} could not be imported: {error}")
                continue
            for value in vars(module).values():
                if _is_connector(value) and f"{value.__module__}.".startswith(f"{name}."):
                    yield _Found(path=f"{value.__module__}:{value.__qualname__}")

    def _source(self, found: _Found) -> Plugin:
        problem, version = found.problem, None
        if problem is None:
            try:
                version = connector_version(self.connector_class(found.path))
            except UnknownConnectorError as error:
                problem = str(error)
        return Plugin(
            class_name=found.path, kind=PluginKind.SOURCE, version=version, problem=problem
        )


def _is_connector(value: object) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, SourceConnector)
        and not inspect.isabstract(value)
    )
