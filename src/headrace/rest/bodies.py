"""Request bodies: how much of them is held, and what is in them, read as Kafka Connect reads it."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, NoReturn, cast

from starlette.requests import Request

from headrace.connect.setting import trimmed_as_java
from headrace.herder.answers import TargetState
from headrace.herder.errors import BadRequestError
from headrace.herder.requests import TOO_DEEP, CreateRequest, OffsetChange, is_too_deep, named
from headrace.rest.errors import BodyError, HttpError
from headrace.rest.request import is_json


class Number(str):
    """A number as the client wrote it: text in configurations, a value in offsets."""

    __slots__ = ()

    def value(self) -> int | float:
        """The number, as in offsets. Raises ``ValueError`` when it is out of range."""
        if self.removeprefix("-").isdecimal():
            # Python refuses to read integers of thousands of digits, with a ValueError.
            return int(self)
        value = float(self)
        if not math.isfinite(value):
            raise ValueError("out of range")
        return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """An object with known fields; *kind* is its name in errors."""

    kind: str
    fields: Sequence[str]


def json_body(body: bytes) -> object:
    """The JSON value in *body*, numbers as :class:`Number`; ``None`` for an empty body and for ``null``.

    Raises :class:`~headrace.rest.errors.BodyError` for invalid JSON, and
    :class:`~headrace.rest.errors.HttpError` for JSON that is nested too deeply; errors do not repeat the body.
    """
    if not body.strip():
        return None
    try:
        text = body.decode(json.detect_encoding(body))
        value: object = json.loads(
            text, parse_int=Number, parse_float=Number, parse_constant=_refuse
        )
        if is_too_deep(value):
            raise _too_deep()
        _check_unicode(text, value)
    except UnicodeDecodeError as error:
        raise BodyError(f"Invalid UTF-8 in the request body at byte {error.start}") from None
    except json.JSONDecodeError as error:
        where = f"line: {error.lineno}, column: {error.colno}"
        raise BodyError(f"Unexpected character or end of input: {error.msg} ({where})") from None
    except RecursionError:
        raise _too_deep() from None
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
    """*value* with its numbers as Python numbers, as in offsets. Raises ``BodyError`` for huge ones."""
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


def _too_deep() -> HttpError:
    return HttpError(400, f"HTTP 400 Bad Request: the body is {TOO_DEEP}")


def _check_unicode(text: str, value: object) -> None:
    # Only an escape can introduce an unpaired surrogate, which no answer and no topic can hold.
    if "\\u" not in text:
        return
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise BodyError("A string in the request body contains an unpaired surrogate") from None


def _refuse(name: str) -> NoReturn:
    raise BodyError(f"Non-standard token '{name}': JSON has no such number")


# No size has more digits, and Python refuses to parse thousands.
_DIGITS = 19


class RequestBodies:
    """The bodies of all requests that are being read and answered; used on one event loop.

    One has at most *most_bytes*, and all of them together ``AT_ONCE`` times as many: each is held until its request is
    answered, and takes several times its size while it is parsed.
    """

    AT_ONCE: Final = 2

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._held = 0

    @asynccontextmanager
    async def read(self, request: Request) -> AsyncGenerator[bytes]:
        """The body of *request*, held until the block ends. Raises :class:`~headrace.rest.errors.HttpError`."""
        content_type = request.headers.get("content-type")
        if content_type is not None and not is_json(content_type):
            raise HttpError(415)
        taken = bytearray()
        try:
            await self._take(request, taken)
            if taken and content_type is None:
                raise HttpError(415)
            yield bytes(taken)
        finally:
            self._held -= len(taken)

    async def _take(self, request: Request, taken: bytearray) -> None:
        size, refusal = 0, self._announced(request)
        if refusal is not None and request.headers.get("expect"):
            raise refusal
        async for part in request.stream():
            size += len(part)
            refusal = refusal or self._refusal(size, len(part))
            # The rest is read and discarded: a client that is still sending does not read an answer.
            if refusal is None:
                taken += part
                self._held += len(part)
            else:
                self._held -= len(taken)
                taken.clear()
                if size > 4 * self._most:
                    break
        if refusal is not None:
            raise refusal

    def _announced(self, request: Request) -> HttpError | None:
        """Why the body is refused by the size that *request* announces; ``None`` if it is not."""
        length = request.headers.get("content-length", "")
        size = int(length[:_DIGITS]) if length.isdecimal() else 0
        return self._refusal(size, size)

    def _refusal(self, size: int, more: int) -> HttpError | None:
        if size > self._most:
            return HttpError(413, _too_large(self._most))
        if self._held + more > self.AT_ONCE * self._most:
            return HttpError(503, _TOO_MANY, headers={"Retry-After": "1"})
        return None


_TOO_MANY: Final = (
    "HTTP 503: the bodies of concurrent requests exceed the memory limit of this worker. "
    "Retry in a moment, or send less"
)


def _too_large(limit: int) -> str:
    return (
        f"HTTP 413: the request body has more than {limit} bytes. Send less, or raise "
        "headrace.rest.max.body.bytes on the worker"
    )


SHAPE: Final = Shape(
    kind="CreateConnectorRequest", fields=("config", "initial_offsets", "initial_state", "name")
)

_PRESET: Final = ("partition", "offset")
_FORM = (
    "initial_offsets must be a list, not empty, of objects with a partition, which is an object, and "
    "an offset, which is an object or null"
)


def create_request(body: bytes, *, dry_run: bool = False) -> CreateRequest:
    """The request in *body*; raises ``BodyError`` (500) and ``BadRequestError`` (400) as Kafka Connect does."""
    members = object_body(body, SHAPE)
    name = trimmed_as_java(text_of(members.get("name"), '["name"]') or "")
    config = config_map(members.get("config"))
    state = _state(text_of(members.get("initial_state"), '["initial_state"]'))
    return CreateRequest(
        name=name,
        config=named(name, config),
        initial_state=state,
        initial_offsets=_initial_offsets(native(members.get("initial_offsets"))),
        dry_run=dry_run,
    )


def offset_changes(value: object) -> list[OffsetChange] | None:
    """The elements of ``offsets``; ``None`` when one of them is not an object with just the two fields."""
    changes = list[OffsetChange]()
    for each in cast("Sequence[object]", value):
        if not isinstance(each, dict) or not each.keys() <= {"partition", "offset"}:
            return None
        members = cast("dict[str, object]", each)
        changes.append(
            OffsetChange(partition=members.get("partition"), offset=members.get("offset"))
        )
    return changes


def _state(word: str | None) -> TargetState:
    if word is None:
        return TargetState.RUNNING
    try:
        return TargetState(word.upper())
    except ValueError:
        known = ", ".join(TargetState)
        raise BodyError(
            f"Cannot construct instance of InitialState, problem: {word} is none of {known}"
        ) from None


def _initial_offsets(value: object) -> list[OffsetChange] | None:
    if value is None:
        return None
    given = cast("list[object]", value) if isinstance(value, list) else []
    if not given or not all(_is_preset(each) for each in given):
        raise BadRequestError(_FORM)
    return offset_changes(given)


def _is_preset(element: object) -> bool:
    # A missing offset is not treated as null: that would create the connector without the offset.
    match element:
        case {"partition": dict(), "offset": dict() | None}:
            return len(cast("dict[str, object]", element)) == len(_PRESET)
        case _:
            return False
