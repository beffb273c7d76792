"""How driver and slots talk: framed JSON over a socket, after both have proved that they know the secret.

Nothing is encrypted or signed after that: whoever can listen on the way reads the plan's settings.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import struct
from typing import Any

Message = dict[str, Any]

_LENGTH = struct.Struct(">I")
_NONCE_BYTES = 32
# A claim's answer carries a slot's whole plan; a million splits of 100 bytes still fit.
_MAX_MESSAGE_BYTES = 256 * 1024 * 1024


class ChannelClosedError(OSError):
    """The other side is gone, or is not who it should be."""


def send_message(connection: socket.socket, message: Message) -> None:
    """Send one message; raises ``OSError`` when the connection is broken or times out."""
    body = json.dumps(message, separators=(",", ":")).encode()
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive_message(connection: socket.socket) -> Message:
    """Receive one message; raises ``OSError`` when the connection is broken or times out."""
    (length,) = _LENGTH.unpack(_receive_exactly(connection, _LENGTH.size))
    if length > _MAX_MESSAGE_BYTES:
        raise ChannelClosedError(f"A message of {length} bytes was announced on the channel.")
    message = json.loads(_receive_exactly(connection, length))
    if not isinstance(message, dict):
        raise ChannelClosedError("The channel carried something that is not a message.")
    return message


def is_readable(connection: socket.socket) -> bool:
    """Wait for as long as the connection's timeout; whether there is something to receive, its end included."""
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    return True


def prove_to_server(connection: socket.socket, secret: bytes) -> None:
    """A client's half of the handshake; raises :class:`ChannelClosedError` when the server is not ours."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    challenge = _receive_exactly(connection, _NONCE_BYTES)
    connection.sendall(_proof(secret, b"client", challenge) + nonce)
    answer = _receive_exactly(connection, _NONCE_BYTES)
    if not hmac.compare_digest(answer, _proof(secret, b"server", nonce)):
        raise ChannelClosedError("The channel's server does not know this run's secret.")


def prove_to_client(connection: socket.socket, secret: bytes) -> None:
    """A server's half of the handshake; raises :class:`ChannelClosedError` when the client is not ours."""
    challenge = secrets.token_bytes(_NONCE_BYTES)
    connection.sendall(challenge)
    answer = _receive_exactly(connection, 2 * _NONCE_BYTES)
    proof, nonce = answer[:_NONCE_BYTES], answer[_NONCE_BYTES:]
    if not hmac.compare_digest(proof, _proof(secret, b"client", challenge)):
        raise ChannelClosedError("A client of the channel does not know this run's secret.")
    connection.sendall(_proof(secret, b"server", nonce))


def _proof(secret: bytes, side: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret, side + nonce, "sha256")


def _receive_exactly(connection: socket.socket, count: int) -> bytes:
    parts: list[bytes] = []
    while count:
        part = connection.recv(min(count, 1 << 20))
        if not part:
            raise ChannelClosedError("The other side closed the channel.")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
