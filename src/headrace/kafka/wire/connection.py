"""A blocking connection to one broker: TLS, login, and requests one after the other.

Messages are those of kafka-python's protocol; its own network layer, which has threads and retries of its own, is not used.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from itertools import count
from typing import Any, Final

from kafka.net.sasl import get_sasl_mechanism
from kafka.protocol.metadata.api_versions import ApiVersionsRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.settings import WireSettings

_LENGTH: Final = struct.Struct(">i")
_LONGEST_BYTES: Final = 100_000_000


class UnsupportedApiError(Exception):
    """The broker does not support this kind of request, or none of the versions that are needed."""


class LoginRefusedError(Exception):
    """The broker refuses the login, or its mechanism."""


class WireConnection:
    """A connection; the constructor connects and logs in. One thread uses it at a time.

    The constructor and ``ask`` raise ``OSError`` when the broker is not reached, or does not answer before the
    deadline; the connection must then be aborted. The constructor also raises :class:`LoginRefusedError`.
    """

    def __init__(self, host: str, port: int, settings: WireSettings, deadline: Deadline) -> None:
        self._client_id = settings.client_id
        self._numbers = count(1)
        self._versions: dict[int, tuple[int, int]] = {}
        self._socket = socket.create_connection((host, port), timeout=_time_left(deadline))
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if settings.tls is not None:
                self._socket = settings.tls.wrap_socket(self._socket, server_hostname=host)
            self._learn_versions(deadline)
            if settings.login is not None:
                self._log_in(host, settings.login, deadline)
        except BaseException:
            self.abort()
            raise

    def ask(self, request: Any, deadline: Deadline, *, versions: tuple[int, int]) -> Any:  # noqa: ANN401 (the library has no common type)
        """The answer to *request*, in the newest version that the broker supports within *versions* (lowest, highest).

        Raises :class:`UnsupportedApiError` when it supports none of them.
        """
        least, most = self._versions.get(request.API_KEY, (0, -1))
        version = min(most, versions[1])
        if version < max(least, versions[0]):
            raise UnsupportedApiError(request.name)
        return self._exchange(request, version, deadline)

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

    def _learn_versions(self, deadline: Deadline) -> None:
        answer = self._exchange(ApiVersionsRequest(), 0, deadline)
        self._versions = {
            each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
        }

    def _log_in(self, host: str, login: dict[str, Any], deadline: Deadline) -> None:
        name = login["sasl_mechanism"]
        offered = self._exchange(SaslHandshakeRequest(mechanism=name), 1, deadline)
        if offered.error_code != 0:
            raise LoginRefusedError(f"it supports {', '.join(offered.mechanisms)}, but not {name}")
        mechanism = get_sasl_mechanism(name)(host=host, **login)
        while not mechanism.is_done():
            try:
                request = SaslAuthenticateRequest(auth_bytes=mechanism.auth_bytes())
                answer = self._exchange(request, 1, deadline)
                if answer.error_code != 0:
                    raise LoginRefusedError(answer.error_message or "the login is wrong")
                mechanism.receive(answer.auth_bytes)
            except (KeyError, RuntimeError, ValueError) as error:
                raise LoginRefusedError(f"the login failed ({error})") from error
        if not mechanism.is_authenticated():
            raise LoginRefusedError("the broker did not authenticate itself")

    def _exchange(self, request: Any, version: int, deadline: Deadline) -> Any:  # noqa: ANN401
        number = next(self._numbers)
        request.API_VERSION = version
        request.with_header(correlation_id=number, client_id=self._client_id)
        self._socket.settimeout(_time_left(deadline))
        self._socket.sendall(request.encode(version=version, header=True, framed=True))
        (length,) = _LENGTH.unpack(self._received(_LENGTH.size, deadline))
        if not 0 <= length <= _LONGEST_BYTES:
            raise ConnectionError(f"the broker announced an answer of {length} bytes")
        kind = request.header.get_response_class()
        answer = kind.decode(self._received(length, deadline), header=True)
        if answer.header.correlation_id != number:
            raise ConnectionError("the broker answered another request")
        return answer

    def _received(self, length: int, deadline: Deadline) -> bytes:
        content = bytearray()
        while len(content) < length:
            self._socket.settimeout(_time_left(deadline))
            piece = self._socket.recv(length - len(content))
            if not piece:
                raise ConnectionResetError("the broker has closed the connection")
            content += piece
        return bytes(content)


def _time_left(deadline: Deadline) -> float:
    """Seconds for one step; never zero, which would mean not to wait at all."""
    return max(0.1, deadline.remaining())
