"""The types of settings, and how the text of a configuration becomes a value of each of them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

HIDDEN: Final = "[hidden]"
"""What is shown in place of a secret."""


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
_TRIMMED = "".join(map(chr, range(0x21)))
_BOOLEANS = {"true": True, "false": False}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def parsed(text: str, kind: SettingType) -> object:
    """The value that *text* stands for; surrounding white space does not count.

    Raises ``ValueError`` with Kafka's words when *text* is not of *kind*. Never names the value, which
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
