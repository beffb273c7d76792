"""The application: every route in one table, and how a request is routed, handled in a thread, and answered."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from headrace.herder.errors import ElsewhereError, ServerError
from headrace.herder.protocol import Herder
from headrace.herder.request_signing import ALGORITHM_HEADER, REQUESTER_HEADER, SIGNATURE_HEADER
from headrace.herder.requests import REQUEST_SECONDS, on_behalf_of
from headrace.observe.log_format import in_log_context
from headrace.observe.log_levels import Levels
from headrace.rest import errors
from headrace.rest.answers import json_bytes
from headrace.rest.bodies import RequestBodies
from headrace.rest.connections import Connections
from headrace.rest.errors import HttpError
from headrace.rest.forwarding import Forwarding
from headrace.rest.login import BasicLogin
from headrace.rest.request import (
    JSON,
    USER,
    ApiRequest,
    ApiResponse,
    Handler,
    PathError,
    accepts_json,
    caller,
    origin,
    raw_path,
    raw_target,
    segments,
)
from headrace.rest.resources.connectors import Connectors, States, Topics
from headrace.rest.resources.internal import InternalRequests
from headrace.rest.resources.offsets import Offsets
from headrace.rest.resources.worker import Description, Loggers, MetricsPage, Plugins, Root, Workers

_ORDER = ("HEAD", "POST", "GET", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A path, in which ``{}`` stands for any one segment that is not empty, and the handler of each of its methods.

    Not Starlette's: its routes match the decoded path, in which a slash of a connector's name (``%2F``) separates.

    *at_once* routes do not wait for other requests to end. Those in *own_form* do not answer in JSON, and are
    answered whatever the client accepts. The *internal* methods are those of other workers: they need no login, as their handlers verify
    their signatures, and the description does not have them.
    """

    path: str
    methods: Mapping[str, Handler]
    at_once: bool = False
    own_form: bool = False
    internal: frozenset[str] = frozenset()

    @property
    def allow(self) -> str:
        """The allowed methods, for the header ``Allow``."""
        implied = {"OPTIONS", "HEAD"} if "GET" in self.methods else {"OPTIONS"}
        return ", ".join(each for each in _ORDER if each in self.methods.keys() | implied)

    def handler(self, method: str) -> Handler:
        """The handler of *method*; raises 405 if there is none. HEAD is answered as GET, without its body."""
        found = self.methods.get("GET" if method == "HEAD" else method)
        if found is None:
            raise HttpError(405, headers={"Allow": self.allow})
        return found

    def names_in(self, segments: Sequence[str]) -> list[str] | None:
        """The segments in place of ``{}``; ``None`` when *segments* do not match this path."""
        pattern = self.path.strip("/").split("/") if self.path != "/" else []
        if len(pattern) != len(segments):
            return None
        pairs = list(zip(pattern, segments, strict=True))
        if not all(found and expected in ("{}", found) for expected, found in pairs):
            return None
        return [found for expected, found in pairs if expected == "{}"]


def routed(routes: Sequence[Route], segments: Sequence[str]) -> tuple[Route, list[str]]:
    """The route of a path and the names in it; raises 404 when there is none."""
    for route in routes:
        names = route.names_in(segments)
        if names is not None:
            return route, names
    raise HttpError(404)


_WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


def herder_routes(herder: Herder) -> list[Route]:
    """All routes that call the herder."""
    root, connectors, states = Root(herder), Connectors(herder), States(herder)
    offsets, topics, plugins = Offsets(herder), Topics(herder), Plugins(herder)
    workers = InternalRequests(herder)
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
        Route(
            path=f"{one}/tasks",
            methods={"GET": connectors.tasks, "POST": workers.put_tasks},
            internal=frozenset({"POST"}),
        ),
        Route(
            path=f"{one}/fence",
            methods={"PUT": workers.put_task_count},
            internal=frozenset({"PUT"}),
        ),
        Route(
            path=f"{one}/quiet", methods={"PUT": workers.await_quiet}, internal=frozenset({"PUT"})
        ),
        Route(path="/workers", methods={"PUT": workers.act}, internal=frozenset({"PUT"})),
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
    """The route of the OpenAPI description."""
    page = Description()
    return [Route(path="/openapi.json", methods={"GET": page.read}, at_once=True)]


def metrics_routes(text: Callable[[], str]) -> list[Route]:
    """The route of the metrics for Prometheus, which *text* returns at each call."""
    page = MetricsPage(text)
    return [Route(path="/metrics", methods={"GET": page.read}, at_once=True, own_form=True)]


def admin_routes(
    levels: Levels, herder: Herder, forwarding: Forwarding | None = None, *, apart: bool = False
) -> list[Route]:
    """The routes that ``admin.listeners`` may move to other listeners (*apart*), or switch off."""
    loggers = Loggers(levels, herder)
    workers = Workers(herder, forwarding or Forwarding(), apart=apart)
    return [
        Route(path="/admin/loggers", methods={"GET": loggers.every}),
        Route(path="/admin/loggers/{}", methods={"GET": loggers.one, "PUT": loggers.change}),
        Route(path="/admin/workers", methods={"GET": workers.every}),
        Route(path="/admin/workers/{}/relinquish", methods={"PUT": workers.relinquish}),
        Route(path="/admin/workers/{}/rejoin", methods={"PUT": workers.rejoin}),
    ]


_T = TypeVar("_T")
# More than clients usually have open; each waits in a thread.
_MOST_CALLS: Final = 100


