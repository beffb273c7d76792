"""Looks for plugins in ``plugin.path``, modules and entry points, and says why one that was found cannot be used."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import ModuleSpec
from importlib.metadata import EntryPoint, distributions, entry_points
from itertools import chain, islice
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from headrace.class_path import class_at, interruption_behind
from headrace.config.worker_config import WorkerConfig
from headrace.connect.config import Config
from headrace.connect.errors import TaskFailedError

# Where Java plugins are: directly in a folder, in a folder of their own, and where archives of plugins unpack to.
_JARS: Final = ("*.jar", "*/*.jar", "*/*/*.jar")
_NAMED_FOLDERS: Final = 3
_DISTRIBUTION: Final = ".dist-info"
_SHADOWED: Final = "another installed module has this name and takes precedence over plugin.path"
ABSTRACT: Final = "This class is abstract and cannot be created."
"""What Kafka Connect says of an abstract class."""

WRONG_KIND: Final = "Class class "
"""How Kafka Connect's sentence about a class of the wrong kind begins."""

_EXTEND: Final = "Name a class that extends {}."


def absolute_path(text: str, folder: Path) -> str:
    """*text*, a value of ``plugin.path``, with relative folders below *folder*. Looks at no disk."""
    roots = filter(None, (each.strip() for each in text.split(",")))
    return ",".join(os.path.abspath(folder / Path(each).expanduser()) for each in roots)  # noqa: PTH100 (links stay as they are)


class PluginPath:
    """The folders of a worker's ``plugin.path``, as they were when this was made.

    Plugins lie in *roots* or, as users of Kafka Connect lay them out, in a folder of their own in one of them.
    """

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = [Path(each) for each in roots]
        self._problems = dict[Path, str]()
        modules = {
            str(folder): found for root in self._roots for folder, found in self._folders(root)
        }
        self.folders: Final = tuple(modules)
        """Where modules are imported from, absolute."""
        self.modules: Final = tuple(chain.from_iterable(modules.values()))
        """Top-level modules of no installed distribution, so that no metadata lists their plugins."""

    def holds(self, module: str) -> bool:
        """Whether an import of *module* would load it from one of the folders; imports nothing."""
        top = module.partition(".")[0]
        if not self.folders or not top.isidentifier():
            return False
        try:
            spec = importlib.util.find_spec(top)
        except ValueError:
            # Modules that the interpreter itself creates have no spec.
            return False
        return spec is not None and all(map(self._is_inside, _places(spec)))

    def warnings(self) -> Iterator[str]:
        """Sentences about what cannot be used."""
        for root, problem in self._problems.items():
            yield f"plugin.path: {root} cannot be read: {problem}."
        jars = list(islice(dict.fromkeys(self._jars()), _NAMED_FOLDERS + 1))
        if jars:
            named = ", ".join(map(str, jars[:_NAMED_FOLDERS]))
            more = " and others" if len(jars) > _NAMED_FOLDERS else ""
            yield (
                f"plugin.path: the jars in {named}{more} are ignored: Java plugins cannot run here, only "
                "Python plugins."
            )

    def _folders(self, root: Path) -> Iterator[tuple[Path, Sequence[str]]]:
        """The folders of plugins in *root*, itself included, each with its modules."""
        inner = self._listed(root)
        if root in self._problems:
            return
        owned = _owned(root)
        yield root, _modules(inner, owned)
        for each in inner:
            if each.name not in owned and _may_be_plugin(each):
                listed = self._listed(each)
                if any(file.suffix == _DISTRIBUTION or _module_name(file) for file in listed):
                    yield each, _modules(listed, _owned(each))

    def _listed(self, folder: Path) -> Sequence[Path]:
        try:
            return sorted(folder.iterdir())
        except OSError as error:
            self._problems[folder] = error.strerror or type(error).__name__
            return ()

    def _is_inside(self, place: str) -> bool:
        return any(Path(place).is_relative_to(each) for each in self.folders)

    def _jars(self) -> Iterator[Path]:
        for root in self._roots:
            if root not in self._problems:
                yield from (each.parent for pattern in _JARS for each in sorted(root.glob(pattern)))


def _owned(folder: Path) -> frozenset[str]:
    """The names in *folder* that belong to installed distributions, as modules are called."""
    return frozenset(
        file.parts[0].removesuffix(".py")
        for each in distributions(path=[str(folder)])
        for file in each.files or ()
    )


def _modules(inner: Sequence[Path], owned: frozenset[str]) -> Sequence[str]:
    """The modules among *inner*, the content of a folder, that belong to no distribution."""
    return [name for each in inner if (name := _module_name(each)) and name not in owned]


def _module_name(place: Path) -> str | None:
    """What the file or folder at *place* is imported as; ``None`` if it is not a module."""
    # os.path.isfile, because Path.is_file raises for a folder that may not be read.
    is_module = place.suffix == ".py" or os.path.isfile(place / "__init__.py")  # noqa: PTH113
    name = place.name.removesuffix(".py")
    return name if is_module and name.isidentifier() and not name.startswith("__") else None


