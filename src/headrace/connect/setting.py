"""One setting: its key, its type, its limits, and its documentation."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Literal, TypedDict, TypeVar, Unpack, overload

HIDDEN: Final = "[hidden]"
"""What is shown in place of a secret."""

_TRIMMED = "".join(map(chr, range(0x21)))
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_T = TypeVar("_T")
_EMPTY: Final = "String must be non-empty"
REQUIRED: Final = object()
"""In place of a default, for a setting that has none."""


class SettingType(StrEnum):
    """Kafka's names for the types of settings."""

    STRING = "STRING"
    INT = "INT"
    SHORT = "SHORT"
    LONG = "LONG"
    DOUBLE = "DOUBLE"
    BOOLEAN = "BOOLEAN"
    LIST = "LIST"
    CLASS = "CLASS"
    PASSWORD = "PASSWORD"  # noqa: S105 (the name of a type, not a secret)


@dataclass(frozen=True, slots=True, repr=False)
class Password:
    """A secret: equal to itself, shown as ``[hidden]`` wherever it is printed or formatted."""

    value: str

    def __repr__(self) -> str:
        return HIDDEN


_BITS = {SettingType.SHORT: 16, SettingType.INT: 32, SettingType.LONG: 64}


def parsed(text: str, kind: SettingType) -> object:
    """The value that *text* stands for; surrounding white space is ignored.

    Raises ``ValueError`` with Kafka's message when *text* is not of *kind*. Never names the value, which
    may be a secret.
    """
    trimmed = trimmed_as_java(text)
    if kind in _BITS:
        return _integer(trimmed, kind)
    return _READERS.get(kind, str)(trimmed)


def trimmed_as_java(text: str) -> str:
    """*text* without the spaces and control characters around it, and nothing else."""
    return text.strip(_TRIMMED)


def _integer(text: str, kind: SettingType) -> int:
    limit = 2 ** (_BITS[kind] - 1)
    if not _INTEGER.fullmatch(text) or not -limit <= int(text) < limit:
        raise ValueError(f"Not a number of type {kind}")
    return int(text)


