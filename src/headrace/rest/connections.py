"""The server's connections: how many there may be, how long they may be idle, and what is logged about them."""

from __future__ import annotations

import asyncio
import logging
import resource
import ssl
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

IDLE_SECONDS: Final = 30.0
"""How long a connection may be idle, and a request's line and headers may take; as in Kafka Connect's Jetty."""
KEPT: Final = 16
"""How many of the allowed connections are reserved for requests for ``/health``."""
SERVER_LOGGER: Final = "uvicorn.error"
"""The logger of the web server."""

_MOST = 4096
_LEAST = 2 * KEPT
# Kafka clients, Spark, the state file and the log need descriptors, too.
_SHARE_OF_DESCRIPTORS = 2
_LOG_SECONDS = 60.0
_MOST_CAUSES = 1000
_log = logging.getLogger(__name__)


def most_connections() -> int:
    """How many connections there may be at a time: half of the process's file descriptors, at most 4096."""
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if descriptors == resource.RLIM_INFINITY:
        return _MOST
    return max(_LEAST, min(_MOST, descriptors // _SHARE_OF_DESCRIPTORS))


class OncePerMinute(logging.LoggerAdapter[logging.Logger]):
    """Logs to *logger* one line per cause and minute, with the number of suppressed ones. Belongs to one event loop.

    Lines with the same cause have the same template, the same first argument if that is a text, and an exception of
    the same type and error number, if any.
    """

    def __init__(self, logger: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(logger, {})
        self._clock = clock
        self._logged = dict[tuple[object, ...], tuple[float, int]]()

    @property
    def level(self) -> int:
        """The logger's own level, which the server looks at."""
        return self.logger.level

    def log(self, level: int, msg: object, *args: object, **more: Any) -> None:  # noqa: ANN401 (the logger's own)
        """See ``logging.Logger``."""
        if not self.isEnabledFor(level):
            return
        cause = _cause(msg, args, more.get("exc_info"))
        now = self._clock()
        began, left_out = self._logged.pop(cause, (now - _LOG_SECONDS, 0))
        if now - began < _LOG_SECONDS:
            self._logged[cause] = began, left_out + 1
            return
        if len(self._logged) >= _MOST_CAUSES:
            del self._logged[next(iter(self._logged))]
        self._logged[cause] = now, 0
        rest = f" ({left_out} similar lines were suppressed.)" if left_out else ""
        super().log(level, f"{msg}{rest}", *args, **more)


def _cause(text: object, values: tuple[object, ...], raised: object) -> tuple[object, ...]:
    """What log lines about the same cause have in common."""
    first = values[0] if values and isinstance(values[0], str) else None
    error = next((each for each in (raised, *values) if isinstance(each, BaseException)), None)
    return str(text), first, type(error), getattr(error, "errno", None)


class Connections:
    """All connections of a server, on its event loop: at most *most*, each of which may be idle for *idle_seconds*.

    If there are more, the one that has been idle for longest is closed, unless its request is being answered. If
    requests are being answered on all of them, the last ``KEPT`` may only request ``/health``.
    """

    def __init__(self, most: int | None = None, *, idle_seconds: float = IDLE_SECONDS) -> None:
        self.idle_seconds = idle_seconds
        self.log = OncePerMinute(_log)
        self.server_log = OncePerMinute(logging.getLogger(SERVER_LOGGER))
        self._most = most or most_connections()
        self._open = OrderedDict[Connection | Handshake, None]()

    @property
    def at_once(self) -> int:
        """How many connections the event loop may accept in one go: few enough to leave descriptors free."""
        return max(KEPT, self._most // 4)

    @property
    def are_full(self) -> bool:
        """Whether the remaining connections are reserved for ``/health``."""
        return len(self._open) > self._most - KEPT

    def opened(self, connection: Connection | Handshake) -> None:
        """Add a connection."""
        self._open[connection] = None
        if not self.are_full:
            return
        silent = next((each for each in self._open if each.is_replaceable), connection)
        if silent is not connection:
            self.log.warning(
                "There are %d connections, the maximum (half of the file descriptors, at most %d, less %d that are "
                "reserved for /health). The one that has been idle for longest is closed.",
                len(self._open) - 1,
                _MOST,
                KEPT,
            )
            self._close(silent)
        elif len(self._open) > self._most:
            self.log.warning(
                "There are %d connections, and requests are being answered on each. A new one is closed.",
                len(self._open) - 1,
            )
            self._close(connection)

    def received(self, connection: Connection | Handshake) -> None:
        """It has received data."""
        if connection in self._open:
            self._open.move_to_end(connection)

    def closed(self, connection: Connection | Handshake) -> None:
        """It has been closed."""
        self._open.pop(connection, None)

    def loop_failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log a failure that *loop* reports: a thousand times a second without descriptors. Its exception handler."""
        error = context.get("exception")
        if isinstance(error, OSError):
            self.log.error("%s: %s", context.get("message"), error)
        else:
            loop.default_exception_handler(context)

    def _close(self, connection: Connection | Handshake) -> None:
        self.closed(connection)
        connection.transport.abort()


class Connection(H11Protocol):
    """One connection of *book*, closed when it has been idle for longer than that allows.

    A connection is idle while it sends nothing of a request, or takes nothing of its answer; not while its request is
    being answered. A request's line and headers together may take as long, however slowly they arrive.
    """

    def __init__(self, *args: Any, book: Connections, **more: Any) -> None:  # noqa: ANN401 (the server's own)
        super().__init__(*args, **more)
        # A misbehaving client may cause a thousand lines a second.
        self.logger = book.server_log  # type: ignore[assignment]
        self._book = book
        self._watch: asyncio.TimerHandle | None = None
        self._unsent = 0
        self._has_begun = False

    @property
    def is_replaceable(self) -> bool:
        """Whether no complete request is being answered."""
        return self._is_between_requests or self.cycle.more_body

    @property
    def _is_between_requests(self) -> bool:
        # Before the first request there is no cycle, contrary to the server's types.
        return getattr(self.cycle, "response_complete", True)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See ``asyncio.Protocol``."""
        super().connection_made(transport)
        self._watch_from_now()
        self._book.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See ``asyncio.Protocol``."""
        self._unwatch()
        self._book.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``."""
        self._book.received(self)
        super().data_received(data)
        if not self.is_replaceable:
            if not self.transport.get_write_buffer_size():
                self._unwatch()
        elif not (self._is_between_requests and self._has_begun):
            self._watch_from_now()
        self._has_begun = self._is_between_requests

    def on_response_complete(self) -> None:
        """See ``H11Protocol``."""
        super().on_response_complete()
        if self._is_between_requests:
            self._has_begun = False
            self._watch_from_now()

    def pause_writing(self) -> None:
        """See ``asyncio.Protocol``: the client reads its answer more slowly than it is written."""
        super().pause_writing()
        self._watch_from_now()

    def _watch_from_now(self) -> None:
        self._unwatch()
        self._unsent = self.transport.get_write_buffer_size()
        self._watch = self.loop.call_later(self._book.idle_seconds, self._expire)

    def _unwatch(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None

    def _expire(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        if unsent and unsent < self._unsent:
            self._watch_from_now()
        elif unsent or self.is_replaceable:
            # Not ``close``, which would wait for the client to read the rest.
            self.transport.abort()


class Handshake(asyncio.Protocol):
    """A connection of *book* before its TLS handshake with *context*: it counts as idle, and has as long to finish.

    *more* are the server's arguments for connections.
    """

    is_replaceable: Final = True

    def __init__(self, *, book: Connections, context: ssl.SSLContext, **more: Any) -> None:  # noqa: ANN401 (the server's own)
        self._connection = Connection(book=book, **more)
        self._book = book
        self._context = context
        self._received = bytearray()
        self._opening: asyncio.Task[None] | None = None
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See ``asyncio.Protocol``; *transport* has no TLS yet."""
        self.transport = transport
        self._connection.connections.add(self)  # type: ignore[arg-type]
        self._book.opened(self)
        self._opening = self._connection.loop.create_task(self._open())

    def data_received(self, data: bytes) -> None:
        """See ``asyncio.Protocol``: a request may come together with the end of the handshake."""
        self._received += data

    def shutdown(self) -> None:
        """Close it; called by the server when it ends."""
        self.transport.abort()

    async def _open(self) -> None:
        try:
            secured = await self._secured()
        except OSError as error:
            self._book.log.info("The TLS handshake of a client failed: %s", error)
            secured = None
        finally:
            self._connection.connections.discard(self)  # type: ignore[arg-type]
            self._book.closed(self)
        if secured is not None:
            secured.set_protocol(self._connection)
            self._connection.connection_made(secured)
            if self._received:
                self._connection.data_received(bytes(self._received))

    async def _secured(self) -> asyncio.Transport | None:
        """The connection with TLS; ``None`` if it was closed meanwhile."""
        if self.transport.is_closing():
            return None
        secured = await self._connection.loop.start_tls(
            self.transport,
            self,
            self._context,
            server_side=True,
            ssl_handshake_timeout=self._book.idle_seconds,
        )
        return None if self.transport.is_closing() else secured
