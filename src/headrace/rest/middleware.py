"""ASGI middleware around the application: configured response headers, CORS, and the access log."""

from __future__ import annotations

import csv
import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import formatdate
from typing import Final, Literal, cast

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.rest.request import USER, address

Action = Literal["set", "add", "setdate", "adddate"]

_ACTIONS = ("set", "add", "setDate", "addDate")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MILLISECONDS = re.compile(r"-?[0-9]{1,15}")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderRule:
    """A header to add to answers; it *replaces* others of its name, or is added to them."""

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
    """An ASGI application that adds headers to the answers of *app*."""

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


_ALLOWED_METHODS = "GET,POST,HEAD"
_ALLOWED_HEADERS = ("X-Requested-With", "Content-Type", "Accept", "Origin")
_PREFLIGHT_SECONDS = 1800


def with_cors(app: ASGIApp, *, origins: str, methods: str) -> ASGIApp:
    """*app* with CORS for pages of *origins*, which may use *methods*; both as in Kafka Connect's settings."""
    allowed = _words(origins)
    patterns = [
        re.escape(each).replace(r"\*", ".*") for each in allowed if "*" in each and each != "*"
    ]
    return CORSMiddleware(
        app,
        allow_origins=allowed,
        allow_origin_regex="|".join(patterns) or None,
        allow_methods=_words(methods or _ALLOWED_METHODS),
        allow_headers=_ALLOWED_HEADERS,
        allow_credentials=True,
        max_age=_PREFLIGHT_SECONDS,
    )


def _words(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


LOGGER: Final = "headrace.rest.access"
"""The name of the logger of requests, at INFO, but at DEBUG of those for ``/health``."""

# Load balancers and supervisors ask for it every second or so, and what is wrong has lines of its own.
_PROBED: Final = b"/health"
_access_log = logging.getLogger(LOGGER)


class AccessLog:
    """An ASGI application that logs the requests that *app* answers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; called by the server on its event loop."""
        began = time.monotonic()
        status, size = "-", 0

        async def sent(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = str(message["status"])
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            level = logging.DEBUG if scope["raw_path"] == _PROBED else logging.INFO
            if _access_log.isEnabledFor(level):
                took_ms = round((time.monotonic() - began) * 1000)
                _access_log.log(level, "%s", _line(scope, status, size, took_ms))


def _line(scope: Scope, status: str, size: int, took_ms: int) -> str:
    headers = Headers(scope=scope)
    query: bytes = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    when = datetime.now().astimezone().strftime("%d/%b/%Y:%H:%M:%S %z")
    request = f"{scope['method']} {target.decode('ascii')} HTTP/{scope['http_version']}"
    sender = (_quoted(headers.get(name, "-")) for name in ("referer", "user-agent"))
    return " ".join(
        (
            address(scope) or "-",
            "-",
            str(scope.get(USER, "-")),
            f"[{when}]",
            _quoted(request),
            status,
            str(size),
            *sender,
            str(took_ms),
        )
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
