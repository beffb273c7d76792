"""The converters that a worker may use: headrace's own, and authors'."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import headrace
from headrace.config.unknown_keys import unknown_key_warnings
from headrace.config.worker_config import ROLES, Role
from headrace.connect.config import Problem
from headrace.connect.setting import Setting
from headrace.converters import (
    converter_class,
    converter_classes,
    converter_problems,
    converter_settings,
    header_converter_classes,
)
from headrace.herder.answers import Plugin, PluginKind
from headrace.plugins.discovery import (
    AuthoredPlugins,
    Interface,
    PluginSearch,
    declared_config,
    declared_version,
    has_methods,
    unusable,
    wrong_kind,
)
from headrace.plugins.versions import version_problem

GROUP: Final = "headrace.converters"
"""The group of entry points that name converters, of keys and values as well as of headers."""

_VERSION: Final = "plugin.version"
# Keys that any converter may be given: Kafka Connect's own, and those that often remain after another one was chosen.
_OF_ANY: Final = frozenset((_VERSION, "converter.type", "schemas.cache.size", "schemas.enable"))
_OWN: Final[Mapping[PluginKind, tuple[str, ...]]] = {
    PluginKind.CONVERTER: converter_classes(),
    PluginKind.HEADER_CONVERTER: header_converter_classes(),
}


def _is_of_columns(found: type[Any]) -> bool:
    return has_methods(found, "configure", "encode")


def _is_of_headers(found: type[Any]) -> bool:
    """A converter of columns can convert headers, too."""
    return has_methods(found, "configure", "encode_header") or _is_of_columns(found)


_INTERFACES: Final[Mapping[PluginKind, Interface]] = {
    PluginKind.CONVERTER: Interface("Converter", _is_of_columns),
    PluginKind.HEADER_CONVERTER: Interface("HeaderConverter", _is_of_headers),
}


class Converters:
    """What a configuration may name as a converter. Any thread may call.

    An author's is a class that is a :class:`~headrace.connect.converting.Converter` or a
    :class:`~headrace.connect.converting.HeaderConverter`; a Converter can convert headers, too. Its settings are
    those of its ``config_class``, if it has one, and its version is its ``version``. *any_plugin* returns the full
    name of a plugin of any kind.
    """

    def __init__(self, search: PluginSearch, any_plugin: Callable[[str], str | None]) -> None:
        self._any_plugin = any_plugin
        self._authored = AuthoredPlugins(
            search,
            GROUP,
            _INTERFACES[PluginKind.HEADER_CONVERTER],
            "HeaderConverter",
            "Converter",
        )

    def has(self, name: str) -> bool:
        """Whether *name* stands for a converter that can be used."""
        return converter_class(name) is not None or self._class(name) is not None

    def path(self, name: str) -> str:
        """What a slot instantiates for *name*: the path of an author's class, or *name* for our own."""
        return name if converter_class(name) else self._authored.path(name) or name

    def full_name(self, name: str) -> str:
        """The name to show for *name*: Java's for our own, the path of an author's, else *name* itself."""
        return converter_class(name) or self._authored.path(name) or self._any_plugin(name) or name

    def recommended(self, role: Role) -> tuple[str, ...]:
        """The full names of those that may be set for *role*."""
        kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
        own = filter(None, map(converter_class, _OWN[kind]))
        return tuple(sorted((*own, *self._usable(kind))))

    def settings(self, name: str) -> tuple[Setting, ...]:
        """The own settings of a converter, without its role's prefix; empty for an unknown name."""
        config = declared_config(self._class(name))
        return converter_settings(name) if config is None else config.settings()

    def version(self, name: str) -> str | None:
        """The version of a converter; ``None`` when its author declares none."""
        return (
            headrace.__version__ if converter_class(name) else declared_version(self._class(name))
        )

    def problems(
        self, role: Role, class_name: str, config: Mapping[str, str]
    ) -> tuple[Problem, ...]:
        """What is wrong with a converter, its own settings and its version; the key of the class itself is empty."""
        found = tuple(self._problems(role, class_name, config))
        full = self.full_name(class_name)
        message = version_problem(full, config.get(_VERSION), self.version(class_name))
        return found if message is None or ("" in dict(found)) else (*found, (_VERSION, message))

    def unknown_key_warnings(self, props: Mapping[str, str]) -> Iterator[str]:
        """Warnings about each key of *props*, a worker's or a connector's, that the converter named there does not know.

        None for a class that declares no settings.
        """
        for role in ROLES:
            prefix = f"{role}.converter."
            known = self._known_keys(props.get(prefix[:-1], ""))
            if known is not None:
                names = [f"{prefix}{each}" for each in known]
                given = (key for key in props if key.startswith(prefix) and key != prefix)
                yield from unknown_key_warnings((key for key in given if key not in names), names)

    def listed(self) -> tuple[Plugin, ...]:
        """All converters, those of keys and values first, sorted by class."""
        return tuple(each for kind in _OWN for each in self._of_kind(kind))

    def _of_kind(self, kind: PluginKind) -> list[Plugin]:
        own = (
            Plugin(class_name=each, kind=kind, version=headrace.__version__) for each in _OWN[kind]
        )
        usable = (
            Plugin(class_name=path, kind=kind, version=declared_version(found))
            for path, found in self._usable(kind).items()
        )
        broken = self._broken() if kind is PluginKind.CONVERTER else ()
        return sorted((*own, *usable, *broken), key=lambda each: each.class_name)

    def _broken(self) -> Iterator[Plugin]:
        for path, message in self._authored.broken():
            yield Plugin(class_name=path, kind=PluginKind.CONVERTER, problem=message)

    def _usable(self, kind: PluginKind) -> dict[str, type[Any]]:
        found = self._authored.usable()
        return {path: each for path, each in found.items() if _INTERFACES[kind].fits(each)}

    def _problems(self, role: Role, name: str, config: Mapping[str, str]) -> Iterator[Problem]:
        kind = PluginKind.HEADER_CONVERTER if role == "header" else PluginKind.CONVERTER
        path = None if converter_class(name) else self._authored.path(name)
        other = None if path or converter_class(name) else self._any_plugin(name)
        if other is not None:
            yield "", wrong_kind(other, _INTERFACES[kind])
            return
        if path is None:
            yield from converter_problems(role, name, config, others=self._others(role, name))
            return
        message = unusable(path, _INTERFACES[kind])
        if message is not None:
            yield "", message
            return
        config_class = declared_config(self._class(path))
        yield from () if config_class is None else config_class.problems(config)

    def _others(self, role: Role, name: str) -> tuple[str, ...]:
        """What to suggest besides our own in place of *name*."""
        if converter_class(name):
            return ()
        return tuple(each for each in self.recommended(role) if ":" in each)

    def _known_keys(self, name: str) -> frozenset[str] | None:
        if converter_class(name) is None and declared_config(self._class(name)) is None:
            return None
        return _OF_ANY.union(each.name for each in self.settings(name))

    def _class(self, name: str) -> type[Any] | None:
        """The author's class that *name* stands for, if it can be used."""
        return None if converter_class(name) else self._authored.class_of(name)
