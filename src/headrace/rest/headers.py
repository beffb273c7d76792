"""Headers that the worker's configuration adds to every answer: ``response.http.headers.config``."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass
from email.utils import formatdate
from typing import Literal, cast

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

Action = Literal["set", "add", "setdate", "adddate"]

_ACTIONS = ("set", "add", "setDate", "addDate")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MILLISECONDS = re.compile(r"-?[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRule:
    """One header: put in place of others of its name (*replaces*), or beside them."""

    replaces: bool
    name: str
    value: str


def header_rules(text: str) -> list[HeaderRule]:
    """The rules ``[action] [name]:[value]`` in *text*, separated by commas; quotes may hold commas.

    Raises ``ValueError`` with Kafka Connect's sentence.
    """
    (row,) = list(csv.reader([text.replace("\n", " ")], skipinitialspace=True)) or [[]]
    return [_rule(each) for each in row if each.strip()]


def _rule(text: str) -> HeaderRule:
    words = text.strip().split(None, 1)
    if len(words) != 2 or ":" not in words[1]:  # noqa: PLR2004
        raise ValueError(
            f"Invalid format of header config '{text}'. "
            "Expected: '[action] [header name]:[header value]'"
        )
    action = words[0].lower()
    if action not in {each.lower() for each in _ACTIONS}:
        raise ValueError(
            f"Invalid header config action: '{words[0]}'. Expected one of {', '.join(_ACTIONS)}"
        )
    name, _, value = (part.strip() for part in words[1].partition(":"))
    if not _TOKEN.fullmatch(name):
        raise ValueError(
            f"Invalid header name '{name}'. The '[header name]' cannot contain whitespace"
        )
    if not value.isascii() or not value.isprintable():
        raise ValueError(f"Invalid value of the header '{name}': it can hold ASCII characters only")
    kind = cast("Action", action)
    return HeaderRule(replaces=kind.startswith("set"), name=name, value=_value(kind, name, value))


def _value(action: Action, name: str, value: str) -> str:
    if not action.endswith("date"):
        return value
    if not _MILLISECONDS.fullmatch(value):
        raise ValueError(f"The date of the header '{name}' must be in milliseconds since 1970")
    return formatdate(int(value) / 1000, usegmt=True)


class AddedHeaders:
    """An ASGI application that adds headers to what *app* answers."""

    def __init__(self, app: ASGIApp, rules: Sequence[HeaderRule]) -> None:
        self._app = app
        self._rules = rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; called by the server on its event loop."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for rule in self._rules:
                    if rule.replaces:
                        headers[rule.name] = rule.value
                    else:
                        headers.append(rule.name, rule.value)
            await send(message)

        await self._app(scope, receive, sent)