class HandlerThreads:
    """Calls handlers, each in a thread of its own; used from one event loop.

    *stage* says what the worker is doing, for a request that timed out; it must not block. The threads are
    daemons: a call that never returns does not keep the process alive.
    """

    def __init__(
        self, stage: Callable[[], str | None], *, seconds: float = REQUEST_SECONDS
    ) -> None:
        self._stage = stage
        self._seconds = seconds
        self._permits = asyncio.Semaphore(_MOST_CALLS)

    async def call(self, work: Callable[[], _T], *, at_once: bool = False) -> _T:
        """What *work* returns or raises; *at_once* work does not count towards the limit.

        Raises :class:`~headrace.herder.errors.ServerError` when it takes too long. It then continues in
        its thread, and may still take effect.
        """
        try:
            async with asyncio.timeout(self._seconds):
                if not at_once:
                    await self._permits.acquire()
                outcome = await self._started(work, None if at_once else self._permits)
        except TimeoutError:
            raise ServerError(self._too_late()) from None
        return outcome()

    def _started(
        self, work: Callable[[], _T], permit: asyncio.Semaphore | None
    ) -> asyncio.Future[Callable[[], _T]]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Callable[[], _T]] = loop.create_future()

        def settle(outcome: Callable[[], _T]) -> None:
            if permit is not None:
                permit.release()
            if not future.done():
                future.set_result(outcome)

        def run() -> None:
            outcome = _outcome(work)
            # The loop is closed after the server has ended: then no one waits for the answer.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, outcome)

        try:
            threading.Thread(
                target=in_log_context(run), name="headrace-request", daemon=True
            ).start()
        except RuntimeError:
            # The machine has no thread left; another request may use the permit.
            if permit is not None:
                permit.release()
            raise
        return future

    def _too_late(self) -> str:
        stage = self._stage()
        return f"Request timed out. {stage}" if stage else "Request timed out"


def _outcome(work: Callable[[], _T]) -> Callable[[], _T]:
    try:
        result = work()
    except Exception as error:  # noqa: BLE001 (raised again where it is waited for)
        raised = error

        def failed() -> _T:
            raise raised

        return failed
    return lambda: result


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The ASGI application: routes requests to handlers and turns results and errors into responses.

    A handler is called in a thread of its own. *bodies* limits the bytes read from requests. While the *connections*
    are full, only routes marked ``at_once`` are answered; all others get 503.
    """

    routes: Sequence[Route]
    threads: HandlerThreads
    bodies: RequestBodies
    connections: Connections
    login: BasicLogin | None = None
    forwarding: Forwarding = field(default_factory=Forwarding)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; called by the server on its event loop."""
        request = Request(scope, receive)
        try:
            answer = await self._answered(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 (every error becomes a response)
            answer = errors.error_response(error, f"{request.method} {raw_target(scope)}")
        await _response(answer)(scope, receive, send)

    async def _answered(self, request: Request) -> ApiResponse:
        try:
            route, names = routed(self.routes, segments(raw_path(request.scope)))
        except PathError as error:
            raise HttpError(400, f"HTTP 400 Bad Request: {error}") from None
        if self.connections.are_full and not route.at_once:
            raise HttpError(503, _BUSY, headers={"Connection": "close"})
        method = request.method
        if self.login is not None and method not in route.internal:
            request.scope[USER] = self.login.user(request.headers.get("authorization"))
        if method == "OPTIONS":
            return _options(route)
        handler = route.handler(method)
        if not (route.own_form or accepts_json(request.headers.get("accept"))):
            raise HttpError(406)
        api_request = ApiRequest(
            names=names,
            query=_query(request),
            body=b"",
            origin=origin(request.scope),
            user=caller(request.scope),
            method=method,
            path=raw_path(request.scope),
            authorization=request.headers.get("authorization"),
            signature=request.headers.get(SIGNATURE_HEADER),
            signature_algorithm=request.headers.get(ALGORITHM_HEADER),
            # Whoever has logged in here is known better than by another worker.
            requester=None if USER in request.scope else request.headers.get(REQUESTER_HEADER),
        )
        if method not in _WRITING:
            return await self._made(route, handler, api_request)
        async with self.bodies.read(request) as body:
            return await self._made(route, handler, replace(api_request, body=body))

    async def _made(self, route: Route, handler: Handler, api_request: ApiRequest) -> ApiResponse:
        work = functools.partial(_handled, handler, api_request, self.forwarding)
        # Requests of users may be waiting for those of other workers.
        at_once = route.at_once or api_request.method in route.internal
        return await self.threads.call(work, at_once=at_once)


def _handled(handler: Handler, api_request: ApiRequest, forwarding: Forwarding) -> ApiResponse:
    """Call *handler* on behalf of the user, or have another worker answer; runs in a worker thread."""
    asked = forwarding.with_requester(api_request)
    try:
        with on_behalf_of(asked.user):
            return handler(asked)
    except ElsewhereError as elsewhere:
        return forwarding.answered(asked, elsewhere)


def _query(request: Request) -> Mapping[str, Sequence[str]]:
    names = request.query_params.keys()
    return {name: request.query_params.getlist(name) for name in names}


def _options(route: Route) -> ApiResponse:
    return ApiResponse(
        content=route.allow, headers={"Allow": route.allow, "Content-Type": "text/plain"}
    )


_BUSY: Final = "HTTP 503: all connections of this worker are in use, so only /health is answered. Retry in a moment"


def _response(answer: ApiResponse) -> Response:
    if answer.is_empty:
        return Response(status_code=answer.status, headers=answer.headers)
    if "Content-Type" in answer.headers:
        return Response(str(answer.content), status_code=answer.status, headers=answer.headers)
    content = json_bytes(answer.content)
    return Response(
        content, status_code=answer.status, headers={**answer.headers, "Content-Type": JSON}
    )
