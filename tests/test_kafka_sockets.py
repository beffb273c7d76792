"""What tests do to the judges' client library."""

from __future__ import annotations

import socket

import pytest
from kafka.net.inet import KafkaNetSocket
from kafka.net.transport import KafkaTCPTransport


class _Loop:
    """Waits for nothing: whoever awaits it goes on when it is sent something."""

    async def wait_write(self, _sock: socket.socket, **_: object) -> None:
        await _Never()

    def call_soon(self, _step: object) -> None:
        """Never does it."""

    def unregister_event(self, *_: object) -> None:
        """There is none."""


class _Never:
    def __await__(self):  # noqa: ANN204
        yield


def test_a_connection_that_is_given_up_leaves_no_socket() -> None:
    """Its coroutine is closed while it waits, as when its client is closed."""
    with socket.socket() as listening, socket.socket() as sock:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        sock.setblocking(False)
        under_way = KafkaNetSocket().sock_connect(_Loop(), sock, listening.getsockname())
        under_way.send(None)

        under_way.close()

        assert -1 == sock.fileno()


def test_a_refused_connection_leaves_no_socket() -> None:
    """What cannot be connected is closed, too."""
    with socket.socket() as sock:
        under_way = KafkaNetSocket().sock_connect(_Loop(), sock, ("127.0.0.1", 0))

        with pytest.raises(Exception, match=r"\d+ \w+"):
            under_way.send(None)

        assert -1 == sock.fileno()


def test_a_connection_with_something_to_write_leaves_no_socket() -> None:
    """Its client does not run any more to write it."""
    sock, other = socket.socketpair()
    with sock, other:
        transport = KafkaTCPTransport(_Loop(), sock)
        transport.write(b"a request")

        transport.close()

        assert -1 == sock.fileno()
