"""Sockets of listeners: bound before anything is answered, so that the worker knows its own address."""

from __future__ import annotations

import contextlib
import errno
import socket
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from headrace.connect.errors import ConfigError
from headrace.rest.config import Listener, RestConfig, in_url

_BACKLOG = 2048
_NO_IPV6 = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL, errno.EPROTONOSUPPORT})


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A listener with its port, also when the configuration asked for any; connections wait."""

    listener: Listener
    port: int
    socket: socket.socket = field(repr=False)

    @property
    def host(self) -> str:
        """The host that it was bound to, or this machine's own address if it was all of them."""
        return self.listener.host or _own_address()

    @property
    def url(self) -> str:
        """Where it is reached, with a slash at the end."""
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

        Raises :class:`~headrace.connect.errors.ConfigError` that names the listener which is taken.
        """
        with contextlib.ExitStack() as bound:
            main = _all_bound(config.listeners, "listeners", bound)
            admin = _all_bound(config.admin_listeners or (), "admin.listeners", bound)
            bound.pop_all()
        return cls(config=config, main=main, admin=admin)

    def close(self) -> None:
        """Let go of the ports, if no one has answered on them."""
        for each in (*self.main, *self.admin):
            each.socket.close()

    @property
    def url(self) -> str:
        """The URL that other workers are told, with a slash at the end."""
        return f"{self._protocol}://{self.worker_id}/"

    @property
    def sentences(self) -> tuple[str, ...]:
        """Where requests are answered, a sentence for each listener with its port; for the log."""
        urls = [each.url for each in self.main]
        told = () if self.url in urls else (f"Others are told to ask at {self.url}",)
        return (
            *(f"Requests are answered at {url}" for url in urls),
            *(f"Requests for /admin/loggers are answered at {each.url}" for each in self.admin),
            *told,
        )

    @property
    def worker_id(self) -> str:
        """This worker's name in statuses: the host and port that other workers are told."""
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
        told = (
            f"{listener} cannot be listened on: {error.strerror or error}. "
            "Name another one, or end what uses it."
        )
        raise ConfigError([(key, told)], where="The worker's configuration") from error
    # Connections inherit it; asyncio sets it only where a socket names its protocol. Without it an answer
    # of two pieces waits 40 ms for the client's acknowledgement of the first.
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
            # The kernel knows IPv6 and this machine has it switched off.
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(everywhere, backlog=_BACKLOG)


def _own_address() -> str:
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        # A machine whose name no one can resolve is still reached by itself.
        return "127.0.0.1"
