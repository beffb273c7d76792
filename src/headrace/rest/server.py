"""The HTTP server of a worker, in a thread of its own."""

from __future__ import annotations

import asyncio
import functools
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from typing import Final, cast

import uvicorn
from starlette.types import ASGIApp

from headrace.connect.errors import ConnectError
from headrace.herder.protocol import Herder
from headrace.herder.requests import REQUEST_SECONDS
from headrace.observe.log_format import in_log_context
from headrace.observe.log_levels import Levels
from headrace.rest.app import (
    App,
    HandlerThreads,
    Route,
    admin_routes,
    description_routes,
    herder_routes,
    metrics_routes,
)
from headrace.rest.bodies import RequestBodies
from headrace.rest.config import RestConfig
from headrace.rest.connections import (
    IDLE_SECONDS,
    SERVER_LOGGER,
    Connection,
    Connections,
    Handshake,
)
from headrace.rest.forwarding import Forwarding
from headrace.rest.listeners import Binding, Bound
from headrace.rest.login import BasicLogin
from headrace.rest.middleware import AccessLog, AddedHeaders, header_rules, with_cors
from headrace.rest.peers import Peers

GRACE_SECONDS: Final = 60
"""How long requests that are being answered may take when the server closes."""
_TICK_SECONDS = 1.0
_QUEUED = 1024


class RestServer:
    """Answers requests to *herder* from ``start`` to ``close``, which one thread calls.

    *binding* are listeners that the caller has bound before, to know the worker's id; without it ``start`` binds
    them. *metrics* returns the metrics page, if there is to be one. *request_seconds* is how long a request waits for
    the herder, and *connections* says how many there may be and how long they may be idle. *peers* is the client of other workers, which
    its owner closes; without it the server has one of its own.
    """

    def __init__(  # noqa: PLR0913 - a worker leaves out what tests give
        self,
        herder: Herder,
        config: RestConfig,
        *,
        binding: Binding | None = None,
        levels: Levels | None = None,
        metrics: Callable[[], str] | None = None,
        request_seconds: float = REQUEST_SECONDS,
        connections: Connections | None = None,
        peers: Peers | None = None,
    ) -> None:
        self._herder = herder
        self._config = config
        self._binding = binding
        self._levels = levels or Levels()
        self._metrics = metrics
        self._request_seconds = request_seconds
        self._connections = connections or Connections()
        self._servers: list[_Server] = []
        self._peers = peers
        self._opened = ExitStack()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Bind the listeners and return when they answer.

        Raises :class:`~headrace.connect.errors.ConfigError` for a listener that cannot be bound, and for TLS or
        password files that cannot be read.
        """
        _quieten()
        login = self._config.login()
        main_tls, admin_tls = self._config.tls_contexts()
        peers = self._peers
        if peers is None:
            peers = self._opened.enter_context(closing(Peers(self._config.trust_context())))
        binding = self._binding or Binding.of(self._config)
        self._binding = binding
        threads = HandlerThreads(self._herder.stage, seconds=self._request_seconds)
        apart = self._config.admin_listeners is not None
        forwarding = Forwarding(
            peers=peers, catch_up=self._herder.catch_up, requesters=self._herder.requesters
        )
        admin_paths = admin_routes(self._levels, self._herder, forwarding, apart=apart)
        metrics = [] if self._metrics is None else metrics_routes(self._metrics)
        routes = [*herder_routes(self._herder), *description_routes()]
        app = functools.partial(
            self._app,
            threads=threads,
            bodies=RequestBodies(self._config.max_body_bytes),
            login=login,
            forwarding=forwarding,
        )
        main = app([*routes, *metrics, *([] if apart else admin_paths)])
        admin = app(admin_paths)
        self._servers = [
            *(self._server(main, each, main_tls) for each in binding.main),
            *(self._server(admin, each, admin_tls) for each in binding.admin),
        ]
        self._thread = threading.Thread(
            target=in_log_context(self._run), name="headrace-rest", daemon=True
        )
        self._thread.start()
        for each in self._servers:
            while not each.answers.wait(_TICK_SECONDS):
                if not self._thread.is_alive():
                    raise ConnectError("The REST server failed to start; the log has the cause.")

    @property
    def binding(self) -> Binding:
        """The bound listeners, with the worker's id and URL. Raises ``ConnectError`` before ``start``."""
        if self._binding is None:
            raise ConnectError("The REST server has not been started.")
        return self._binding

    @property
    def url(self) -> str:
        """The advertised URL, with a slash at the end."""
        return self.binding.url

    @property
    def ports(self) -> list[int]:
        """The ports of the listeners, in the order of the configuration, those of admin listeners last."""
        return [each.port for each in (*self.binding.main, *self.binding.admin)]

    def close(self) -> None:
        """Accept no more requests, finish those that are being answered, and return; may be repeated."""
        for each in self._servers:
            each.ask_to_end()
        if self._thread is not None:
            self._thread.join(GRACE_SECONDS + 5)
        self._opened.close()
        if self._binding is not None:
            self._binding.close()

    def _server(self, app: ASGIApp, bound: Bound, context: ssl.SSLContext | None) -> _Server:
        return _Server(app, bound, context, self._connections)

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        asyncio.get_running_loop().set_exception_handler(self._connections.loop_failed)
        await asyncio.gather(*(each.serve([each.bound.socket]) for each in self._servers))

    def _app(
        self,
        routes: Sequence[Route],
        *,
        threads: HandlerThreads,
        bodies: RequestBodies,
        login: BasicLogin | None,
        forwarding: Forwarding,
    ) -> ASGIApp:
        app: ASGIApp = App(
            routes=routes,
            threads=threads,
            bodies=bodies,
            login=login,
            connections=self._connections,
            forwarding=forwarding,
        )
        origins = self._config.access_control_allow_origin
        if origins.strip():
            methods = self._config.access_control_allow_methods
            app = with_cors(app, origins=origins, methods=methods)
        rules = header_rules(self._config.response_http_headers_config)
        return AccessLog(AddedHeaders(app, rules) if rules else app)


