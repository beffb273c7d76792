"""The value that a text without any schema is taken for, and its schema, as Kafka Connect's headers are read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from headrace.connect.schema import BOOLEAN, STRING, Schema, SchemaType
from headrace.transforms.inferred_scalar import (
    FLOAT32,
    Typed,
    as_float32,
    inferred_number,
    inferred_time,
)

_TOKEN = re.compile(r'[:,{}\[\]"]|(?:\\.|[^:,{}\[\]"\\])+\\?|\\', re.DOTALL)
_WORDS: Final[dict[str, Typed | None]] = {
    "null": None,
    "true": (BOOLEAN, True),
    "false": (BOOLEAN, False),
}
# A time of the day has two colons, and these end words.
_WORDS_BEHIND = 4
_WIDTHS: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
)


class _NotNestedError(Exception):
    """What stands in brackets is no list or map: the text is a string."""


def inferred(text: str) -> Typed:
    """What *text* stands for, with its schema; ``(None, None)`` for ``null``. Pure.

    A list or map whose elements have nothing in common has no schema, and stays a list or map. Raises
    ``ValueError`` where Kafka Connect makes of it what no schema describes.
    """
    found = _Reading(text).value(nested=False) if text else (STRING, text)
    return (None, None) if found is None else found


class _Reading:
    """The words of a text, read up to a place."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._place = 0

    def value(self, *, nested: bool) -> Typed | None:
        """The next value; ``None`` for ``null``."""
        if nested and self._consumes('"'):
            return self._quoted()
        for word, meant in _WORDS.items():
            if self._is_word(word, nested=nested):
                return meant
        start = self._place
        try:
            if self._consumes("["):
                return self._list()
            if self._consumes("{"):
                return self._map()
        except _NotNestedError:
            self._place = start
        found = self._scalar()
        if found is None and nested:
            raise _NotNestedError
        return found or (STRING, self._text)

    def _next(self) -> str:
        if self._place >= len(self._tokens):
            raise _NotNestedError
        self._place += 1
        return self._tokens[self._place - 1]

    def _peeks(self, token: str) -> int:
        """How many tokens to pass over to be behind *token*, with white space before it; 0 where another one comes."""
        ahead = [each.strip() for each in self._tokens[self._place : self._place + 2]]
        if ahead[:1] == [token]:
            return 1
        return 2 if ahead == ["", token] else 0

    def _consumes(self, token: str) -> bool:
        passed = self._peeks(token)
        self._place += passed
        return passed > 0

    def _is_word(self, word: str, *, nested: bool) -> bool:
        if self._place >= len(self._tokens) or self._tokens[self._place].strip() != word:
            return False
        if not nested and self._place + 1 < len(self._tokens):
            return False
        self._place += 1
        return True

    def _quoted(self) -> Typed:
        content = ""
        while (token := self._next()) != '"':
            content += token
        return inferred_time(content) or (STRING, content)

    def _scalar(self) -> Typed | None:
        word = self._next().strip()
        if not word or not (word[0].isdecimal() or word[0] in "+-"):
            return None
        further = self._tokens[self._place : self._place + _WORDS_BEHIND]
        if word[0].isdecimal() and len(further) == _WORDS_BEHIND:
            found = inferred_time("".join((word, *further)).strip())
            if found is not None:
                self._place += _WORDS_BEHIND
                return found
        return (inferred_time(word) if word[0].isdecimal() else None) or inferred_number(word)

    def _list(self) -> Typed:
        elements = list[Typed | None]()
        while not self._consumes("]"):
            elements.append(self.value(nested=True))
            if not self._peeks("]") and not self._consumes(","):
                raise _NotNestedError
        shared, values = _aligned(elements)
        schema = None if shared is None else Schema(type=SchemaType.ARRAY, value_schema=shared)
        return schema, values

    def _map(self) -> Typed:
        keys, elements = list[Typed | None](), list[Typed | None]()
        while not self._consumes("}"):
            key = self.value(nested=True)
            if key is None or not self._consumes(":"):
                raise _NotNestedError
            keys.append(key)
            elements.append(self.value(nested=True))
            self._consumes(",")
        key_schema, names = _aligned(keys)
        value_schema, values = _aligned(elements)
        if any(isinstance(name, list | dict) for name in names):
            raise ValueError("a list or map is the key of a map")
        entries = dict(zip(names, values, strict=True))
        if key_schema is None or value_schema is None:
            return None, entries
        return (
            Schema(type=SchemaType.MAP, key_schema=key_schema, value_schema=value_schema),
            entries,
        )


def _aligned(elements: Sequence[Typed | None]) -> tuple[Schema | None, list[Any]]:
    """The schema that all *elements* have, or can be widened to, and their values of it."""
    values: list[Any] = [None if each is None else each[1] for each in elements]
    shared = _shared([each[0] for each in elements if each is not None])
    if shared is None:
        return None, values
    if None in elements:
        raise _NotNestedError
    if shared.type is SchemaType.FLOAT32 or shared.type is SchemaType.FLOAT64:
        values = [as_float32(each) if shared == FLOAT32 else float(each) for each in values]
    return shared, values


def _shared(schemas: Sequence[Schema | None]) -> Schema | None:
    shared = schemas[0] if schemas else None
    for schema in schemas[1:]:
        if shared is None or schema is None:
            return None
        shared = _wider(shared, schema)
    return shared


def _wider(one: Schema, other: Schema) -> Schema | None:
    if one == other:
        return one
    if one.type is other.type and not (one.name or other.name):
        return other
    if one.type not in _WIDTHS or other.type not in _WIDTHS:
        if one.type is other.type:
            raise ValueError("its decimals have different scales")
        return None
    if one.name or other.name:
        raise ValueError("numbers, dates and times are mixed in it")
    return max(one, other, key=lambda each: _WIDTHS.index(each.type))
