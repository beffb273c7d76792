"""Loopback ports."""

from __future__ import annotations

import random
import socket

from headrace.broker import broker as ports


def test_taken_port_is_not_free():
    """A port that another program listens on is not free, and no broker answers there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        taken = not ports.is_free(port)

    assert taken
    assert not ports.answers(port)


def test_free_port():
    """A chosen port can be listened on, and is not the one to keep apart from."""
    first = ports.free_port(choices=random.Random(1))
    second = ports.free_port(choices=random.Random(1), apart_from=first)

    assert ports.is_free(first)
    assert first != second
