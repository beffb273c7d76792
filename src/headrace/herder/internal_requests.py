"""What a worker that does not lead asks of the one that does, and the leader of the others: internal requests (KIP-507). Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol
from urllib.parse import quote

from headrace.herder.requests import REQUEST_SECONDS


class InternalRequest(NamedTuple):
    """A request of one worker to another, with its query in the *path*; its body is signed when it is sent.

    It is given up after *seconds*: the worker that is asked may be frozen, and another one have taken its place.
    """

    method: str
    path: str
    body: bytes = b""
    seconds: float = 15.0


class SignedPeers(Protocol):
    """The other workers of the group, as this one asks them and is asked by them. Any thread may call."""

    def ask(self, url: str, request: InternalRequest) -> None:
        """Send *request*, signed, to the worker at *url*, and return when it is granted.

        Raises :class:`~headrace.herder.errors.RequestError` as that worker does, and ``ConflictError`` when it does not answer.
        """
        ...

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """Raise ``RequestError`` unless *body* comes from a worker of the group, as the two headers prove."""
        ...

    def renew_key(self) -> None:
        """Make a new key for signatures when it is time; called by the leader, again and again."""
        ...


def tasks_request(
    name: str, configs: Sequence[Mapping[str, str]], *, made_from: str
) -> InternalRequest:
    """Store the tasks of a connector, unless its configuration is no longer the one whose digest is *made_from*."""
    body = json.dumps(configs, ensure_ascii=False).encode()
    return InternalRequest("POST", f"{_path(name)}/tasks?config={made_from}", body)


def task_count_request(name: str, count: int) -> InternalRequest:
    """Store that so many tasks of the connector may write from now on (KIP-618)."""
    return InternalRequest(
        "PUT", f"{_path(name)}/fence", json.dumps({"task-count": count}).encode()
    )


def quiet_request(name: str) -> InternalRequest:
    """Answer when nothing of the connector runs on the worker that is asked."""
    return InternalRequest("PUT", f"{_path(name)}/quiet", seconds=REQUEST_SECONDS)


def relinquish_request(worker: str, *, stay: bool) -> InternalRequest:
    """Have *worker* hand its connectors over, and end unless it is to *stay*; for the worker itself, or for one that knows it."""
    return _worker_request({"worker": worker, "action": "relinquish", "stay": stay})


def rejoin_request(worker: str) -> InternalRequest:
    """Have *worker* take connectors again."""
    return _worker_request({"worker": worker, "action": "rejoin"})


def _worker_request(body: Mapping[str, object]) -> InternalRequest:
    # All in the body, which alone is signed.
    return InternalRequest("PUT", "/workers", json.dumps(body).encode())


def digest(config: Mapping[str, str | None]) -> str:
    """What two configurations have in common only if they are the same."""
    text = json.dumps(config, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:32]


def _path(name: str) -> str:
    # Dots alone would be resolved on the way.
    segment = name.replace(".", "%2E") if name in {".", ".."} else quote(name, safe="")
    return f"/connectors/{segment}"
