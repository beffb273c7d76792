"""The plugins that a worker may load: headrace's own, entry points', those of plugin.modules and plugin.path."""

from __future__ import annotations

import inspect
from functools import cached_property
from typing import Final

from headrace.class_path import class_at, function_at, module_and_name
from headrace.config.aliases import (
    CONNECTORS,
    UnknownConnectorError,
    connector_name,
    connector_path,
    unknown_connector,
)
from headrace.config.connector_config import connector_version
from headrace.config.worker_config import WorkerConfig
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import TaskFailedError
from headrace.herder.answers import Plugin, PluginKind
from headrace.plugins.converter_plugins import Converters
from headrace.plugins.discovery import Found, PluginSearch, Registered
from headrace.plugins.transforms import Stages, stage_plugins

GROUP: Final = "headrace.connectors"
"""The group of entry points that name connectors, as ``name = "package.module:Class"``."""

_OWN: Final = frozenset(CONNECTORS.values())


class Plugins:
    """What a configuration may name in this worker. Any thread may call; modules are imported when first asked for.

    A module is imported only if it is headrace's own, an entry point's, or in ``plugin.modules`` or ``plugin.path``.
    """

    def __init__(self, worker: WorkerConfig, registered: Registered | None = None) -> None:
        self._search = PluginSearch(worker, registered)
        self.converters: Final = Converters(self._search, self.any_plugin)
        """The converters among them."""
        self.stages: Final[Stages] = stage_plugins(self._search, self.any_plugin)
        """The transformations and the predicates."""

    def connector_class(self, name: str) -> type[SourceConnector]:
        """The class that *name* stands for.

        Raises :class:`~headrace.config.aliases.UnknownConnectorError`, with the same message each time, for
        a class that is not a connector or cannot be imported or created.
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
            raise UnknownConnectorError(f"{name} could not be created: {error}") from error
        if getattr(made, "config_class", None) is None:
            path = f"{found.__module__}.{found.__qualname__}"
            # Kafka Connect's sentence; here it is config_class that is missing.
            raise UnknownConnectorError(
                f"{path}.config() must return a ConfigDef that is not null."
            )
        return made

    def full_name(self, name: str) -> str:
        """The name to show for *name*: Java's for a class that we have, another connector's path, else *name* itself."""
        return connector_name(self._path(name)) if self.may_load(name) else name

    def any_plugin(self, name: str) -> str | None:
        """The full name of the plugin of any kind that *name* stands for; ``None`` when there is none."""
        if self.converters.has(name):
            return self.converters.full_name(name)
        stages = (each.known(name) for each in self.stages.values())
        return next(filter(None, stages), None) or self._known(name)

    def may_load(self, name: str) -> bool:
        """Whether *name* stands for a path into a module that may be imported, whether or not a connector is there."""
        try:
            self._path(name)
        except UnknownConnectorError:
            return False
        return True

    def same(self, one: str, other: str) -> bool:
        """Whether two names stand for one class."""
        return self.may_load(one) and self.may_load(other) and self._path(one) == self._path(other)

    def function_problem(self, path: str) -> str | None:
        """Why the function at *path* cannot be used, if it cannot; imports its module if that may be imported."""
        module, _ = module_and_name(path)
        if not self._search.may_import(module):
            return f"This worker may not import the module {module}. Add it to the worker's plugin.modules."
        try:
            function_at(path)
        except TaskFailedError as error:
            return str(error)
        return None

    def listed(self) -> tuple[Plugin, ...]:
        """All plugins, each once, in Kafka Connect's order: by kind, then by class."""
        sources = {each.path: self._source(each) for each in self._found}
        ordered = sorted(sources.values(), key=lambda each: each.class_name)
        stages = (one for each in self.stages.values() for one in each.listed())
        return (*ordered, *stages, *self.converters.listed())

    def _path(self, name: str) -> str:
        own = connector_path(name)
        if own is not None:
            return own
        called = {each.path for each in self._found if each.is_called(name, "Connector")}
        # An ambiguous alias stands for nothing.
        if len(called) == 1:
            return called.pop()
        if ":" in name and self._search.may_import(name.partition(":")[0]):
            return name
        others = (each.path for each in self._found if each.problem is None)
        raise unknown_connector(name, [each for each in dict.fromkeys(others) if each not in _OWN])

    def _known(self, name: str) -> str | None:
        try:
            return connector_name(self._path(name)) if ":" not in name else None
        except UnknownConnectorError:
            return None

    @cached_property
    def _found(self) -> tuple[Found, ...]:
        """Every connector. One that has two names is there twice."""
        own = (Found(path=path, alias=alias) for alias, path in CONNECTORS.items())
        return (*own, *self._search.found(GROUP, _is_connector), *self._search.broken())

    def _source(self, found: Found) -> Plugin:
        problem, version = found.problem, None
        if problem is None:
            try:
                version = connector_version(self.connector_class(found.path))
            except UnknownConnectorError as error:
                problem = str(error)
        return Plugin(
            class_name=connector_name(found.path),
            kind=PluginKind.SOURCE,
            version=version,
            problem=problem,
        )


def _is_connector(value: object) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, SourceConnector)
        and not inspect.isabstract(value)
    )
