"""Text and Python values without schema as JSON, byte for byte as Kafka Connect's JsonConverter writes them; pure."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from headrace.java.numbers import java_double

_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}
# Jackson writes UTF-8 from UTF-16 units: a character that needs two of them becomes two escapes.
_ESCAPED = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')


def json_quoted(text: str) -> str:
    """*text* as a JSON string with Jackson's escapes: few, upper-case, and surrogate pairs."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[character]
    units = character.encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


class JsonNull:
    """The type of :data:`JSON_NULL`."""

    def __repr__(self) -> str:
        return "JSON_NULL"


JSON_NULL: Final = JsonNull()
"""The JSON document ``null`` as a value without schema: ``None`` is a record without value."""


def document(value: object) -> str:
    """*value* as a JSON document.

    Floating-point numbers are as Java writes them; NaN and infinities are strings; bytes are base64. A map
    with a key that is not a string is an array of pairs. Decimals, which Kafka Connect refuses here, are numbers
    with all their digits. Raises ``TypeError`` for values that need a schema, such as dates, and
    ``ValueError`` for a decimal that is not finite, and for a value that contains itself.
    """
    try:
        return _json(value)
    except RecursionError:
        raise ValueError("It is nested too deeply, or contains itself.") from None


def _json(value: Any) -> str:  # noqa: ANN401 (whatever a connector returns)
    write = _BY_CLASS.get(type(value))
    if write is None:
        kind = next((each for each in _BY_KIND if isinstance(value, each)), None)
        if kind is None:
            raise TypeError(f"{type(value).__name__} needs a schema to be written as JSON.")
        write = _BY_KIND[kind]
    return write(value)


def _map(entries: Mapping[Any, Any]) -> str:
    if all(isinstance(key, str) for key in entries):
        return f"{{{','.join([f'{_text(key)}:{_json(each)}' for key, each in entries.items()])}}}"
    return f"[{','.join([f'[{_json(key)},{_json(each)}]' for key, each in entries.items()])}]"


def _list(items: list[Any] | tuple[Any, ...]) -> str:
    return f"[{','.join(map(_json, items))}]"


def _text(text: str) -> str:
    # The value of an enumeration's member, not its name.
    return json_quoted(str.__str__(text))


def _floating(number: float) -> str:
    text = java_double(number)
    return text if text[-1].isdigit() else f'"{text}"'


def _decimal(number: Decimal) -> str:
    if not number.is_finite():
        raise ValueError(f"{number} is not a JSON number")
    return str(number)


def _octets(octets: bytes) -> str:
    return f'"{base64.b64encode(octets).decode()}"'


_BY_KIND: Final[Mapping[type[Any], Callable[[Any], str]]] = {
    str: _text,
    bool: lambda value: "true" if value else "false",
    int: int.__repr__,
    float: _floating,
    Mapping: _map,
    list: _list,
    tuple: _list,
    bytes: _octets,
    Decimal: _decimal,
    type(None): lambda _: "null",
    JsonNull: lambda _: "null",
}
# By the exact class first, which is faster than isinstance with each of the kinds.
_BY_CLASS: Final[Mapping[type[Any], Callable[[Any], str]]] = {**_BY_KIND, dict: _map}
