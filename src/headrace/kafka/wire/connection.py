"""A blocking connection to one broker: TLS, login, requests, and their answers in order.

Messages are those of kafka-python's protocol; its own network layer, which has threads and retries of its own, is not used.
"""

from __future__ import annotations

import os
import random
import select
import socket
import ssl
import struct
import sys
import urllib.error
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import count, islice
from typing import Any, Final, NamedTuple

import numpy as np
from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.metadata.api_versions import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from headrace.connect.errors import TaskFailedError
from headrace.kafka.batches.checksums import Bytes
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.settings import WireSettings

_LENGTH: Final = struct.Struct(">i")
_HEADER: Final = struct.Struct(">hhih")
# How many pieces the system takes at a time.
_MOST_PIECES: Final = os.sysconf("SC_IOV_MAX")
_TLS_ALERT: Final = 0x1503
_SERVER_FAULT: Final = 500
_FIRST_REQUEST: Final = 2
_LOGIN_VERSIONS: Final = (0, 1)
# As Java's clients: early enough for the session, and not all connections at the same moment.
_RENEW_AFTER: Final = (0.85, 0.95)

Message = Any
"""A request or an answer of kafka-python's protocol, for which the library has no common type; or the class of one."""
Versions = tuple[int, int]
"""The lowest and the highest version of a request that the caller can send and read the answer of."""


class UnsupportedApiError(Exception):
    """The broker does not support this kind of request, or none of the versions that are needed."""


class LoginRefusedError(Exception):
    """The broker refuses the login, or its mechanism."""


class AnswerTooLargeError(Exception):
    """The broker announced more bytes than ``receive.message.max.bytes`` allows."""


class Answer(NamedTuple):
    """An answer without its header. *body* is a read-only view on the received bytes, which live as long as it does."""

    kind: Message
    version: int
    body: memoryview

    def decoded(self) -> Message:
        """The answer as kafka-python's class; raises ``ConnectionError`` for bytes that are none."""
        try:
            return self.kind.decode(self.body, version=self.version)
        except (ValueError, IndexError, struct.error) as error:
            raise ConnectionError(f"the broker's answer cannot be read ({error})") from error


