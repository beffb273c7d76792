"""Sockets of listeners, bound before requests are answered, so that the worker knows its own address."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from headrace.connect.errors import ConfigError
from headrace.rest.config import Listener, RestConfig
from headrace.rest.request import in_url

_BACKLOG = 2048
_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A bound listener with its actual port; connections wait in its backlog."""

    listener: Listener
    port: int
    socket: socket.socket = field(repr=False)

    @property
    def host(self) -> str:
        """The host that it is bound to, or this machine's address if it is bound to all interfaces."""
        return self.listener.host or _own_address()

    @property
    def url(self) -> str:
        """Its URL, with a slash at the end."""
        return f"{self.listener.protocol}://{in_url(self.host)}:{self.port}/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """All listeners of a worker, bound: *main* ones, and *admin* ones if they are separate."""

    config: RestConfig = field(repr=False)
    main: Sequence[Bound]
    admin: Sequence[Bound]

    @classmethod
    def of(cls, config: RestConfig) -> Self:
        """Bind every listener of *config*, or none.

        Raises :class:`~headrace.connect.errors.ConfigError` naming the listener that cannot be bound.
        """
        with contextlib.ExitStack() as bound:
            main = _all_bound(config.listeners, "listeners", bound)
            admin = _all_bound(config.admin_listeners or (), "admin.listeners", bound)
            bound.pop_all()
        return cls(config=config, main=main, admin=admin)

    def close(self) -> None:
        """Close the sockets, if no server has done so."""
        for each in (*self.main, *self.admin):
            each.socket.close()

    @property
    def url(self) -> str:
        """The advertised URL, with a slash at the end."""
        return f"{self._protocol}://{self.worker_id}/"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Log lines about the URLs of the listeners."""
        urls = [each.url for each in self.main]
        advertised = () if self.url in urls else (f"The advertised URL is {self.url}",)
        return (
            *(f"Requests are answered at {url}" for url in urls),
            *(f"Requests for /admin are answered at {each.url}" for each in self.admin),
            *advertised,
        )

    @property
    def worker_id(self) -> str:
        """This worker's name in statuses: the advertised host and port."""
        chosen = self._chosen
        host = self.config.rest_advertised_host_name or chosen.host
        return f"{in_url(host)}:{self.config.rest_advertised_port or chosen.port}"

    @property
    def _protocol(self) -> str:
        if self.config.rest_advertised_listener:
            return self.config.rest_advertised_listener.lower()
        protocols = {each.listener.protocol for each in self.main}
        return "http" if "http" in protocols else "https"

    @property
    def _chosen(self) -> Bound:
        fitting = (each for each in self.main if each.listener.protocol == self._protocol)
        return next(fitting, self.main[0])


def _all_bound(texts: Sequence[str], key: str, bound: contextlib.ExitStack) -> list[Bound]:
    return [_bound(Listener.parsed(text), key, bound) for text in texts]


def _bound(listener: Listener, key: str, bound: contextlib.ExitStack) -> Bound:
    try:
        opened = bound.enter_context(_socket(listener))
    except OSError as error:
        problem = (
            f"{listener} cannot be bound: {error.strerror or error}. "
            "Choose another one, or stop the process that uses it."
        )
        raise ConfigError([(key, problem)], where="The worker's configuration") from error
    # Connections inherit it; asyncio sets it only for sockets with an explicit protocol. Without it an answer
    # in two pieces waits 40 ms for the client's acknowledgement of the first.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    opened.setblocking(False)  # noqa: FBT003 (a socket's own signature)
    return Bound(listener=listener, port=opened.getsockname()[1], socket=opened)


def _socket(listener: Listener) -> socket.socket:
    if listener.host:
        family, *_, address = socket.getaddrinfo(
            listener.host, listener.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    everywhere = ("", listener.port)
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                everywhere, family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            # The kernel supports IPv6, but it is switched off on this machine.
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(everywhere, backlog=_BACKLOG)


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        # A machine whose name cannot be resolved can still reach itself.
        return "127.0.0.1"
