"""The access log: one line for each answer, in the extended NCSA form with the milliseconds it took."""

from __future__ import annotations

import logging
import time
from datetime import datetime
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.rest.caller import USER, address

LOGGER: Final = "headrace.rest.access"
"""The name of the logger that tells requests, at INFO."""

_log = logging.getLogger(LOGGER)


class AccessLog:
    """An ASGI application that logs what *app* answers."""

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
            if _log.isEnabledFor(logging.INFO):
                took_ms = round((time.monotonic() - began) * 1000)
                _log.info("%s", _line(scope, status, size, took_ms))


def _line(scope: Scope, status: str, size: int, took_ms: int) -> str:
    headers = Headers(scope=scope)
    query: bytes = scope["query_string"]
    target = scope["raw_path"] + (b"?" + query if query else b"")
    when = datetime.now().astimezone().strftime("%d/%b/%Y:%H:%M:%S %z")
    asked = f"{scope['method']} {target.decode('ascii')} HTTP/{scope['http_version']}"
    told_by = (_quoted(headers.get(name, "-")) for name in ("referer", "user-agent"))
    return " ".join(
        (
            address(scope) or "-",
            "-",
            str(scope.get(USER, "-")),
            f"[{when}]",
            _quoted(asked),
            status,
            str(size),
            *told_by,
            str(took_ms),
        )
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
