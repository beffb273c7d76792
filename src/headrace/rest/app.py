"""The application: every route in one table, and how a request becomes an answer."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.observe.levels import Levels
from headrace.rest import errors
from headrace.rest.asked import JSON, Answer, Asked, Handler
from headrace.rest.caller import USER, caller
from headrace.rest.calls import Calls
from headrace.rest.errors import HttpError
from headrace.rest.json_text import json_bytes
from headrace.rest.login import BasicLogin
from headrace.rest.media_types import accepts_json, is_json
from headrace.rest.path_segments import PathError, segments
from headrace.rest.request_target import origin, raw_path, raw_target
from headrace.rest.resources.connectors import Connectors
from headrace.rest.resources.description import Description
from headrace.rest.resources.loggers import Loggers
from headrace.rest.resources.metrics import MetricsPage
from headrace.rest.resources.offsets import Offsets
from headrace.rest.resources.plugins import Plugins
from headrace.rest.resources.root import Root
from headrace.rest.resources.states import States
from headrace.rest.resources.topics import Topics
from headrace.rest.routing import Route, routed
from headrace.runtime.herder.asker import asked_by
from headrace.runtime.herder.herder import Herder

_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def herder_routes(herder: Herder) -> list[Route]:
    """Everything that is asked of the herder."""
    root, connectors, states = Root(herder), Connectors(herder), States(herder)
    offsets, topics, plugins = Offsets(herder), Topics(herder), Plugins(herder)
    one = "/connectors/{}"
    plugin = "/connector-plugins/{}/config"
    return [
        Route(path="/", methods={"GET": root.server}),
        Route(path="/health", methods={"GET": root.health}, at_once=True),
        Route(path="/connectors", methods={"GET": connectors.every, "POST": connectors.create}),
        Route(path=one, methods={"GET": connectors.one, "DELETE": connectors.delete}),
        Route(
            path=f"{one}/config",
            methods={
                "GET": connectors.config,
                "PUT": connectors.put_config,
                "PATCH": connectors.patch_config,
            },
        ),
        Route(path=f"{one}/status", methods={"GET": states.status}),
        Route(path=f"{one}/pause", methods={"PUT": states.pause}),
        Route(path=f"{one}/resume", methods={"PUT": states.resume}),
        Route(path=f"{one}/stop", methods={"PUT": states.stop}),
        Route(path=f"{one}/restart", methods={"POST": states.restart}),
        Route(path=f"{one}/tasks", methods={"GET": connectors.tasks}),
        Route(path=f"{one}/tasks/{{}}/status", methods={"GET": states.task_status}),
        Route(path=f"{one}/tasks/{{}}/restart", methods={"POST": states.restart_task}),
        Route(path=f"{one}/topics", methods={"GET": topics.read}),
        Route(path=f"{one}/topics/reset", methods={"PUT": topics.reset}),
        Route(
            path=f"{one}/offsets",
            methods={"GET": offsets.read, "PATCH": offsets.alter, "DELETE": offsets.reset},
        ),
        Route(path=f"{one}/offsets/lag", methods={"GET": offsets.lag}),
        Route(path=f"{one}/offsets/history", methods={"GET": offsets.history}),
        Route(path=f"{one}/offsets/undo", methods={"POST": offsets.undo}),
        Route(path="/connector-plugins", methods={"GET": plugins.every}),
        Route(path=plugin, methods={"GET": plugins.settings}),
        Route(path=f"{plugin}/validate", methods={"PUT": plugins.validate}),
    ]


def description_routes() -> list[Route]:
    """The description of all routes."""
    page = Description()
    return [Route(path="/openapi.json", methods={"GET": page.read}, at_once=True)]


def metrics_routes(text: Callable[[], str]) -> list[Route]:
    """What is measured, as *text* tells it each time; for Prometheus."""
    page = MetricsPage(text)
    return [Route(path="/metrics", methods={"GET": page.read}, at_once=True, own_form=True)]


def admin_routes(levels: Levels) -> list[Route]:
    """What ``admin.listeners`` may move to other listeners, or switch off."""
    loggers = Loggers(levels)
    return [
        Route(path="/admin/loggers", methods={"GET": loggers.every}),
        Route(path="/admin/loggers/{}", methods={"GET": loggers.one, "PUT": loggers.change}),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """An ASGI application: the only place where requests are waited for.

    A handler is called in a thread of its own. Bodies of more than *max_body_bytes* are refused.
    """

    routes: Sequence[Route]
    calls: Calls
    max_body_bytes: int
    login: BasicLogin | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; called by the server on its event loop."""
        request = Request(scope, receive)
        try:
            answer = await self._answered(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 (every error is an answer)
            answer = errors.told(error, f"{request.method} {raw_target(scope)}")
        await _response(answer)(scope, receive, send)

    async def _answered(self, request: Request) -> Answer:
        try:
            route, names = routed(self.routes, segments(raw_path(request.scope)))
        except PathError as error:
            raise HttpError(400, f"HTTP 400 Bad Request: {error}") from None
        method = request.method
        if self.login is not None:
            request.scope[USER] = self.login.user(request.headers.get("authorization"))
        if method == "OPTIONS":
            return _options(route)
        handler = route.handler(method)
        if not (route.own_form or accepts_json(request.headers.get("accept"))):
            raise HttpError(406)
        body = await self._body(request) if method in _WRITING else b""
        asked = Asked(
            names=names,
            query=_query(request),
            body=body,
            origin=origin(request.scope),
            user=caller(request.scope),
        )
        work = functools.partial(_handled, handler, asked)
        return await self.calls.made(work, at_once=route.at_once)

    async def _body(self, request: Request) -> bytes:
        content_type = request.headers.get("content-type")
        if content_type is not None and not is_json(content_type):
            raise HttpError(415)
        taken = bytearray()
        size = 0
        async for part in request.stream():
            size += len(part)
            # The rest is let through and forgotten: a client that is still sending hears no answer.
            if size <= self.max_body_bytes:
                taken += part
            elif size > 4 * self.max_body_bytes:
                break
        if size > self.max_body_bytes:
            raise HttpError(413, _too_large(self.max_body_bytes))
        if taken and content_type is None:
            raise HttpError(415)
        return bytes(taken)


def _handled(handler: Handler, asked: Asked) -> Answer:
    """In a worker thread: herders know there for whom they work."""
    with asked_by(asked.user):
        return handler(asked)


def _query(request: Request) -> Mapping[str, Sequence[str]]:
    names = request.query_params.keys()
    return {name: request.query_params.getlist(name) for name in names}


def _options(route: Route) -> Answer:
    return Answer(content=route.allow, headers={"Allow": route.allow, "Content-Type": "text/plain"})


def _too_large(limit: int) -> str:
    return (
        f"HTTP 413: the request body has more than {limit} bytes. Send less, or raise "
        "headrace.rest.max.body.bytes on the worker"
    )


def _response(answer: Answer) -> Response:
    if answer.is_empty:
        return Response(status_code=answer.status, headers=answer.headers)
    if "Content-Type" in answer.headers:
        return Response(str(answer.content), status_code=answer.status, headers=answer.headers)
    content = json_bytes(answer.content)
    return Response(
        content, status_code=answer.status, headers={**answer.headers, "Content-Type": JSON}
    )
