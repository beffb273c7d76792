"""The folders of ``plugin.path``: which Python modules lie there, and what is told of the rest."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from importlib.machinery import ModuleSpec
from importlib.metadata import distributions
from itertools import chain, islice
from pathlib import Path
from typing import Final

# Where plugins of Java lie: bare, in a folder of their own, and as archives of plugins are unpacked.
_JARS: Final = ("*.jar", "*/*.jar", "*/*/*.jar")
_NAMED_FOLDERS: Final = 3
_DISTRIBUTION: Final = ".dist-info"


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
        """Top-level modules of no installed distribution, so that nothing else tells what is in them."""

    def holds(self, module: str) -> bool:
        """Whether an import of *module* would load it from one of the folders; imports nothing."""
        top = module.partition(".")[0]
        if not self.folders or not top.isidentifier():
            return False
        try:
            spec = importlib.util.find_spec(top)
        except ValueError:
            # What the interpreter itself has made has no place.
            return False
        return spec is not None and all(map(self._is_inside, _places(spec)))

    def warnings(self) -> Iterator[str]:
        """Sentences about what cannot be used."""
        for root, problem in self._problems.items():
            yield f"plugin.path: nothing is found in {root}: {problem}."
        jars = list(islice(dict.fromkeys(self._jars()), _NAMED_FOLDERS + 1))
        if jars:
            named = ", ".join(map(str, jars[:_NAMED_FOLDERS]))
            more = " and others" if len(jars) > _NAMED_FOLDERS else ""
            yield (
                f"plugin.path: the jars in {named}{more} are passed over: Java's plugins cannot run here, "
                "only Python's."
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
    """The names in *folder* that installed distributions have brought, as modules are called."""
    return frozenset(
        file.parts[0].removesuffix(".py")
        for each in distributions(path=[str(folder)])
        for file in each.files or ()
    )


def _modules(inner: Sequence[Path], owned: frozenset[str]) -> Sequence[str]:
    """The modules among *inner*, what lies in a folder, that no distribution has brought."""
    return [name for each in inner if (name := _module_name(each)) and name not in owned]


def _module_name(place: Path) -> str | None:
    """What the file or folder at *place* is imported as; ``None`` for what is no module."""
    # What may not be looked into is none.
    is_module = place.suffix == ".py" or os.path.isfile(place / "__init__.py")  # noqa: PTH113
    name = place.name.removesuffix(".py")
    return name if is_module and name.isidentifier() and not name.startswith("__") else None


def _may_be_plugin(place: Path) -> bool:
    """Whether *place* may be the folder of a plugin, and is no package itself."""
    is_hidden = place.name.startswith((".", "__"))
    return place.is_dir() and not is_hidden and _module_name(place) is None


def _places(spec: ModuleSpec) -> Sequence[str]:
    """The file of a module, or all the folders of a package without one."""
    return [spec.origin] if spec.origin else list(spec.submodule_search_locations or [""])