class WireConnection:
    """A connection; the constructor connects and logs in. One thread uses it at a time.

    Requests may be sent before earlier ones are answered; answers come in the order of the requests. Every method, and
    the constructor, raises ``OSError`` when the broker is not reached, has closed the connection, or does not answer
    before the deadline; the connection must then be aborted. The constructor and ``send``, which renews a login that
    is about to expire (KIP-368), also raise :class:`LoginRefusedError`.
    """

    def __init__(self, host: str, port: int, settings: WireSettings, deadline: Deadline) -> None:
        self._settings = settings
        self._host = host
        is_configured = (host, port) in settings.addresses
        self._broker = f"{host}:{port}{' (bootstrap.servers)' if is_configured else ''}"
        self._numbers = count(1)
        self._versions: dict[int, Versions] = {}
        self._in_flight = deque[tuple[int, Message, int]]()
        self._unsent = deque[Bytes]()
        self._length = memoryview(bytearray(_LENGTH.size))
        self._frame: memoryview | None = None
        self._received = 0
        self._renew_at = float("inf")
        limit = deadline.remaining(settings.connect_seconds)
        try:
            self._socket = socket.create_connection((host, port), timeout=max(0.1, limit))
        except OSError as error:
            reason = error.strerror or str(error) or type(error).__name__
            raise ConnectionError(f"{self._broker} was not reached ({reason})") from error
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.tls is not None:
                self._socket = self._encrypted(settings.tls)
            self._learn_versions(deadline)
            self._log_in(deadline)
        except BaseException:
            self.abort()
            raise

    def version(self, kind: Message, versions: Versions) -> int:
        """The newest version of requests of *kind* that the broker supports within *versions*.

        Raises :class:`UnsupportedApiError` when it supports none of them.
        """
        least, most = self._versions.get(kind.API_KEY, (0, -1))
        version = min(most, versions[1])
        if version < max(least, versions[0]):
            raise UnsupportedApiError(kind.name)
        return version

    def ask(self, request: Message, deadline: Deadline, *, versions: Versions) -> Message:
        """The decoded answer to *request*, in the newest version that the broker supports within *versions*.

        No other request may be in flight. Raises :class:`UnsupportedApiError` when it supports none of them.
        """
        self.send(request, deadline, versions=versions)
        return self.next_answer(deadline).decoded()

    def send(self, request: Message, deadline: Deadline, *, versions: Versions) -> None:
        """Send *request*, in the newest version that the broker supports within *versions*."""
        version = self.version(request, versions)
        if not self._in_flight and deadline.clock() >= self._renew_at:
            self._log_in(deadline)
        self._send(request, version, deadline)

    def start(self, answer: Message, version: int, body: Sequence[Bytes]) -> None:
        """Begin a request whose encoded *body* is there already, in pieces; ``push`` sends it, without a copy of them.

        *answer* is the class of the answer. The request is in flight at once. The pieces must not change until it is answered.
        """
        number = next(self._numbers)
        client = self._settings.client_id.encode()
        header = _HEADER.pack(answer.API_KEY, version, number, len(client)) + client
        if answer.flexible_version_q(version):
            header += b"\0"
        length = len(header) + sum(map(len, body))
        self._unsent += (_LENGTH.pack(length) + header, *body)
        self._in_flight.append((number, answer, version))

    def push(self) -> bool:
        """Send as much of what ``start`` has begun as the system takes now, without waiting; whether that was all."""
        self._socket.settimeout(0)
        try:
            while self._unsent:
                self._pass(self._taken())
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        return True

    def must_log_in(self, now: float) -> bool:
        """Whether the login expires soon, by a deadline's clock: let all be answered, then call ``log_in``."""
        return now >= self._renew_at

    def log_in(self, deadline: Deadline) -> None:
        """Log in again (KIP-368); nothing may be in flight."""
        self._log_in(deadline)

    @property
    def has_ended(self) -> bool:
        """Whether the broker has closed the connection while nothing was in flight."""
        if self._in_flight:
            return False
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        return bool(poll.poll(0))

    def receive(self, deadline: Deadline) -> Answer | None:
        """The answer to the oldest request in flight; ``None`` if it is not complete at the deadline: call again."""
        try:
            if self._frame is None:
                self._fill(self._length, deadline)
                # Not a bytearray: that would be filled with zeros first, a fifth of the cost of receiving.
                self._frame = np.empty(self._announced(), np.uint8).data
                self._received = 0
            self._fill(self._frame, deadline)
        except TimeoutError:
            return None
        frame, self._frame, self._received = self._frame, None, 0
        return self._opened(frame.toreadonly())

    def next_answer(self, deadline: Deadline) -> Answer:
        """As ``receive``; raises ``TimeoutError`` at the deadline."""
        answer = self.receive(deadline)
        if answer is None:
            raise TimeoutError(f"{self._broker} did not answer in time")
        return answer

    def fileno(self) -> int:
        """The socket's, to wait for an answer with others."""
        return self._socket.fileno()

    @property
    def is_readable(self) -> bool:
        """Whether bytes wait that the system does not know of, because TLS has taken them already."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def close(self) -> None:
        """Close it."""
        self._socket.close()

    def abort(self) -> None:
        """Close it, and have the system discard what it has not delivered.

        An abandoned request must not arrive later: it would fence the producer that has retried by then.
        """
        with suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def _taken(self) -> int:
        """How many of the bytes to send the system has taken."""
        if isinstance(self._socket, ssl.SSLSocket):
            return self._socket.send(self._unsent[0])
        return self._socket.sendmsg(islice(self._unsent, _MOST_PIECES))

    def _pass(self, sent: int) -> None:
        """Forget the first *sent* bytes of what is to be sent."""
        while sent:
            piece = self._unsent[0]
            if sent < len(piece):
                self._unsent[0] = memoryview(piece)[sent:]
                return
            sent -= len(piece)
            self._unsent.popleft()

    def _encrypted(self, tls: ssl.SSLContext) -> ssl.SSLSocket:
        try:
            return tls.wrap_socket(self._socket, server_hostname=self._host)
        except OSError as error:
            if unresolvable(error, "", self._settings) is not None:
                raise
            raise ConnectionError(
                f"{self._broker} did not open a TLS connection ({error}), as a port without TLS does not; check "
                "security.protocol"
            ) from error

    def _learn_versions(self, deadline: Deadline) -> None:
        answer = self._exchange(ApiVersionsRequest(), 0, deadline)
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }

    def _log_in(self, deadline: Deadline) -> None:
        if (login := self._settings.login) is None:
            return
        name = login["sasl_mechanism"]
        offered = self._exchange(SaslHandshakeRequest(mechanism=name), 1, deadline)
        if offered.error_code != 0:
            offers = f"supports {', '.join(offered.mechanisms)}, but not {name}"
            raise LoginRefusedError(
                f"{self._broker} {offers if offered.mechanisms else 'takes no login on this port'}"
            )
        mechanism = get_sasl_mechanism(name)(host=self._host, **login)
        version = self.version(SaslAuthenticateRequest, _LOGIN_VERSIONS)
        lifetime_ms = 0
        while not mechanism.is_done():
            try:
                request = SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes())
                answer = self._exchange(request, version, deadline)
                if answer.error_code != 0:
                    raise LoginRefusedError(answer.error_message or "the login is wrong")
                mechanism.receive(answer.auth_bytes)
            except (KeyError, RuntimeError, ValueError) as error:
                raise LoginRefusedError(f"the login failed ({error})") from error
            lifetime_ms = answer.session_lifetime_ms
        if not mechanism.is_authenticated():
            raise LoginRefusedError("the broker did not authenticate itself")
        lasts = lifetime_ms / 1000 * random.uniform(*_RENEW_AFTER) or float("inf")
        self._renew_at = deadline.clock() + lasts

    def _exchange(self, request: Message, version: int, deadline: Deadline) -> Message:
        self._send(request, version, deadline)
        return self.next_answer(deadline).decoded()

    def _send(self, request: Message, version: int, deadline: Deadline) -> None:
        number = next(self._numbers)
        request.API_VERSION = version
        request.with_header(correlation_id=number, client_id=self._settings.client_id)
        encoded = request.encode(version=version, header=True, framed=True)
        self._socket.settimeout(_time_left(deadline))
        self._socket.sendall(encoded)
        self._in_flight.append((number, _answer_class(request), version))

    def _announced(self) -> int:
        (length,) = _LENGTH.unpack(self._length)
        if length >> 16 == _TLS_ALERT:
            raise LoginRefusedError(f"{self._broker} wants TLS on this port")
        if length > self._settings.max_answer_bytes:
            raise AnswerTooLargeError(
                f"a broker announced an answer of {length} bytes, and receive.message.max.bytes is "
                f"{self._settings.max_answer_bytes}"
            )
        if length < _LENGTH.size:
            raise ConnectionError(f"the broker announced an answer of {length} bytes")
        return length

    def _fill(self, buffer: memoryview, deadline: Deadline) -> None:
        """Receive until *buffer* is full; what a time-out leaves behind is kept for the next call."""
        while self._received < len(buffer):
            self._socket.settimeout(_time_left(deadline))
            received = self._socket.recv_into(buffer[self._received :])
            if received == 0:
                raise ConnectionResetError(
                    f"{self._broker} has closed the connection{self._hint()}"
                )
            self._received += received

    def _hint(self) -> str:
        """Why the broker may have closed the connection instead of the first answer after those about versions."""
        is_first = bool(self._in_flight) and self._in_flight[0][0] <= _FIRST_REQUEST
        if not is_first or self._settings.login is not None:
            return ""
        return ", as it does when it wants a login; check security.protocol"

    def _opened(self, frame: memoryview) -> Answer:
        """The answer in *frame*, whose header is cut off: kafka-python would copy the rest to read it."""
        if not self._in_flight:
            raise ConnectionError("the broker answered without a request")
        expected, kind, version = self._in_flight.popleft()
        (number,) = _LENGTH.unpack_from(frame)
        if number != expected:
            raise ConnectionError("the broker answered another request")
        at = _LENGTH.size
        # The header of this one answer never has tagged fields: clients read it that know no version yet.
        if kind.API_KEY != ApiVersionsRequest.API_KEY and kind.flexible_version_q(version):
            try:
                at = _after_tags(frame, at)
            except IndexError as error:
                raise ConnectionError("the header of the broker's answer cannot be read") from error
        return Answer(kind, version, frame[at:])


def unresolvable(error: Exception, doing: str, settings: WireSettings) -> TaskFailedError | None:
    """The error to raise when *error* of a connection is one that no retry can resolve; ``None`` for all others.

    *doing* completes "Kafka refused …".
    """
    sentence = _about_trust(error, doing, settings) or _about_requests(error, doing)
    return None if sentence is None else TaskFailedError(sentence)


def _about_trust(error: Exception, doing: str, settings: WireSettings) -> str | None:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"The certificate of a broker is not trusted ({error.verify_message}). Check the ssl.truststore.* "
            "settings and ssl.endpoint.identification.algorithm of this client."
        )
    if isinstance(error, ssl.SSLError) and "ALERT" in str(error.reason):
        return (
            f"A broker refused the TLS connection ({error.reason}). Check the ssl.keystore.* settings of this client, "
            "and that the broker trusts its certificate."
        )
    if isinstance(error, urllib.error.HTTPError) and error.code < _SERVER_FAULT:
        return f"{settings.token_endpoint} refused to issue a token: {error}. Check the client's id and secret."
    if isinstance(error, LoginRefusedError):
        return f"Kafka refused {doing}: {error}. Check security.protocol and the sasl.* settings of this client."
    return None


def _about_requests(error: Exception, doing: str) -> str | None:
    if isinstance(error, UnsupportedApiError):
        return (
            f"The broker does not support the version of {error} that headrace needs for {doing}. Use a broker of "
            "version 0.11 or newer."
        )
    if isinstance(error, AnswerTooLargeError):
        return f"{doing} failed: {error}. Raise receive.message.max.bytes."
    return None


def _answer_class(request: Message) -> Message:
    """The class of the answer to *request*, from the module of the request's class, where kafka-python has both.

    The library's own registry keeps only a weak reference to a class for one version, which may be collected when two
    threads have made it at the same time.
    """
    kind = type(request)
    return getattr(sys.modules[kind.__module__], kind.__name__.removesuffix("Request") + "Response")


def _after_tags(frame: memoryview, at: int) -> int:
    """The place after tagged fields (KIP-482)."""
    fields, at = uvarint(frame, at)
    for _ in range(fields):
        _, at = uvarint(frame, at)
        length, at = uvarint(frame, at)
        at += length
    return at


def uvarint(frame: memoryview, at: int) -> tuple[int, int]:
    """The unsigned variable-length number at *at*, and the place after it."""
    value = shift = 0
    while (byte := frame[at]) & 0x80:
        value |= (byte & 0x7F) << shift
        shift += 7
        at += 1
    return value | byte << shift, at + 1


def _time_left(deadline: Deadline) -> float:
    """Seconds for one step; never zero, which would mean not to wait at all."""
    return max(0.1, deadline.remaining())
