"""The channel between driver and slots: framed JSON over a socket, after mutual authentication; the slot's side of it.

Where others could listen, the socket has TLS, and the slot knows the driver's certificate from its ticket.
By its heartbeat over the channel a slot holds its lease, and learns that it has to end.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.observe.log_format import LogForm
from headrace.task.logs import Follow
from headrace.task.slot_report import Progress
from headrace.task.slot_work import EndReason, SlotTicket

_log = logging.getLogger(__name__)

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
    if isinstance(connection, ssl.SSLSocket):
        return bool(connection.pending()) or _has_bytes(connection)
    try:
        connection.recv(1, socket.MSG_PEEK)
    except TimeoutError:
        return False
    return True


def _has_bytes(connection: socket.socket) -> bool:
    # What is encrypted cannot be peeked at.
    timeout = connection.gettimeout()
    waiting = select.poll()
    waiting.register(connection, select.POLLIN)
    return bool(waiting.poll(None if timeout is None else timeout * 1e3))


def encrypted(connection: socket.socket, fingerprint: bytes) -> ssl.SSLSocket:
    """*connection* with TLS, to the server with the one certificate whose SHA-256 is *fingerprint*.

    Raises :class:`ChannelClosedError` for any other certificate, before anything is sent, and ``OSError`` when the server has no TLS.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # No authority is asked: there is only one certificate that counts, whatever it says of itself.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    inner = context.wrap_socket(connection)
    shown = hashlib.sha256(inner.getpeercert(binary_form=True) or b"").digest()
    if not hmac.compare_digest(shown, fingerprint):
        inner.close()
        raise ChannelClosedError(
            f"Its certificate has the SHA-256 fingerprint {shown.hex()}, and that of this task's worker has {fingerprint.hex()}: another program "
            "answers at this address, or something between the two reads along. Nothing was sent to it. Check headrace.channel.listener, and "
            "what is between the executors and the worker."
        )
    return inner


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
                if self._ticket.fingerprint is not None:
                    connection = encrypted(connection, self._ticket.fingerprint)
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


_BEAT_SECONDS = 1.0


class Lease:
    """A slot's right to write. A thread of its own reports progress once a second and receives instructions.

    It is lost for good when the driver says that the token is no longer valid, or has not answered for
    *lease_seconds*. This is measured at each check, so that a process that was suspended finds the lease lost as
    soon as it resumes. The slot's thread checks before each poll, each send and each commit. *follow_log* is called
    with the worker's log settings at each answer.
    """

    def __init__(
        self,
        client: ChannelClient,
        progress: Progress,
        *,
        lease_seconds: float,
        beat_seconds: float = _BEAT_SECONDS,
        follow_log: Follow | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._progress = progress
        self._lease_seconds = lease_seconds
        self._beat_seconds = min(beat_seconds, lease_seconds / 3)
        self._clock = clock
        self._follow_log = follow_log
        self._answered_at = clock()
        self._withdrawn = False
        self._asked_to_end: str | None = None
        self._closed = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="headrace-lease", daemon=True)

    def start(self) -> None:
        """Start the heartbeat."""
        self._thread.start()

    def close(self) -> None:
        """End the heartbeat and its connection."""
        self._closed.set()
        self._ending.set()
        self._thread.join()
        self._client.close()

    @property
    def asked_to_end(self) -> str | None:
        """Why the driver wants the slot to end, or ``None``."""
        return self._asked_to_end

    def should_end(self) -> bool:
        """Whether the slot should end: the driver asked for it, or the lease is lost."""
        return self._asked_to_end is not None or self._lost() is not None

    def check(self) -> None:
        """Raise :class:`~headrace.connect.errors.StaleTokenError` when the lease is lost."""
        lost = self._lost()
        if lost:
            raise StaleTokenError(lost)

    def wait(self, seconds: float) -> None:
        """Wait; return early when the slot should end."""
        self._ending.wait(seconds)

    def pause(self, seconds: float) -> None:
        """Wait the whole time, even when the slot should end."""
        self._closed.wait(seconds)

    def end(self) -> None:
        """Make the slot end as if the driver had asked for it; the heartbeat continues."""
        self._note_answer(EndReason.SIBLING, valid=True)
        self._ending.set()

    def _lost(self) -> str | None:
        if self._withdrawn:
            return "The driver has given this slot's work to another."
        silence = self._clock() - self._answered_at
        if silence > self._lease_seconds:
            return f"The driver has not answered for {silence:.0f} s."
        return None

    def _beat(self) -> None:
        while not self._closed.wait(self._beat_seconds):
            asked_at = self._clock()
            try:
                answer = self._client.ask("beat", progress=self._progress.as_message())
            except RetriableError as error:
                _log.warning("%s", error)
            else:
                # A beat that was in flight while the process was suspended proves nothing about the time
                # after it was sent.
                self._answered_at = asked_at
                self._note_answer(answer.get("end"), valid=answer.get("valid") is True)
                self._follow(answer.get("log"))
            # The end of a budget interrupts no wait: a task that may continue for a while keeps its pace.
            if self.should_end() and self._asked_to_end != EndReason.BUDGET:
                self._ending.set()

    def _follow(self, log: Message | None) -> None:
        # The answer for an invalid token has none.
        if log is not None and self._follow_log is not None:
            self._follow_log(LogForm(**log))

    def _note_answer(self, end: str | None, *, valid: bool) -> None:
        self._withdrawn = self._withdrawn or not valid
        # A stop may follow the end of a budget, after which some tasks continue for a while.
        self._asked_to_end = end or self._asked_to_end