class _Server(uvicorn.Server):
    """One listener's server; sets *answers* once it answers, and costs next to nothing while idle."""

    def __init__(
        self,
        app: ASGIApp,
        bound: Bound,
        context: ssl.SSLContext | None,
        connections: Connections,
    ) -> None:
        protocol = functools.partial(Connection, book=connections)
        if context is not None and bound.listener.protocol == "https":
            # uvicorn would give each connection a minute for its handshake, and not count it before.
            protocol = functools.partial(Handshake, book=connections, context=context)
        config = uvicorn.Config(
            app,
            # Any factory of protocols is accepted, though only classes are declared.
            http=cast("type[asyncio.Protocol]", protocol),
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            backlog=connections.at_once,
            timeout_keep_alive=round(IDLE_SECONDS),
            timeout_graceful_shutdown=GRACE_SECONDS,
        )
        config.load()
        super().__init__(config)
        self.bound = bound
        self.answers = threading.Event()
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See ``uvicorn.Server``."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        # The event loop also accepts as many connections in one go as its backlog, so that is small. This one is the
        # system's queue: it drops connections beyond it, and clients retry only after a second.
        self.bound.socket.listen(_QUEUED)
        self.answers.set()

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own loop would wake ten times a second."""
        while not await self.on_tick(0):
            try:
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._ending.wait()
            except TimeoutError:
                continue

    def ask_to_end(self) -> None:
        """Accept no more requests; called by another thread."""
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ending.set)


_CLIENT_LOGGER: Final = "httpx"


def _quieten() -> None:
    """Let the web server, and the client for other workers, log only warnings and errors, unless their levels have been set."""
    for name in (SERVER_LOGGER, _CLIENT_LOGGER):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.WARNING)