def _may_be_plugin(place: Path) -> bool:
    """Whether *place* may be the folder of a plugin, and is not a package itself."""
    is_hidden = place.name.startswith((".", "__"))
    return place.is_dir() and not is_hidden and _module_name(place) is None


def _places(spec: ModuleSpec) -> Sequence[str]:
    """The file of a module, or all the folders of a package without one."""
    return [spec.origin] if spec.origin else list(spec.submodule_search_locations or [""])


Registered = Callable[[str], Iterable[EntryPoint]]
"""The entry points of a group."""


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
        """Plugins registered in *group*, and every class that *fits*; one that has two names is there twice."""
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
            **{name: _imported(name) if self._path.holds(name) else _SHADOWED for name in inside},
            **{name: _imported(name) for name in self._modules},
        }


def _imported(name: str) -> ModuleType | str:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # noqa: BLE001 (a module may raise anything when it is imported)
        if (interruption := interruption_behind(error)) is not None:
            raise interruption from None
        return str(error) or type(error).__name__


def _classes(module: ModuleType, name: str) -> Iterator[type]:
    """The classes that are defined in *module* or below it, not only imported there."""
    for value in vars(module).values():
        if isinstance(value, type) and f"{value.__module__}.".startswith(f"{name}."):
            yield value


def _of_class(found: type) -> Found:
    return Found(path=f"{found.__module__}:{found.__qualname__}")


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@dataclass(frozen=True, slots=True)
class Interface:
    """What a class needs to be a plugin of one kind: *name* is Kafka Connect's, *fits* looks for the methods."""

    name: str
    fits: Callable[[type[Any]], bool]


class AuthoredPlugins:
    """Classes that are registered in *group*, and those in ``plugin.modules`` and ``plugin.path`` that fit *interface*.

    Their simple names may be given without one of *suffixes*. Any thread may call.
    """

    def __init__(
        self, search: PluginSearch, group: str, interface: Interface, *suffixes: str
    ) -> None:
        self._search = search
        self._group = group
        self._interface = interface
        self._suffixes = suffixes

    def path(self, name: str) -> str | None:
        """The path that *name* stands for, whether or not it can be used; ``None`` when it may not be loaded."""
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
        """The classes that were found and can be used, by their paths."""
        classes = {each.path: self.class_of(each.path) for each in self._found}
        return {path: found for path, found in classes.items() if found is not None}

    def broken(self) -> Iterator[tuple[str, str]]:
        """The paths of classes that cannot be used, each with the reason."""
        for path in dict.fromkeys(each.path for each in self._found):
            message = unusable(path, self._interface)
            if message is not None:
                yield path, message

    @cached_property
    def _found(self) -> tuple[Found, ...]:
        return tuple(self._search.found(self._group, self._is_one))

    def _is_one(self, found: object) -> bool:
        """Whether *found*, a name in a scanned module, is such a plugin."""
        if not isinstance(found, type) or getattr(found, "_is_protocol", False):
            return False
        # Abstract classes, and those that a plugin creates itself with arguments, are not plugins.
        is_part = inspect.isabstract(found) or _needs_arguments(found)
        return not is_part and self._interface.fits(found)


def unusable(path: str, interface: Interface) -> str | None:
    """Why the class at *path* cannot be used as *interface* says, if it cannot."""
    try:
        found = _loaded(path)
    except TaskFailedError as error:
        return str(error)
    if not interface.fits(found):
        return wrong_kind(path, interface)
    if inspect.isabstract(found):
        return f"{ABSTRACT} {_EXTEND.format(path)}"
    if _needs_arguments(found):
        return f"Could not find a public no-argument constructor for class: {path}"
    return None


def wrong_kind(name: str, interface: Interface) -> str:
    """Kafka Connect's sentence that the class *name* does not implement *interface*. Pure."""
    return f"{WRONG_KIND}{name} does not implement the {interface.name} interface"


def has_methods(found: object, *names: str) -> bool:
    """Whether *found* has methods with all of *names*."""
    return all(callable(getattr(found, each, None)) for each in names)


def declared_config(found: object) -> type[Config] | None:
    """The ``config_class`` of an author's class, if it declares one."""
    declared = getattr(found, "config_class", None)
    is_config = isinstance(declared, type) and issubclass(declared, Config)
    return declared if is_config else None


def declared_version(found: object) -> str | None:
    """The version of an author's class, if it declares one."""
    version = getattr(found, "version", None)
    return None if version is None else str(version)


def _needs_arguments(found: type[Any]) -> bool:
    try:
        inspect.signature(found).bind()
    except TypeError:
        return True
    except ValueError:
        # Classes written in C need not have a signature.
        return False
    return False


def _loaded(path: str) -> type[Any]:
    found = class_at(path, object)
    assert isinstance(found, type)
    return found
