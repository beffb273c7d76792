"""The transformations or the predicates that a worker may use: headrace's own, and authors'."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import headrace
from headrace.connect.config import Config
from headrace.herder.answers import Plugin, PluginKind
from headrace.plugins.discovery import (
    ABSTRACT,
    AuthoredPlugins,
    Interface,
    PluginSearch,
    declared_config,
    declared_version,
    has_methods,
    unusable,
    wrong_kind,
)
from headrace.transforms.catalogue import (
    PREDICATE_CLASSES,
    TRANSFORM_CLASSES,
    predicate_config,
    transform_config,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageKind:
    """Transformations or predicates: our own, by Java's names, and where authors' are registered."""

    kind: PluginKind
    group: str
    interface: Interface
    suffixes: tuple[str, ...]
    own: Sequence[str]
    own_config: Callable[[str], type[Config] | None]


TRANSFORMATIONS: Final = StageKind(
    kind=PluginKind.TRANSFORMATION,
    group="headrace.transforms",
    interface=Interface("Transformation", lambda found: has_methods(found, "configure", "apply")),
    suffixes=("Transformation", "Transform"),
    own=TRANSFORM_CLASSES,
    own_config=transform_config,
)
PREDICATES: Final = StageKind(
    kind=PluginKind.PREDICATE,
    group="headrace.predicates",
    interface=Interface("Predicate", lambda found: has_methods(found, "configure", "test")),
    suffixes=("Predicate",),
    own=PREDICATE_CLASSES,
    own_config=predicate_config,
)


class NoConfig(Config):
    """The settings of a class that declares none: it alone checks what it is given."""


class StagePlugins:
    """What a configuration may name as one of a *kind*. Any thread may call.

    An author's is a class that is a :class:`~headrace.connect.transforming.Transform` or a
    :class:`~headrace.connect.transforming.Predicate`. Its settings are those of its ``config_class``, if it has one,
    and its version is its ``version``. *any_plugin* returns the full name of a plugin of any kind.
    """

    def __init__(
        self, search: PluginSearch, kind: StageKind, any_plugin: Callable[[str], str | None]
    ) -> None:
        self._kind = kind
        self._any_plugin = any_plugin
        self._authored = AuthoredPlugins(search, kind.group, kind.interface, *kind.suffixes)

    def config(self, name: str) -> type[Config] | None:
        """The settings of the class that *name* stands for; ``None`` when that cannot be used."""
        if self._own(name):
            return self._kind.own_config(name)
        found = self._authored.class_of(name)
        return None if found is None else declared_config(found) or NoConfig

    def version(self, name: str) -> str | None:
        """The version of the class that *name* stands for; ``None`` when its author declares none."""
        if self._own(name):
            return headrace.__version__
        return declared_version(self._authored.class_of(name))

    def full_name(self, name: str) -> str:
        """The name to show for *name*, by which a slot makes it as well: Java's for our own, else an author's path."""
        return self._own(name) or self._authored.path(name) or self._any_plugin(name) or name

    def known(self, name: str) -> str | None:
        """The full name of the class that *name* stands for, if it can be used."""
        return self.full_name(name) if self.config(name) is not None else None

    def problem(self, name: str) -> str | None:
        """Why the class that *name* stands for cannot be used, if it cannot; Kafka Connect's sentence, without the key."""
        if self._own(name):
            return None
        path = self._authored.path(name)
        if path is not None:
            return unusable(path, self._kind.interface)
        # ReplaceField is abstract in Java: only ReplaceField$Key and ReplaceField$Value can be used.
        nested = [each for each in self._kind.own if name in _names(each.partition("$")[0])]
        if nested:
            return f"{ABSTRACT} Did you mean {', '.join(nested)}?"
        other = self._any_plugin(name)
        if other is not None:
            return wrong_kind(other, self._kind.interface)
        return f"Class {name} could not be found."

    def recommended(self) -> tuple[str, ...]:
        """The full names of all that can be used."""
        return tuple(sorted((*self._kind.own, *self._authored.usable())))

    def listed(self) -> tuple[Plugin, ...]:
        """All plugins of this kind, sorted by class."""
        return tuple(sorted(self._all(), key=lambda each: each.class_name))

    def _all(self) -> Iterator[Plugin]:
        kind = self._kind.kind
        for each in self._kind.own:
            yield Plugin(class_name=each, kind=kind, version=headrace.__version__)
        for path, found in self._authored.usable().items():
            yield Plugin(class_name=path, kind=kind, version=declared_version(found))
        for path, message in self._authored.broken():
            yield Plugin(class_name=path, kind=kind, problem=message)

    def _own(self, name: str) -> str | None:
        """Java's name of our own class that *name* stands for, if it is one."""
        return next((each for each in self._kind.own if name in _names(each)), None)


def _names(java_name: str) -> tuple[str, str]:
    """With its package, and without."""
    return java_name, java_name.rpartition(".")[2]
