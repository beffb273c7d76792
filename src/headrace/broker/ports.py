"""Loopback ports: which are free, and whether a Kafka broker answers on one."""

from __future__ import annotations

import random
import socket
import struct

from headrace.connect.errors import ConnectError

LOOPBACK = "127.0.0.1"
# Below the ports that systems give to outgoing connections: there, a client that keeps trying to
# reach a broker that is down may be given the broker's own port and so keep it from coming back.
FREE_PORTS = range(20_000, 32_000)
ANSWER_SECONDS = 2.0
METADATA_KEY, METADATA_VERSION = 3, 1


def free_port(*, choices: random.Random, apart_from: int = 0) -> int:
    """A port that nobody listens on at this moment."""
    for port in choices.sample(FREE_PORTS, k=200):
        if port != apart_from and is_free(port):
            return port
    raise ConnectError("No free port was found on 127.0.0.1; name one with --port.")


def is_free(port: int) -> bool:
    """Whether nobody listens on *port* of loopback or of all interfaces."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True


def answers(port: int) -> bool:
    """Whether a Kafka broker on *port* answers and counts itself as alive.

    One Metadata request, written by hand: this package needs no Kafka client.
    """
    request = struct.pack(">hhih", METADATA_KEY, METADATA_VERSION, 1, -1) + struct.pack(">i", 0)
    try:
        with socket.create_connection((LOOPBACK, port), timeout=ANSWER_SECONDS) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            return live_brokers(_exactly(connection, 12)) > 0
    except OSError:
        return False


def live_brokers(answer: bytes) -> int:
    """How many brokers the start of a Metadata answer (length, correlation, count) tells of."""
    _length, _correlation, count = struct.unpack(">iii", answer)
    return int(count)


def _exactly(connection: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise ConnectionError("The broker closed the connection.")
        content += part
    return content
