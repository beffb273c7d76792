"""Bodies of requests, read as Kafka Connect reads them: scalars become text where text is wanted."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn, cast

from headrace.rest.errors import BodyError


class Number(str):
    """A number as the client wrote it: text in configurations, a value in offsets."""

    __slots__ = ()

    def value(self) -> int | float:
        """What it stands for, as offsets hold it. Raises ``ValueError`` for one that is out of range."""
        if self.removeprefix("-").isdecimal():
            # Python refuses to read integers of thousands of digits, with a ValueError.
            return int(self)
        value = float(self)
        if not math.isfinite(value):
            raise ValueError("out of range")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An object of which all fields are known: *kind* is its name in errors."""

    kind: str
    fields: Sequence[str]


def json_body(body: bytes) -> object:
    """The JSON value in *body*, numbers as :class:`Number`; ``None`` for none and for ``null``.

    Raises :class:`~headrace.rest.errors.BodyError` for what is no JSON; never repeats what was sent.
    """
    if not body.strip():
        return None
    try:
        text = body.decode(json.detect_encoding(body))
        value: object = json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_refuse
        )
        _check_unicode(text, value)
    except UnicodeDecodeError as error:
        raise BodyError(f"Invalid UTF-8 in the request body at byte {error.start}") from None
    except json.JSONDecodeError as error:
        where = f"line: {error.lineno}, column: {error.colno}"
        raise BodyError(f"Unexpected character or end of input: {error.msg} ({where})") from None
    except RecursionError:
        raise BodyError("The request body is nested too deeply") from None
    return value


def object_body(body: bytes, shape: Shape) -> Mapping[str, object]:
    """The object in *body*, which may have only the fields of *shape*. Raises ``BodyError``."""
    return checked_object(json_body(body), shape)


def checked_object(value: object, shape: Shape) -> Mapping[str, object]:
    """*value*, if it is an object with only the fields of *shape*. Raises ``BodyError``."""
    if value is None:
        raise BodyError(
            f"The request has no body; send a JSON object with: {', '.join(shape.fields)}"
        )
    if not isinstance(value, dict):
        raise BodyError(_cannot(shape.kind, value))
    members = cast("dict[str, object]", value)
    for name in members:
        if name not in shape.fields:
            known = ", ".join(f'"{field}"' for field in shape.fields)
            raise BodyError(
                f'Unrecognized field "{name}" (class {shape.kind}), not marked as ignorable '
                f"({len(shape.fields)} known properties: {known})"
            )
    return members


def config_body(body: bytes) -> dict[str, str | None]:
    """The configuration in *body*: a map of text. Raises ``BodyError``."""
    return config_map(json_body(body))


def config_map(value: object) -> dict[str, str | None]:
    """*value* as a configuration; numbers and booleans become text as they were written, null ``None``."""
    if value is None:
        raise BodyError("The request has no configuration; send a JSON object of names and values")
    if not isinstance(value, dict):
        raise BodyError(_cannot("Map<String, String>", value))
    members = cast("dict[str, object]", value)
    return {name: text_of(each, f'["{name}"]') for name, each in members.items()}


def text_of(value: object, where: str) -> str | None:
    """A scalar as text, ``None`` for null. Raises ``BodyError`` for objects and arrays."""
    if value is None:
        return None
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    raise BodyError(f"{_cannot('String', value)} (through reference chain: {where})")


def native(value: object) -> object:
    """*value* with its numbers as numbers, as offsets hold them. Raises ``BodyError`` for huge ones."""
    if isinstance(value, Number):
        try:
            return value.value()
        except ValueError:
            raise BodyError("A number in the request body is out of range") from None
    if isinstance(value, dict):
        return {name: native(each) for name, each in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [native(each) for each in cast("list[object]", value)]
    return value


def _cannot(kind: str, value: object) -> str:
    return f"Cannot deserialize value of type `{kind}` from {_token(value)}"


def _token(value: object) -> str:
    match value:
        case dict():
            return "Object value (token `JsonToken.START_OBJECT`)"
        case list():
            return "Array value (token `JsonToken.START_ARRAY`)"
        case bool():
            return "Boolean value"
        case Number():
            return "Number value"
        case _:
            return "String value"


def _check_unicode(text: str, value: object) -> None:
    # Only an escape can bring in half a character, which no answer and no topic can hold.
    if "\\u" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BodyError("A string in the request body holds half a surrogate pair") from None


def _refuse(name: str) -> NoReturn:
    raise BodyError(f"Non-standard token '{name}': JSON has no such number")
