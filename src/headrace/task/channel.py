"""The channel between driver and slots: framed JSON over a socket, after mutual authentication; the slot's client.

The answers to a slot's heartbeat, which end it, are read in :mod:`headrace.task.lease`.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
import struct
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.task.slot_work import SlotTicket

Message = dict[str, Any]

_LENGTH = struct.Struct(">I")
_NONCE_BYTES = 32
# A claim's answer carries a slot's whole plan; a million splits of 100 bytes still fit.
_MAX_MESSAGE_BYTES = 256 * 1024 * 1024


class ChannelClosedError(OSError):
    """The other side closed the connection, or could not authenticate."""


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
    """Wait up to the connection's timeout; whether there is data to receive, or the connection has ended."""
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    return True


def prove_to_server(connection: socket.socket, secret: bytes) -> None:
    """A client's half of the handshake; raises :class:`ChannelClosedError` when the server lacks the secret."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    challenge = _receive_exactly(connection, _NONCE_BYTES)
    connection.sendall(_proof(secret, b"client", challenge) + nonce)
    answer = _receive_exactly(connection, _NONCE_BYTES)
    if not hmac.compare_digest(answer, _proof(secret, b"server", nonce)):
        raise ChannelClosedError("The channel's server does not know this run's secret.")


def prove_to_client(connection: socket.socket, secret: bytes) -> None:
    """A server's half of the handshake; raises :class:`ChannelClosedError` when the client lacks the secret."""
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


_ANSWER_SECONDS = 5.0
# The driver calls Kafka before it answers. It writes for up to ten seconds, after another write and a read that may take
# as long; or it proves for each slot that it owns the connector, and reads.
_KAFKA_ANSWER_SECONDS = 35.0
_SLOW = {"copy_first": _KAFKA_ANSWER_SECONDS, "valid": _KAFKA_ANSWER_SECONDS}
# These are idempotent. A claim is not: the second answer would be that the token is stale.
_REPEATABLE = frozenset({"valid", "offsets", "end"})


class ChannelClient:
    """One connection to the driver; reconnects after it was lost.

    A call waits at most 5 seconds, or 35 if the driver calls Kafka for it, and raises
    :class:`~headrace.connect.errors.RetriableError` when there was no answer. Requests have increasing numbers, so
    that the driver can distinguish a request that the client gave up from later ones. An idle connection may have
    been lost without notice, so an idempotent request is repeated once on a new connection.
    """

    def __init__(self, ticket: SlotTicket) -> None:
        self._ticket = ticket
        self._connection: socket.socket | None = None
        self._numbers = count(1)
        # A connector may read offsets on a thread of its own.
        self._lock = threading.Lock()

    def ask(self, verb: str, **words: Any) -> Message:  # noqa: ANN401 (any JSON value)
        """Send a request about this slot's token and return the driver's answer; from any thread."""
        with self._lock:
            return self._answer_to(verb, words)

    def _answer_to(self, verb: str, words: Mapping[str, Any]) -> Message:
        was_idle = self._connection is not None
        try:
            answer = self._exchanged(verb, words)
        except OSError as error:
            if was_idle and verb in _REPEATABLE:
                return self._answer_to(verb, words)
            place = f"{self._ticket.host}:{self._ticket.port}"
            raise RetriableError(
                f"The driver at {place} did not answer {verb!r}: {error}"
            ) from error
        if "error" in answer:
            raise RetriableError(f"The driver could not answer {verb!r}: {answer['error']}")
        return answer

    def _exchanged(self, verb: str, words: Mapping[str, Any]) -> Message:
        try:
            connection = self._connected()
            connection.settimeout(_SLOW.get(verb, _ANSWER_SECONDS))
            who = {"token": self._ticket.token, "number": next(self._numbers)}
            send_message(connection, {"verb": verb, **who, **words})
            return receive_message(connection)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connected(self) -> socket.socket:
        if self._connection is None:
            address = (self._ticket.host, self._ticket.port)
            connection = socket.create_connection(address, timeout=_ANSWER_SECONDS)
            try:
                prove_to_server(connection, self._ticket.secret)
            except OSError:
                connection.close()
                raise
            self._connection = connection
        return self._connection


class ChannelOffsets:
    """Reads committed offsets through the driver, which has all of them; an ``OffsetReader``."""

    def __init__(self, client: ChannelClient) -> None:
        self._client = client

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """See ``OffsetReader``."""
        return self.offsets([partition])[partition]

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """The committed offsets of several partitions, in one exchange."""
        asked = list(partitions)
        answer = self._client.ask("offsets", partitions=[dict(each) for each in asked])
        found: Sequence[SourceOffset | None] = answer["offsets"]
        return dict(zip(asked, found, strict=True))