def _decimal(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or not math.isfinite(float(text)):
        raise ValueError(f"Not a number of type {SettingType.DOUBLE}")
    return float(text)


def _boolean(text: str) -> bool:
    if text.lower() not in _BOOLEANS:
        raise ValueError("Expected value to be either true or false")
    return _BOOLEANS[text.lower()]


def _items(text: str) -> tuple[str, ...]:
    return tuple(_COMMA.split(text)) if text else ()


_READERS: dict[SettingType, Callable[[str], object]] = {
    SettingType.DOUBLE: _decimal,
    SettingType.BOOLEAN: _boolean,
    SettingType.LIST: _items,
    SettingType.PASSWORD: Password,
}


Importance = Literal["high", "medium", "low"]
Width = Literal["NONE", "SHORT", "MEDIUM", "LONG"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the value of a setting may be, beyond its type."""

    at_least: float | None = None
    at_most: float | None = None
    one_of: tuple[str, ...] = ()
    ignore_case: bool = False
    non_empty: bool = False
    valid: Callable[[Any], str | None] | None = None

    def problem(self, value: object) -> str | None:
        """What is wrong with *value*, in Kafka's words, or ``None``; every item of a list is checked."""
        if isinstance(value, tuple):
            items: tuple[object, ...] = value
            if self.non_empty and not items:
                return _EMPTY
            found = (self._of_text(item) for item in items if isinstance(item, str))
            return next(filter(None, found), None) or self._of_any(value)
        if isinstance(value, str):
            return self._of_text(value) or self._of_any(value)
        return self._of_number(value) or self._of_any(value)

    def _of_number(self, value: object) -> str | None:
        if not isinstance(value, int | float):
            return None
        if self.at_least is not None and value < self.at_least:
            return f"Value must be at least {self.at_least}"
        if self.at_most is not None and value > self.at_most:
            return f"Value must be no more than {self.at_most}"
        return None

    def _of_text(self, value: str) -> str | None:
        if self.non_empty and not value:
            return _EMPTY
        if not self.one_of or value in self.one_of:
            return None
        if self.ignore_case and value.lower() in (each.lower() for each in self.one_of):
            return None
        how = " (case insensitive)" if self.ignore_case else ""
        return f"String must be one of{how}: {', '.join(self.one_of)}"

    def _of_any(self, value: object) -> str | None:
        return self.valid(value) if self.valid else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The full description of one key of a configuration; validation and reference pages use this.

    *order* counts within *group* and is -1 when not given. *dependents* are the names of settings that
    have to be checked again when this one changes. *recommended* are values to offer, not a limit.
    """

    name: str
    doc: str
    type: SettingType = SettingType.STRING
    default: object = REQUIRED
    importance: Importance = "medium"
    limits: Limits = Limits()
    attribute: str = ""
    group: str | None = None
    order: int = -1
    width: Width = "NONE"
    display_name: str = ""
    dependents: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()

    @property
    def required(self) -> bool:
        """Whether a configuration must have this key."""
        return self.default is REQUIRED

    def read(self, props: Mapping[str, str]) -> object:
        """The value in *props*, or the default. Raises ``ValueError`` with Kafka's sentence."""
        if self.name in props:
            return self._value(props[self.name])
        if self.required:
            raise ValueError(
                f'Missing required configuration "{self.name}" which has no default value.'
            )
        return self.default

    def _value(self, text: str) -> object:
        try:
            value = parsed(text, self.type)
        except ValueError as error:
            raise ValueError(self._refusal(text, str(error))) from None
        problem = self.limits.problem(value)
        if problem:
            raise ValueError(self._refusal(text, problem))
        return value

    def _refusal(self, text: str, problem: str) -> str:
        shown = HIDDEN if self.type is SettingType.PASSWORD else trimmed_as_java(text)
        return f"Invalid value {shown} for configuration {self.name}: {problem}"


class SettingOptions(TypedDict, total=False):
    """The options of a setting besides its name, default and documentation.

    *kind* is needed where the annotation is not enough: LONG or SHORT (an ``int`` is INT), CLASS (a
    ``str`` is STRING). *valid* returns what is wrong with a value, or ``None``.
    """

    kind: SettingType
    importance: Importance
    at_least: float
    at_most: float
    one_of: tuple[str, ...]
    ignore_case: bool
    non_empty: bool
    valid: Callable[[Any], str | None]
    group: str
    order: int
    width: Width
    display_name: str
    dependents: tuple[str, ...]
    recommended: tuple[str, ...]


@overload
def setting(
    name: str | None = None, /, *, doc: str, default: _T, **options: Unpack[SettingOptions]
) -> _T: ...
@overload
def setting(name: str | None = None, /, *, doc: str, **options: Unpack[SettingOptions]) -> Any: ...  # noqa: ANN401 (a field's type is its annotation)
def setting(
    name: str | None = None,
    /,
    *,
    doc: str,
    default: object = REQUIRED,
    **options: Unpack[SettingOptions],
) -> Any:
    """Declare an attribute of a :class:`~headrace.connect.config.Config` as a setting.

    *name* is the key in a configuration (default: the attribute's name with dots for underscores). Without
    *default* the setting is required; a default of ``None`` makes it optional.
    """
    limits = {each.name for each in dataclasses.fields(Limits)}
    chosen = {key: value for key, value in options.items() if key in limits}
    other = {key: value for key, value in options.items() if key not in limits}
    declared = Declared(
        name=name, kind=options.get("kind"), default=default, doc=doc, limits=chosen, other=other
    )
    value = dataclasses.MISSING if default is REQUIRED else default
    return dataclasses.field(default=value, metadata={Declared: declared})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The arguments of ``setting(…)``, kept until the class that holds it knows the attribute's type."""

    name: str | None
    kind: SettingType | None
    default: object
    doc: str
    limits: Mapping[str, Any]
    other: Mapping[str, Any]

    def of(self, attribute: str, kind: SettingType, one_of: tuple[str, ...] = ()) -> Setting:
        """The setting of *attribute*, whose annotation gives its *kind* and the values of a ``Literal``."""
        limits: dict[str, Any] = {"one_of": one_of, **self.limits}
        name = self.name or attribute.replace("_", ".")
        other = {key: value for key, value in self.other.items() if key != "kind"}
        made = Setting(
            name=name,
            attribute=attribute,
            type=self.kind or kind,
            default=self.default,
            doc=self.doc,
            limits=Limits(**limits),
            **other,
        )
        return made if made.display_name else dataclasses.replace(made, display_name=name)
