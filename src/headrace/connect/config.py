"""Configurations: classes whose attributes are settings, read from a map of strings."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, Self, TypeVar, dataclass_transform

from headrace.connect.errors import ConfigError
from headrace.connect.setting import Declared, Password, Setting, SettingType, setting

Problem = tuple[str, str]
"""A key, and a sentence that says what is wrong with it."""

_TYPES: Mapping[object, SettingType] = {
    str: SettingType.STRING,
    int: SettingType.INT,
    float: SettingType.DOUBLE,
    bool: SettingType.BOOLEAN,
    tuple[str, ...]: SettingType.LIST,
    Password: SettingType.PASSWORD,
}


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
class _Declaring:
    """Makes a frozen dataclass of every subclass."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)


class Config(_Declaring):
    """The settings of something, as attributes with types; extend it and declare each with ``setting``.

    An attribute is a ``str``, ``int``, ``float``, ``bool``, ``tuple[str, ...]``, ``Password`` or a
    ``Literal`` of strings, or one of these or ``None``. Instances are immutable, equal when their settings
    are, and never show a password. Making one directly, by keyword, checks nothing: use :meth:`parse`.
    """

    originals: Mapping[str, str] = dataclasses.field(
        default_factory=dict[str, str], compare=False, repr=False
    )
    """What was parsed, unknown keys included. Holds secrets as they were given."""

    @classmethod
    def parse(cls, props: Mapping[str, str], *, where: str = "") -> Self:
        """Read *props*; keys that no setting has are ignored.

        Raises :class:`~headrace.connect.errors.ConfigError` with every problem at once; *where* says in
        its message what was read, such as a file's path. Rules across settings are checked only when each
        setting is valid by itself.
        """
        values, problems = cls._read(props)
        if problems:
            raise ConfigError(problems, where=where)
        config = cls(originals=dict(props), **values)
        crossed = tuple(config.check())
        if crossed:
            raise ConfigError(crossed, where=where)
        return config

    @classmethod
    def problems(cls, props: Mapping[str, str]) -> tuple[Problem, ...]:
        """The problems that :meth:`parse` would raise, in order; empty when nothing is wrong."""
        try:
            cls.parse(props)
        except ConfigError as error:
            return error.problems
        return ()

    @classmethod
    def settings(cls) -> tuple[Setting, ...]:
        """Every setting of this class, in the order of declaration, inherited ones first.

        An override may add those of other classes, which it checks in :meth:`check`.
        """
        return cls._attributes()

    @classmethod
    @functools.cache
    def _attributes(cls) -> tuple[Setting, ...]:
        """The settings that are attributes of this class."""
        hints = typing.get_type_hints(cls)
        return tuple(
            _declared(cls, each.name, each.metadata).of(each.name, *_annotated(hints[each.name]))
            for each in dataclasses.fields(cls)
            if each.name != "originals"
        )

    def check(self) -> Iterator[Problem]:
        """Yield what is wrong across settings that are each valid, as ``(key, sentence)``.

        Override it; pure, called once by :meth:`parse`.
        """
        yield from ()

    def under(self, prefix: str) -> dict[str, str]:
        """The original keys that begin with *prefix*, without it."""
        return under(self.originals, prefix)

    @classmethod
    def _read(cls, props: Mapping[str, str]) -> tuple[dict[str, Any], list[Problem]]:
        values = dict[str, Any]()
        problems = list[Problem]()
        for each in cls._attributes():
            try:
                values[each.attribute] = each.read(props)
            except ValueError as error:
                problems.append((each.name, str(error)))
        return values, problems


def under(props: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The entries of *props* whose keys begin with *prefix*, without it."""
    return {
        key.removeprefix(prefix): value
        for key, value in props.items()
        if key.startswith(prefix) and key != prefix
    }


def _declared(owner: type[Config], attribute: str, metadata: Mapping[Any, Any]) -> Declared:
    if Declared not in metadata:
        raise TypeError(f"{owner.__name__}.{attribute} must be declared with setting(…).")
    return metadata[Declared]


def _annotated(annotation: object) -> tuple[SettingType, tuple[str, ...]]:
    """The type that an annotation stands for, and the values that a ``Literal`` allows."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        (annotation,) = (each for each in typing.get_args(annotation) if each is not type(None))
    if typing.get_origin(annotation) is Literal:
        return SettingType.STRING, typing.get_args(annotation)
    if annotation not in _TYPES:
        raise TypeError(f"A setting cannot be of type {annotation}.")
    return _TYPES[annotation], ()


_C = TypeVar("_C", bound=Config)


def every_problem(
    kind: type[_C],
    props: Mapping[str, str],
    further: Callable[[_C], Iterable[Problem]] = lambda _: (),
    *,
    instead: Mapping[str, object] | None = None,
) -> tuple[Problem, ...]:
    """What is wrong with *props* as a *kind*; a key whose value cannot be read is reported once.

    ``kind.check`` and *further* are called even when single settings are wrong. Those settings then have their
    defaults, or the values that *instead* has for their keys, for which no rule reports a problem: otherwise a rule
    might report a value that was never given.
    """
    values, problems = _read(kind, props, instead or {})
    wrong = dict(problems)
    config = kind(originals={key: props[key] for key in props if key not in wrong}, **values)
    across = (*kind.check(config), *further(config))
    return (*problems, *(each for each in across if each[0] not in wrong))


def _read(
    kind: type[Config], props: Mapping[str, str], instead: Mapping[str, object]
) -> tuple[dict[str, Any], list[Problem]]:
    values = dict[str, Any]()
    problems = list[Problem]()
    for each in kind.settings():
        try:
            values[each.attribute] = each.read(props)
        except ValueError as error:
            problems.append((each.name, str(error)))
            default = None if each.required else each.default
            values[each.attribute] = instead.get(each.name, default)
    return values, problems
