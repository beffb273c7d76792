"""Requests between workers of a group, which they sign (KIP-507): signatures, and the session key of the group. Pure."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol, Self
from urllib.parse import quote, unquote

from headrace.herder.errors import BadRequestError, ForbiddenError, UnavailableError
from headrace.herder.requests import REQUEST_SECONDS
from headrace.java.macs import is_known, key_bytes, mac
from headrace.storage.protocols import SessionKey

if TYPE_CHECKING:
    # Whoever only answers requests does not import Kafka's client, which comes with it.
    from headrace.config.distributed_config import DistributedConfig

SIGNATURE_HEADER: Final = "X-Connect-Authorization"
ALGORITHM_HEADER: Final = "X-Connect-Request-Signature-Algorithm"
REQUESTER_HEADER: Final = "X-Headrace-Requester"
"""Who has asked for a request that a worker sends on to another, with that worker's signature; Kafka Connect does not have it."""

_MISSING: Final = "Internal request missing required signature"
_NOT_PERMITTED: Final = (
    "This worker does not support the '{}' key signing algorithm used by other workers. This worker is currently configured to "
    "use: [{}]. Check that all workers' configuration files permit the same set of signature algorithms, and correct any "
    "misconfigured worker and restart it."
)
_NO_KEY: Final = "This worker is still starting up and has not been able to read a session key from the config topic yet"
_INVALID: Final = "Internal request contained invalid signature."
# Its signatures have a key of their own: none of another kind is ever valid as one of them, nor the other way round.
_REQUESTER_KEY: Final = b"headrace requester"


class Peers(Protocol):
    """Sends requests to other workers of the group. Any thread may call."""

    def put(
        self,
        method: str,
        url: str,
        body: bytes,
        signed: Mapping[str, str],
        *,
        seconds: float = REQUEST_SECONDS,
    ) -> None:
        """Send the request and return when the other worker has granted it, within *seconds*.

        *url* is the whole URL, with path and query, and *signed* the headers of the signature of *body*. Raises the
        :class:`~headrace.herder.errors.RequestError` of the other worker's status, with its sentence, and ``ConflictError`` when it
        does not answer, or something else does in its place.
        """
        ...


class Requesters(Protocol):
    """Tells other workers of the group who has asked for what is sent on to them, and believes what they tell. Any thread may call.

    A *request* is all that it asks for, in the same form at both workers.
    """

    def told(self, who: str, request: bytes) -> str | None:
        """The header by which the worker that gets *request* knows that *who* asked for it; ``None`` before there is a session key."""
        ...

    def believed(self, header: str, request: bytes) -> str | None:
        """Who asked for *request*, if a worker of the group has told so in this *header*; otherwise ``None``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSigning:
    """How a worker signs what it sends to others, and which signatures it takes: Kafka Connect's settings ``inter.worker.*``.

    The session key comes from the config topic; ``None`` stands for none that was read yet.
    """

    algorithm: str
    permitted: Sequence[str]
    key_algorithm: str
    key_bits: int | None
    key_ttl_ms: int

    @classmethod
    def of(cls, config: DistributedConfig) -> Self:
        """As a worker's configuration says."""
        return cls(
            algorithm=config.inter_worker_signature_algorithm,
            permitted=config.inter_worker_verification_algorithms,
            key_algorithm=config.inter_worker_key_generation_algorithm,
            key_bits=config.inter_worker_key_size,
            key_ttl_ms=config.inter_worker_key_ttl_ms,
        )

    def signed(self, body: bytes, key: SessionKey | None) -> dict[str, str]:
        """The headers that sign *body*, which may be empty. Raises ``UnavailableError`` without a key."""
        if key is None:
            raise UnavailableError(_NO_KEY)
        signature = base64.b64encode(mac(self.algorithm, key.key, body)).decode()
        return {SIGNATURE_HEADER: signature, ALGORITHM_HEADER: self.algorithm}

    def verify(
        self, body: bytes, signature: str | None, algorithm: str | None, key: SessionKey | None
    ) -> None:
        """Raise the ``RequestError`` that refuses *body* with these two headers; return when they are another worker's.

        After the leader has made a new key, a worker that has not read it yet sends signatures that are refused (403).
        """
        if signature is None or algorithm is None:
            raise BadRequestError(_MISSING)
        if not is_known(algorithm):
            raise BadRequestError(f"Algorithm {algorithm} not available")
        try:
            found = base64.b64decode(signature, validate=True)
        except ValueError as error:
            raise BadRequestError(
                f"Internal request with a signature that is not base64: {error}"
            ) from None
        if algorithm not in self.permitted:
            raise BadRequestError(_NOT_PERMITTED.format(algorithm, ", ".join(self.permitted)))
        if key is None:
            raise UnavailableError(_NO_KEY)
        # Compared in constant time, so that response times do not lead to a valid signature.
        if not hmac.compare_digest(found, mac(algorithm, key.key, body)):
            raise ForbiddenError(_INVALID)

    def told_requester(self, who: str, request: bytes, key: SessionKey | None) -> str | None:
        """See :meth:`Requesters.told`."""
        if key is None:
            return None
        quoted = quote(who, safe="", errors="replace")
        signature = base64.b64encode(_requester_mac(self.algorithm, key, quoted, request)).decode()
        return f"{quoted} {self.algorithm} {signature}"

    def believed_requester(self, header: str, request: bytes, key: SessionKey | None) -> str | None:
        """See :meth:`Requesters.believed`. Whoever can read the request on its way can send it again, but no other one with this header."""
        parts = header.split(" ")
        if key is None or len(parts) != len(("who", "algorithm", "signature")):
            return None
        quoted, algorithm, signature = parts
        if algorithm not in self.permitted:
            return None
        expected = base64.b64encode(_requester_mac(algorithm, key, quoted, request))
        is_signed = hmac.compare_digest(signature.encode(errors="replace"), expected)
        return unquote(quoted) if is_signed else None

    def needs_new_key(self, key: SessionKey | None, *, now_ms: int) -> bool:
        """Whether the leader has to make a key in place of *key*: there is none, it has expired, or it is not of these settings.

        With a time to live of 0 it never expires, as in Kafka Connect.
        """
        if key is None:
            return True
        has_expired = 0 < self.key_ttl_ms <= now_ms - key.created_ms
        size = key_bytes(self.key_algorithm, self.key_bits)
        return has_expired or (key.algorithm, len(key.key)) != (self.key_algorithm, size)

    def new_key(
        self, *, now_ms: int, random_bytes: Callable[[int], bytes] = secrets.token_bytes
    ) -> SessionKey:
        """A key of these settings, which the leader stores."""
        size = key_bytes(self.key_algorithm, self.key_bits)
        return SessionKey(key=random_bytes(size), algorithm=self.key_algorithm, created_ms=now_ms)


def _requester_mac(algorithm: str, key: SessionKey, quoted: str, request: bytes) -> bytes:
    own_key = mac(algorithm, key.key, _REQUESTER_KEY)
    return mac(algorithm, own_key, quoted.encode(errors="replace") + b"\n" + request)
