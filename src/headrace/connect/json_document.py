"""Python values without schema as JSON, byte for byte as Kafka Connect's JsonConverter writes them; pure."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from headrace.java.text import java_double, json_quoted


class JsonNull:
    """The type of :data:`JSON_NULL`."""

    def __repr__(self) -> str:
        return "JSON_NULL"


JSON_NULL: Final = JsonNull()
"""The JSON document ``null`` as a value without schema: ``None`` is a record without value."""


def document(value: object) -> str:
    """*value* as a JSON document.

    Floating-point numbers are as Java writes them, and strings where they are none; bytes are base64. A map
    with a key that is no string is an array of pairs. Decimals, which Kafka Connect refuses here, are numbers
    with all their digits. Raises ``TypeError`` for what has no form without a schema, such as dates, and
    ``ValueError`` for a decimal that is no number, and for what is nested without end.
    """
    try:
        return _told(value)
    except RecursionError:
        raise ValueError("It is nested too deeply, or holds itself.") from None


def _told(value: Any) -> str:  # noqa: ANN401 (whatever a connector returns)
    tell = _TELLING.get(type(value))
    if tell is None:
        kind = next((each for each in _KINDS if isinstance(value, each)), None)
        if kind is None:
            raise TypeError(f"{type(value).__name__} needs a schema to be written as JSON.")
        tell = _KINDS[kind]
    return tell(value)


def _map(entries: Mapping[Any, Any]) -> str:
    if all(isinstance(key, str) for key in entries):
        return f"{{{','.join([f'{_text(key)}:{_told(each)}' for key, each in entries.items()])}}}"
    return f"[{','.join([f'[{_told(key)},{_told(each)}]' for key, each in entries.items()])}]"


def _list(items: list[Any] | tuple[Any, ...]) -> str:
    return f"[{','.join(map(_told, items))}]"


def _text(text: str) -> str:
    # What an enumeration of texts is worth, and not what it is called.
    return json_quoted(str.__str__(text))


def _floating(number: float) -> str:
    told = java_double(number)
    return told if told[-1].isdigit() else f'"{told}"'


def _decimal(number: Decimal) -> str:
    if not number.is_finite():
        raise ValueError(f"{number} is no JSON number")
    return str(number)


def _octets(octets: bytes) -> str:
    return f'"{base64.b64encode(octets).decode()}"'


_KINDS: Final[Mapping[type[Any], Callable[[Any], str]]] = {
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
# By the very class, which is found without asking each of the kinds.
_TELLING: Final[Mapping[type[Any], Callable[[Any], str]]] = {**_KINDS, dict: _map}
